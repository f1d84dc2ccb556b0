#include "runtime/value_ranges.h"

#include "testing/testing.h"

namespace mk {
namespace {

TEST(ValueRanges, MetadataWinsOverTheGraph) {
  Model model;
  Graph& graph = *model.graph;
  Value* ids = graph.add_input("input_ids", Type::tensor(DataType::int32, static_shape({1, 8})));
  Value* types = graph.add_input("token_type_ids", Type::tensor(DataType::int64, static_shape({1, 8})));
  Value* mask = graph.add_input("attention_mask", Type::tensor(DataType::int64, static_shape({1, 8})));
  const std::vector<float> data(40, 0.0f);
  Value* table = graph.add_initializer(make_tensor("table", DataType::float32, {10, 4}, owned_values<float>(data)));
  Value* wide = graph.add_op("Cast", {ids}, "wide");
  graph.mark_output(graph.add_op("Gather", {table, wide}, "rows"));
  Value* columns = graph.add_op("Gather", {table, types}, "columns");
  columns->producer()->set_attribute({"axis", -1});
  graph.mark_output(columns);
  graph.mark_output(graph.add_op("Identity", {mask}, "same"));

  auto ranges = value_ranges(model);
  EXPECT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges.at("input_ids"), (ValueRange{0, 10}));
  EXPECT_EQ(ranges.at("token_type_ids"), (ValueRange{0, 4}));

  set(model.metadata, "winml.io.inputs",
      R"([{"name":"input_ids","dtype":"int32","shape":[1,8],"value_range":[2,7]},{"name":"attention_mask","value_range":[0,2]},
          {"name":"token_type_ids"},{"broken":1}])");
  ranges = value_ranges(model);
  EXPECT_EQ(ranges.at("input_ids"), (ValueRange{2, 7}));
  EXPECT_EQ(ranges.at("attention_mask"), (ValueRange{0, 2}));
  EXPECT_EQ(ranges.at("token_type_ids"), (ValueRange{0, 4}));

  set(model.metadata, "winml.io.inputs", "not json");
  EXPECT_EQ(value_ranges(model).size(), 2u);

  std::vector<DrawSpec> specs{{"input_ids", DataType::int32, {1, 8}, std::nullopt},
                              {"other", DataType::int32, {1}, std::nullopt}};
  apply_ranges(ranges, specs);
  EXPECT_EQ(specs[0].range, (ValueRange{2, 7}));
  EXPECT_FALSE(specs[1].range);
}

}  // namespace
}  // namespace mk
