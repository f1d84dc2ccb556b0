#include "export/export_config.h"

#include "base/json.h"
#include "testing/testing.h"
#include "testing/warnings.h"

namespace mk {
namespace {

Result<ExportConfig> parse(std::string_view text) {
  const auto json = parse_json(text, "config.json", ErrorCode::usage);
  if (!json) return tl::make_unexpected(json.error());
  return parse_export_config(JsonView(*json, "config.json", ErrorCode::usage), silent_progress());
}

std::string error_of(std::string_view text) {
  const auto config = parse(text);
  return config ? "no error" : config.error().to_string();
}

std::vector<InputSpec> text_inputs() {
  return {{"input_ids", DataType::int32, static_shape({1, 512}), ValueRange{0, 30522}},
          {"attention_mask", DataType::int32, static_shape({1, 512}), ValueRange{0, 2}}};
}

TEST(ExportConfig, PrintsItsFieldsInContractualOrder) {
  ASSERT_OK_AND(const auto config, parse(R"({"compatibility": {"transformers_attention": "eager"},
      "output_tensors": [{"name": "logits"}],
      "input_tensors": [{"value_range": [0, 1], "name": "pixel_values", "dtype": "float32", "shape": [1, 3, "h", 224]}],
      "dynamic_axes": {"pixel_values": {"2": "h"}}, "opset_version": 18})"));
  EXPECT_EQ(dump_json(to_json(config), -1),
            R"({"opset_version": 18, "batch_size": 1, "export_params": true, "do_constant_folding": true, )"
            R"("verbose": false, "dynamo": false, "enable_hierarchy_tags": true, "clean_onnx": false, )"
            R"("hierarchy_tag_format": "full", "input_tensors": [{"name": "pixel_values", "dtype": "float32", )"
            R"("shape": [1, 3, "h", 224], "value_range": [0, 1]}], "output_tensors": [{"name": "logits"}], )"
            R"("dynamic_axes": {"pixel_values": {"2": "h"}}, "compatibility": {"transformers_attention": "eager"}})");
}

TEST(ExportConfig, ErrorsPointIntoTheDocument) {
  EXPECT_EQ(error_of(R"({"batch_size": 0})"), "batch_size must be positive, got 0 (config.json#/batch_size)");
  EXPECT_NE(error_of(R"({"opset_version": "17"})").find("config.json#/opset_version"), std::string::npos);
  EXPECT_NE(error_of(R"({"input_tensors": [{"name": "x", "shape": [1, -2]}]})").find("#/input_tensors/0/shape/1"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"input_tensors": [{"name": "x", "shape": [""]}]})").find("may not be empty"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"input_tensors": [{"shape": [1]}]})").find("#/input_tensors/0/name"), std::string::npos);
  EXPECT_NE(error_of(R"({"dynamic_axes": {"x": {"-1": "b"}}})").find("'-1' is not a non-negative integer"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"hierarchy_tag_format": "short"})").find("\"module_only\""), std::string::npos);
  EXPECT_NE(error_of(R"({"compatibility": {"transformer_attention": "eager"}})").find("transformers_attention"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"compatibility": {"transformers_attention": "sdpa"}})").find("\"eager\" or null"),
            std::string::npos);
}

TEST(ExportConfig, KeysThatAreNotKnownAreTold) {
  const Json json = Json::parse(
      R"({"input_tensors": [{"name": "x", "shpe": [1]}], "output_tensors": [{"name": "y", "shape": [1]}]})");
  testing::Warnings warnings;
  ASSERT_OK(parse_export_config(JsonView(json, "c.json", ErrorCode::usage), warnings));
  EXPECT_EQ(warnings.messages,
            (std::vector<std::string>{"unknown key 'shpe' is ignored (c.json#/input_tensors/0). Did you mean 'shape'?",
                                      "unknown key 'shape' is ignored (c.json#/output_tensors/0)"}));
}

TEST(ExportConfig, FieldsThatChangeNothingAreTold) {
  ASSERT_OK_AND(const auto plain, parse(R"({"export_params": true, "dynamo": false})"));
  testing::Warnings none;
  warn_of_idle_flags(plain, none);
  EXPECT_TRUE(none.messages.empty());
  ASSERT_OK_AND(const auto odd,
                parse(R"({"export_params": false, "do_constant_folding": false, "verbose": true, "dynamo": true})"));
  testing::Warnings all;
  warn_of_idle_flags(odd, all);
  ASSERT_EQ(all.messages.size(), 4u);
  EXPECT_EQ(all.messages[3], "export.dynamo changes nothing: nothing is traced");
}

TEST(ExportConfig, ARangeBeyondTheVocabularyIsCut) {
  const auto patched = [](ValueRange range, Progress& progress) -> Result<ValueRange> {
    std::vector<InputSpec> inputs = text_inputs();
    MK_CHECK(apply_patches(inputs, {{"input_ids", std::nullopt, std::nullopt, range}}, progress));
    return *inputs[0].range;
  };
  testing::Warnings warnings;
  ASSERT_OK_AND(const auto within, patched({5, 30522}, warnings));
  EXPECT_EQ(within, (ValueRange{5, 30522}));
  EXPECT_TRUE(warnings.messages.empty());
  ASSERT_OK_AND(const auto beyond, patched({-1, 50000}, warnings));
  EXPECT_EQ(beyond, (ValueRange{0, 30522}));
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_NE(warnings.messages[0].find("[-1, 50000] of 'input_ids'"), std::string::npos);
  EXPECT_EQ(patched({40000, 50000}, warnings).error().code, ErrorCode::usage);
}

TEST(ExportConfig, OutputsAreRenamedInTheirOrder) {
  const auto renamed = [](std::vector<std::string> names,
                          Progress& progress = silent_progress()) -> Result<std::vector<std::string>> {
    std::vector<std::string> outputs{"last_hidden_state", "pooler_output"};
    MK_CHECK(rename_outputs(outputs, names, progress));
    return outputs;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(*renamed({}), (Names{"last_hidden_state", "pooler_output"}));
  EXPECT_EQ(*renamed({"pooler_output", "last_hidden_state"}), (Names{"last_hidden_state", "pooler_output"}));
  EXPECT_EQ(*renamed({"tokens", "sentence"}), (Names{"tokens", "sentence"}));
  EXPECT_EQ(*renamed({"last_hidden_state", "sentence"}), (Names{"last_hidden_state", "sentence"}));
  testing::Warnings warnings;
  EXPECT_EQ(*renamed({"tokens"}, warnings), (Names{"tokens", "pooler_output"}));
  EXPECT_EQ(warnings.messages.size(), 1u);
  EXPECT_EQ(renamed({"pooler_output", "x"}).error().code, ErrorCode::usage);
  EXPECT_EQ(renamed({"x", "x"}).error().code, ErrorCode::usage);
}

TEST(ExportConfig, ALayerChangesOnlyWhatItNames) {
  ASSERT_OK_AND(auto base, parse(R"({"opset_version": 18, "batch_size": 4,
      "input_tensors": [{"name": "a", "shape": [4, 8], "dtype": "int32"}, {"name": "b"}]})"));
  ASSERT_OK_AND(const auto over,
                parse(R"({"batch_size": 2, "input_tensors": [{"name": "a", "shape": [2, 8]}, {"name": "c"}]})"));
  merge_export_config(base, over);
  EXPECT_EQ(base.opset_version, 18);
  EXPECT_EQ(base.batch_size, 2);
  ASSERT_EQ(base.input_tensors.size(), 3u);
  EXPECT_EQ(to_string(*base.input_tensors[0].shape), "[2, 8]");
  EXPECT_EQ(*base.input_tensors[0].dtype, "int32");
  EXPECT_EQ(base.input_tensors[2].name, "c");
}

TEST(ExportConfig, PatchesAreByName) {
  std::vector<InputSpec> inputs = text_inputs();
  ASSERT_OK(apply_patches(inputs, {{"attention_mask", "int64", Shape{Dim::known(2), Dim::symbolic("s")}, std::nullopt}},
                          silent_progress()));
  EXPECT_EQ(inputs[1].type, DataType::int64);
  EXPECT_EQ(to_string(inputs[1].shape), "[2, s]");
  EXPECT_EQ(inputs[1].range, (ValueRange{0, 2}));
  EXPECT_EQ(to_string(inputs[0].shape), "[1, 512]");

  const Status unknown = apply_patches(inputs, {{"ids", std::nullopt, std::nullopt, std::nullopt}}, silent_progress());
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::usage);
  EXPECT_EQ(unknown.error().hint, "Its inputs are input_ids, attention_mask");
}

TEST(ExportConfig, DynamicAxesNameDimensions) {
  std::vector<InputSpec> inputs = text_inputs();
  ASSERT_OK(apply_dynamic_axes(inputs, {{"input_ids", {{0, "batch"}}}, {"logits", {{0, "batch"}}}}, {"logits"}));
  EXPECT_EQ(to_string(inputs[0].shape), "[batch, 512]");
  EXPECT_EQ(apply_dynamic_axes(inputs, {{"input_ids", {{2, "x"}}}}, {}).error().message,
            "dynamic axis 2 of 'input_ids' is beyond its rank 2");
  EXPECT_EQ(apply_dynamic_axes(inputs, {{"input_ids", {{0, "b"}}}}, {}).error().message,
            "conflicting dynamic axis for 'input_ids' axis 0: batch and b");
  EXPECT_EQ(apply_dynamic_axes(inputs, {{"pixels", {{0, "b"}}}}, {"logits"}).error().code, ErrorCode::usage);
}

TEST(ExportConfig, ShapeConfigTakesPositiveIntegers) {
  const Json good = Json::parse(R"({"sequence_length": 128})");
  ASSERT_OK_AND(const auto shapes, parse_shape_config(JsonView(good, "s.json", ErrorCode::usage)));
  EXPECT_EQ(shapes.at("sequence_length"), 128);
  for (const char* bad :
       {R"({"sequence_length": 0})", R"({"sequence_length": true})", R"({"sequence_length": 1.5})", "[]"}) {
    const Json json = Json::parse(bad);
    EXPECT_FALSE(parse_shape_config(JsonView(json, "s.json", ErrorCode::usage)).has_value()) << bad;
  }
}

}  // namespace
}  // namespace mk
