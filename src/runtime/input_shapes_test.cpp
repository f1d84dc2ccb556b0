#include "runtime/input_shapes.h"

#include "testing/testing.h"

namespace mk {
namespace {

using Pairs = std::vector<std::pair<std::string, std::int64_t>>;
using Dims = std::vector<std::int64_t>;

Port port(std::string name, std::vector<Dim> shape) {
  return {std::move(name), Type::tensor(DataType::float32, std::move(shape))};
}

TEST(ChooseShapes, RulesOfTheSpec) {
  const std::vector<Port> ports{
      port("fixed", {Dim::known(1), Dim::known(3)}),
      port("image", {Dim::symbolic("batch"), Dim::known(3), Dim::symbolic("height"), Dim::symbolic("width")}),
      port("ids", {Dim::symbolic("batch"), Dim::symbolic("sequence")}),
      port("deep", {Dim{}, Dim{}, Dim{}, Dim{}, Dim{}}),
      {"unranked", Type::tensor(DataType::int64)},
      port("scalar", {})};
  ASSERT_OK_AND(const auto chosen, choose_shapes(ports, {}, 4));
  EXPECT_EQ(chosen.inputs[0].dims, (Dims{1, 3}));
  EXPECT_EQ(chosen.inputs[1].dims, (Dims{4, 3, 224, 224}));
  EXPECT_EQ(chosen.inputs[2].dims, (Dims{4, 128}));
  EXPECT_EQ(chosen.inputs[3].dims, (Dims{4, 128, 224, 224, 128}));
  EXPECT_EQ(chosen.inputs[4].dims, (Dims{4}));
  EXPECT_EQ(chosen.inputs[5].dims, Dims{});
  EXPECT_EQ(chosen.dynamic, (Pairs{{"batch", 4},
                                   {"height", 224},
                                   {"width", 224},
                                   {"sequence", 128},
                                   {"deep[0]", 4},
                                   {"deep[1]", 128},
                                   {"deep[2]", 224},
                                   {"deep[3]", 224},
                                   {"deep[4]", 128}}));
}

TEST(ChooseShapes, OverridesOfSymbolsAndOfWholeInputs) {
  const std::vector<Port> ports{port("a", {Dim::symbolic("batch"), Dim::symbolic("sequence")}),
                                port("b", {Dim::symbolic("batch"), Dim::symbolic("sequence"), Dim::known(8)})};
  ShapeOverrides overrides;
  overrides.symbols["sequence"] = 16;
  ASSERT_OK_AND(const auto by_symbol, choose_shapes(ports, overrides, 1));
  EXPECT_EQ(by_symbol.inputs[1].dims, (Dims{1, 16, 8}));
  overrides = {};
  overrides.shapes["a"] = {2, 9};
  ASSERT_OK_AND(const auto by_input, choose_shapes(ports, overrides, 1));
  EXPECT_EQ(by_input.inputs[0].dims, (Dims{2, 9}));
  EXPECT_EQ(by_input.inputs[1].dims, (Dims{2, 9, 8}));  // the same symbols have the same values
  EXPECT_EQ(by_input.dynamic, (Pairs{{"batch", 2}, {"sequence", 9}}));
}

TEST(ChooseShapes, SumsFollowTheirParts) {
  const std::vector<Port> ports{
      port("attention_mask", {Dim::symbolic("batch"), Dim::symbolic("past_sequence_length + sequence_length")}),
      port("input_ids", {Dim::symbolic("batch"), Dim::symbolic("sequence_length")}),
      port("past.key", {Dim::symbolic("batch"), Dim::known(2), Dim::symbolic("past_sequence_length"), Dim::known(64)}),
      port("other", {Dim::symbolic("batch"), Dim::symbolic("sequence_length+1")})};
  ShapeOverrides overrides;
  overrides.symbols["sequence_length"] = 5;
  ASSERT_OK_AND(const auto chosen, choose_shapes(ports, overrides, 1));
  EXPECT_EQ(chosen.inputs[0].dims, (Dims{1, 224 + 5}));
  EXPECT_EQ(chosen.inputs[3].dims, (Dims{1, 6}));
}

TEST(ChooseShapes, OverridesThatCannotBe) {
  const std::vector<Port> ports{port("a", {Dim::symbolic("batch"), Dim::symbolic("sequence")}),
                                port("b", {Dim::symbolic("batch"), Dim::known(8)})};
  const struct {
    ShapeOverrides overrides;
    std::string_view where;
    std::string_view hint;
  } cases[] = {
      {{{}, {{"sequnce", 4}}, "s.json"}, "s.json#/sequnce", "Did you mean 'sequence'?"},
      {{{}, {{"height", 4}}, "s.json"}, "s.json#/height", "It has batch, sequence"},
      {{{{"pixels", {1, 2}}}, {}, "s.json"}, "s.json#/pixels", "It has a, b"},
      {{{{"b", {1, 9}}}, {}, "s.json"}, "s.json#/b", "Dimensions of one name have one size"},
      {{{{"a", {1}}}, {}, "s.json"}, "s.json#/a", "Dimensions of one name have one size"},
      {{{{"a", {1, 2}}, {"b", {2, 8}}}, {}, "s.json"}, "s.json#/b", "Dimensions of one name have one size"},
      {{{{"a", {1, 2}}}, {{"batch", 3}}, "s.json"}, "s.json#/a", "Dimensions of one name have one size"},
      {{{}, {{"batch", 0}}, "s.json"}, "s.json", "Give its leading dimension at least 1"},
  };
  for (const auto& c : cases) {
    const auto chosen = choose_shapes(ports, c.overrides, 1);
    ASSERT_FALSE(chosen.has_value()) << c.where;
    EXPECT_EQ(chosen.error().code, ErrorCode::usage);
    EXPECT_EQ(chosen.error().where, c.where);
    EXPECT_EQ(chosen.error().hint, c.hint);
  }
  // A decoder's first step has no past.
  const std::vector<Port> past{port("key", {Dim::known(1), Dim::known(2), Dim::symbolic("past"), Dim::known(4)})};
  ASSERT_OK_AND(const auto first, choose_shapes(past, {{}, {{"past", 0}}, ""}, 1));
  EXPECT_EQ(first.inputs[0].dims, (Dims{1, 2, 0, 4}));
}

TEST(ChooseShapes, ASequenceCannotBeFed) {
  Port sequence{"pair", {}};
  sequence.type.kind = Type::Kind::sequence;
  EXPECT_EQ(choose_shapes({&sequence, 1}, {}, 1).error().code, ErrorCode::unsupported);
}

TEST(ShapeConfig, ValuesAndErrors) {
  testing::TemporaryFolder folder;
  ASSERT_OK_AND(const auto good, read_shape_overrides(folder.write(
                                     "good.json", R"({"image": [1, 3, "64", 64], "seq": "8", "batch": 2.0})")));
  EXPECT_EQ(good.shapes.at("image"), (Dims{1, 3, 64, 64}));
  EXPECT_EQ(good.symbols.at("seq"), 8);
  EXPECT_EQ(good.symbols.at("batch"), 2);
  for (const char* bad : {R"({"batch": true})", R"({"seq": 1.5})", R"({"seq": {}})", R"({"seq": "x"})",
                          R"({"a": [[1]]})", R"({"seq": -1})", R"([1])", "{"}) {
    const auto read = read_shape_overrides(folder.write("bad.json", bad));
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().code, ErrorCode::usage) << bad;
    EXPECT_NE(read.error().where.find("bad.json"), std::string::npos) << read.error().to_string();
  }
}

}  // namespace
}  // namespace mk
