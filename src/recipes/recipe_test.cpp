#include "recipes/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::TemporaryFolder;

// The contract's vectors.
TEST(RecipeName, StemsOfTheContract) {
  struct Row {
    std::string_view stem;
    RecipeName name;
  };
  const std::vector<Row> rows{
      {"image-classification_fp16_config", {"image-classification", "fp16", ""}},
      {"image-to-text_fp16_config_encoder", {"image-to-text", "fp16", "encoder"}},
      {"zero-shot-image-classification_w8a16_config_image-encoder",
       {"zero-shot-image-classification", "w8a16", "image-encoder"}},
      {"translation_fp16_encoder_config", {"translation", "fp16", "encoder"}},
      {"translation_fp32_decoder_config", {"translation", "fp32", "decoder"}},
      {"inpainting_fp16_config", {"inpainting", "fp16", ""}},
      {"image-classification_int4_config", {"image-classification_int4", "", ""}},
      {"image-classification_int4_encoder_config", {"image-classification_int4_encoder", "", ""}},
      {"x_fp16_fp32_config", {"x", "fp16", "fp32"}},
      {"x_fp16", {"x", "fp16", ""}},
      {"notes", {"notes", "", ""}},
  };
  for (const Row& row : rows) EXPECT_EQ(parse_recipe_name(row.stem), row.name) << row.stem;
}

TEST(RecipeName, SlugsAndProviders) {
  EXPECT_EQ(recipe_slug("microsoft/resnet-50"), "microsoft_resnet-50");
  EXPECT_EQ(recipe_slug("a/b/c"), "a_b/c");
  EXPECT_EQ(recipe_ep("QNNExecutionProvider"), "qnn");
  EXPECT_EQ(recipe_ep("ov"), "openvino");
  EXPECT_EQ(recipe_ep("MLAS"), "cpu");
}

class Recipes : public ::testing::Test {
 protected:
  void put(const std::string& below, const std::vector<std::string>& names) {
    for (const std::string& name : names) folder_.write(Path(below) / (name + ".json"), "{}");
  }
  // "fp16 w8a16(encoder,decoder)"
  std::string found(std::string_view model, std::string_view task, std::optional<std::string> ep = {},
                    std::optional<std::string> device = {}) {
    const auto variants = find_recipes(folder_.path(), model, task, ep, device);
    if (!variants) return variants.error().to_string();
    std::vector<std::string> texts;
    for (const RecipeVariant& variant : *variants) {
      std::vector<std::string> roles;
      for (const Recipe& recipe : variant.components) roles.push_back(recipe.name.role);
      texts.push_back(variant.precision +
                      (variant.is_composite() ? fmt::format("({})", fmt::join(roles, ",")) : std::string()));
    }
    return fmt::format("{}", fmt::join(texts, " "));
  }
  TemporaryFolder folder_;
};

TEST_F(Recipes, DiscoveryVectorsOfTheContract) {
  put("org_a", {"fill-mask_w8a16_config", "fill-mask_fp16_config", "fill-mask-x_fp16_config", "notes"});
  put("org_a/qnn/npu", {"fill-mask_w8a16_config"});
  put("org_b", {"fill-mask_w8a8_config", "fill-mask_fp32_config", "fill-mask_fp16_config"});
  put("marian/cpu/cpu", {"translation_fp16_encoder_config", "translation_fp16_decoder_config",
                         "translation_fp32_encoder_config", "translation_fp32_decoder_config"});
  put("trocr", {"image-to-text_fp16_config_decoder", "image-to-text_fp16_config_encoder"});
  EXPECT_EQ(found("org/a", "fill-mask"), "fp16 w8a16");
  EXPECT_EQ(found("org/b", "fill-mask"), "fp16 fp32 w8a8");
  EXPECT_EQ(found("org/a", "fill-mask", "qnn", "npu"), "w8a16");
  EXPECT_EQ(found("org/a", "fill-mask", "QNNExecutionProvider", "NPU"), "w8a16");
  EXPECT_EQ(found("org/a", "fill-mask", "qnn", "gpu"), "fp16 w8a16");
  EXPECT_EQ(found("org/a", "fill-mask", {}, "npu"), "fp16 w8a16");
  EXPECT_EQ(found("marian", "translation", "cpu", "cpu"), "fp16(decoder,encoder) fp32(decoder,encoder)");
  EXPECT_EQ(found("marian", "translation", "dml", "gpu"), "");
  EXPECT_EQ(found("trocr", "image-to-text"), "fp16(encoder,decoder)");
  EXPECT_EQ(found("nobody/knows", "fill-mask"), "");
  ASSERT_OK_AND(const auto all, list_recipes(folder_.path()));
  EXPECT_EQ(all.size(), 13u);
}

TEST_F(Recipes, CopiesNeverReplace) {
  put("org_a/qnn/npu", {"fill-mask_w8a16_config", "fill-mask_fp16_config"});
  folder_.write("org_a/openvino/npu/fill-mask_fp16_config.json", "mine");
  ASSERT_OK_AND(const auto made, copy_recipes(folder_.path(), {"qnn", "npu"}, {"ov", "NPU"}, {}));
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0], folder_.path() / "org_a/openvino/npu/fill-mask_w8a16_config.json");
  ASSERT_OK_AND(const std::string kept, read_text(folder_.path() / "org_a/openvino/npu/fill-mask_fp16_config.json"));
  EXPECT_EQ(kept, "mine");
  EXPECT_FALSE(copy_recipes(folder_.path(), {"qnn", "npu"}, {"QNNExecutionProvider", "npu"}, {}));
  EXPECT_FALSE(copy_recipes(folder_.path(), {"qnn", "npu"}, {"dml", "npu"}, {}));
  EXPECT_FALSE(copy_recipes(folder_.path(), {"qnn", "npu"}, {"nonsense", "npu"}, {}));
}

TEST_F(Recipes, CheckSaysWhatIsWrong) {
  const auto problems = [&](const std::string& file, std::string_view text) -> std::vector<std::string> {
    const Path path = folder_.write(Path("microsoft_resnet-50") / (file + ".json"), text);
    const auto found = check_recipe({path, "microsoft_resnet-50", "", parse_recipe_name(file)});
    return found ? *found : std::vector{found.error().to_string()};
  };
  const std::string good = R"({"export": {"opset_version": 17, "input_tensors": [{"name": "x", "shape": [1, 3]}]},
    "optim": {}, "quant": null, "compile": null, "loader": {"task": "image-classification", "model_type": "resnet"},
    "eval": {"task": "image-classification"}})";
  EXPECT_TRUE(problems("image-classification_fp32_config", good).empty());
  EXPECT_EQ(problems("image-classification_fp16_config", good),
            (std::vector<std::string>{"the name says fp16 and the quant section makes fp32"}));
  const std::string bad = R"({"export": {"opset_version": 13, "input_tensors": [{"name": "x", "shape": ["n", 3]}]},
    "optim": {}, "quant": {"mode": "static", "weight_type": "uint8", "activation_type": "uint16", "smaples": 3,
    "task": "fill-mask", "model_id": "other/model"}, "compile": {"execution_provider": "qnn"},
    "loader": {"task": "fill-mask", "model_type": "resnet"}, "eval": {"task": "fill-mask"}})";
  const auto found = problems("image-classification_w8a8_config", bad);
  ASSERT_EQ(found.size(), 8u) << fmt::format("{}", fmt::join(found, "\n"));
  EXPECT_NE(found[0].find("unknown key 'smaples'"), std::string::npos) << found[0];
  EXPECT_NE(found[0].find("#/quant/smaples"), std::string::npos) << found[0];
  EXPECT_NE(found[0].find("Did you mean 'samples'?"), std::string::npos) << found[0];
  EXPECT_EQ(found[1], "the name says w8a8 and the quant section makes w8a16");
  EXPECT_EQ(found[2], "the name says image-classification and loader.task is fill-mask");
  EXPECT_EQ(found[5], "the input x has a dynamic shape");
  EXPECT_EQ(found[6], "quant.model_id is other/model, and the folder is microsoft_resnet-50");
  EXPECT_EQ(problems("image-classification_fp32_config", "{").size(), 1u);
}

}  // namespace
}  // namespace mk
