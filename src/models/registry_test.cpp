#include "models/registry.h"

#include "models/family.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/config_reader.h"
#include "testing/testing.h"

namespace mk {
namespace {

ModelConfig config_of(const std::string& text) { return ModelConfig::parse(text, "config.json").value(); }

std::string shapes_of(const Result<std::vector<InputSpec>>& inputs) {
  if (!inputs) return inputs.error().to_string();
  std::string text;
  for (const InputSpec& input : *inputs)
    text += fmt::format("{}{} {} {} [{}, {})", text.empty() ? "" : "; ", input.name, name_of(input.type),
                        to_string(input.shape), input.range->low, input.range->high);
  return text;
}

Result<std::vector<InputSpec>> inputs_of(const std::string& text, std::string_view task,
                                         const ShapeRequest& shapes = {}, const PreprocessorFacts& facts = {}) {
  const ModelConfig config = config_of(text);
  MK_TRY(const HeadChoice choice, choose_head(config, task));
  return default_inputs(config, choice, shapes, facts);
}

TEST(RegistryTest, TypesAreFoundByAnySpelling) {
  EXPECT_EQ(find_model_type("XLM_Roberta")->model_type, "xlm-roberta");
  EXPECT_EQ(find_model_type("vit")->heads.front().class_name, "ViTModel");
  EXPECT_FALSE(find_model_type("vits"));
  const std::vector<ModelTypeInfo> types = model_types();
  EXPECT_TRUE(std::is_sorted(types.begin(), types.end(), [](const ModelTypeInfo& a, const ModelTypeInfo& b) {
    return a.model_type < b.model_type;
  }));
}

TEST(RegistryTest, TheArchitectureOfTheConfigServesItsTask) {
  const ModelConfig teacher =
      config_of(R"({"model_type": "deit", "architectures": ["DeiTForImageClassificationWithTeacher"]})");
  EXPECT_EQ(choose_head(teacher, "image-classification")->class_name, "DeiTForImageClassificationWithTeacher");
  EXPECT_EQ(choose_head(teacher, "image-feature-extraction")->class_name, "DeiTModel");
  EXPECT_EQ(choose_head(config_of(R"({"model_type": "deit"})"), "image-classification")->class_name,
            "DeiTForImageClassification");
  const ModelConfig camembert = config_of(R"({"model_type": "camembert", "architectures": ["CamembertForMaskedLM"]})");
  EXPECT_EQ(choose_head(camembert, "question-answering")->class_name, "CamembertForQuestionAnswering");
}

TEST(RegistryTest, FeatureExtractionOfAVisionModelIsThatOfImages) {
  const Result<HeadChoice> choice = choose_head(config_of(R"({"model_type": "convnext"})"), "feature-extraction");
  ASSERT_OK(choice);
  EXPECT_EQ(choice->task, "image-feature-extraction");
}

TEST(RegistryTest, UnknownTypesAndTasksAreNamed) {
  const Result<HeadChoice> type = choose_head(config_of(R"({"model_type": "distillbert"})"), "fill-mask");
  ASSERT_FALSE(type);
  EXPECT_EQ(type.error().code, ErrorCode::unsupported);
  EXPECT_EQ(type.error().hint, "Did you mean \"distilbert\"?");
  const Result<HeadChoice> strange = choose_head(config_of(R"({"model_type": "novel-thing"})"), "fill-mask");
  ASSERT_FALSE(strange);
  EXPECT_TRUE(strange.error().hint.starts_with("Those that can are ")) << strange.error().hint;
  const Result<HeadChoice> task = choose_head(config_of(R"({"model_type": "resnet"})"), "fill-mask");
  ASSERT_FALSE(task);
  EXPECT_EQ(task.error().code, ErrorCode::usage);
  EXPECT_EQ(task.error().hint, "They have image-classification, image-feature-extraction");
}

// The vectors of the contract: export, shape resolution.
TEST(RegistryTest, TextShapesAreThoseOfTheContract) {
  EXPECT_EQ(shapes_of(inputs_of(R"({"model_type": "bert"})", "fill-mask")),
            "input_ids int32 [1, 512] [0, 30522); attention_mask int32 [1, 512] [0, 2); "
            "token_type_ids int32 [1, 512] [0, 2)");
  EXPECT_EQ(shapes_of(inputs_of(R"({"model_type": "roberta", "max_position_embeddings": 514})", "fill-mask")),
            "input_ids int32 [1, 512] [0, 50265); attention_mask int32 [1, 512] [0, 2)");
  EXPECT_EQ(shapes_of(inputs_of(R"({"model_type": "distilbert", "max_position_embeddings": 8192})", "fill-mask")),
            "input_ids int32 [1, 1024] [0, 30522); attention_mask int32 [1, 1024] [0, 2)");
  EXPECT_EQ(shapes_of(inputs_of(R"({"model_type": "bert", "type_vocab_size": 5})", "fill-mask",
                                {3, {{"sequence_length", 128}}})),
            "input_ids int32 [3, 128] [0, 30522); attention_mask int32 [3, 128] [0, 2); "
            "token_type_ids int32 [3, 128] [0, 5)");
  EXPECT_EQ(shapes_of(inputs_of(R"({"model_type": "distilbert"})", "multiple-choice", {1, {{"sequence_length", 7}}})),
            "input_ids int32 [1, 4, 7] [0, 30522); attention_mask int32 [1, 4, 7] [0, 2)");
}

TEST(RegistryTest, SequencesBeyondTheModelsPositionsAreRefused) {
  const Result<std::vector<InputSpec>> inputs = inputs_of(
      R"({"model_type": "roberta", "max_position_embeddings": 514})", "fill-mask", {1, {{"sequence_length", 514}}});
  ASSERT_FALSE(inputs);
  EXPECT_EQ(inputs.error().code, ErrorCode::usage);
  EXPECT_EQ(inputs.error().message, "sequence_length is 514, and the model takes 1 to 512");
}

TEST(RegistryTest, ImageShapesAreThoseOfTheContract) {
  const PreprocessorFacts of_224{224, 224}, of_384{384, 384};
  EXPECT_EQ(shapes_of(inputs_of(R"({"model_type": "resnet"})", "image-classification", {}, of_224)),
            "pixel_values float32 [1, 3, 224, 224] [0, 1)");
  EXPECT_EQ(shapes_of(inputs_of(R"({"model_type": "resnet"})", "image-classification")),
            "pixel_values float32 [1, 3, 64, 64] [0, 1)");
  EXPECT_EQ(shapes_of(inputs_of(R"({"model_type": "convnext"})", "image-classification", {}, of_384)),
            "pixel_values float32 [1, 3, 384, 384] [0, 1)");
  EXPECT_EQ(shapes_of(inputs_of(R"({"model_type": "convnext", "num_channels": 1})", "image-classification",
                                {2, {{"height", 100}}})),
            "pixel_values float32 [2, 1, 100, 224] [0, 1)");
}

// What transformers counts for bert-base-uncased, vit-base-patch16-224 and resnet-50.
TEST(RegistryTest, AModelCanBeLookedAtWithoutWeights) {
  const auto parameters = [](const char* config, std::string_view task) -> std::int64_t {
    const ModelConfig model = config_of(config);
    const auto head = choose_head(model, task);
    if (!head) return -1;
    const auto inputs = default_inputs(model, *head, {}, {});
    if (!inputs) return -2;
    const auto built = build_graph(model, *head, Checkpoint(), *inputs, {.assume_weights = true});
    return built ? built->parameter_count : -3;
  };
  EXPECT_EQ(parameters(R"({"model_type": "bert"})", "fill-mask"), 109'514'298);
  EXPECT_EQ(parameters(R"({"model_type": "vit", "num_labels": 1000})", "image-classification"), 86'567'656);
}

// A processor may resize to 256 and crop to the 224 that the positions are for.
TEST(RegistryTest, AVisionTransformerTakesTheSizeOfItsPositions) {
  EXPECT_EQ(shapes_of(inputs_of(R"({"model_type": "deit"})", "image-classification", {}, {256, 256})),
            "pixel_values float32 [1, 3, 224, 224] [0, 1)");
  const Result<std::vector<InputSpec>> other =
      inputs_of(R"({"model_type": "vit", "image_size": [32, 48]})", "image-classification", {1, {{"height", 48}}});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::usage);
  EXPECT_EQ(other.error().message,
            "an image of 48 x 48 was asked for, and the model takes 32 x 48 only (height x width)");
}

TEST(RegistryTest, ConfigurationsThatCannotBeAreRefused) {
  for (const char* text : {
           R"({"model_type": "bert", "hidden_size": 30, "num_attention_heads": 4})",
           R"({"model_type": "bert", "hidden_size": -768})",
           R"({"model_type": "bert", "num_hidden_layers": 1000000000})",
           R"({"model_type": "bert", "hidden_size": "768"})",
           R"({"model_type": "bert", "pruned_heads": {"zero": [1]}})",
           R"({"model_type": "bert", "num_attention_heads": 2, "pruned_heads": {"0": [0, 1, 0]}})",
           R"({"model_type": "roberta", "pad_token_id": -9223372036854775808})",
           R"({"model_type": "roberta", "max_position_embeddings": 2})",
           R"({"model_type": "distilbert", "dim": 31})",
       }) {
    const Result<std::vector<InputSpec>> inputs = inputs_of(text, "fill-mask");
    ASSERT_FALSE(inputs) << text;
    EXPECT_EQ(inputs.error().code, ErrorCode::malformed) << text;
  }
  for (const char* text : {
           R"({"model_type": "resnet", "layer_type": "wide"})",
           R"({"model_type": "resnet", "depths": [1, 2]})",
           R"({"model_type": "resnet", "depths": [1, 2147483647, 1, 1]})",
           R"({"model_type": "convnext", "num_stages": 3})",
           R"({"model_type": "vit", "image_size": 0})",
       })
    EXPECT_FALSE(inputs_of(text, "image-classification")) << text;
  const Result<std::vector<InputSpec>> decoder =
      inputs_of(R"({"model_type": "bert", "is_decoder": true})", "fill-mask");
  ASSERT_FALSE(decoder);
  EXPECT_EQ(decoder.error().code, ErrorCode::unsupported);
}

// A checkpoint without tensors is enough for what is said of inputs.
std::string refusal(const std::string& text, std::string_view task, const std::vector<InputSpec>& inputs,
                    const BuildOptions& options = {}) {
  const ModelConfig config = config_of(text);
  const Result<HeadChoice> choice = choose_head(config, task);
  const Result<BuiltGraph> built = build_graph(config, *choice, Checkpoint(), inputs, options);
  EXPECT_FALSE(built);
  return built ? "" : std::string(name_of(built.error().code)) + ": " + built.error().message;
}

InputSpec spec(const std::string& name, DataType type, Shape shape) { return {name, type, std::move(shape), {}}; }

TEST(RegistryTest, InputsThatAGraphCannotTakeAreRefused) {
  const std::string bert = R"({"model_type": "bert"})", vit = R"({"model_type": "vit"})";
  const InputSpec ids = spec("input_ids", DataType::int64, static_shape({2, 8}));
  EXPECT_EQ(refusal(bert, "fill-mask", {}), "usage: BertForMaskedLM needs input_ids among its inputs");
  EXPECT_EQ(refusal(bert, "fill-mask", {ids, spec("pixel_values", DataType::float32, static_shape({1}))}),
            "usage: BertForMaskedLM has no input pixel_values");
  EXPECT_EQ(refusal(bert, "fill-mask", {ids, ids}), "usage: the input input_ids is there twice");
  EXPECT_EQ(refusal(bert, "fill-mask", {ids, spec("attention_mask", DataType::int64, static_shape({2, 9}))}),
            "usage: attention_mask has shape [2, 9], expected that of input_ids, [2, 8]");
  EXPECT_EQ(refusal(bert, "fill-mask", {spec("input_ids", DataType::float32, static_shape({2, 8}))}),
            "usage: input_ids is float32, expected int32 or int64");
  EXPECT_EQ(refusal(bert, "multiple-choice", {ids}),
            "usage: input_ids has shape [2, 8], expected [batch, choices, sequence]");
  EXPECT_EQ(refusal(bert, "fill-mask", {spec("input_ids", DataType::int64, static_shape({2, 0}))}),
            "usage: the input input_ids has shape [2, 0]");
  EXPECT_EQ(refusal(bert, "fill-mask", {spec("input_ids", DataType::int64, static_shape({2, INT64_MAX}))}),
            "usage: the input input_ids is too large: [2, 9223372036854775807]");
  EXPECT_EQ(refusal(bert, "fill-mask", {spec("input_ids", DataType::int64, static_shape({1, 513}))}),
            "usage: a length of 513 is beyond the model's 512 positions");
  EXPECT_EQ(
      refusal(vit, "image-classification", {spec("pixel_values", DataType::float32, static_shape({1, 3, 224, 448}))}),
      "usage: pixel_values has an image of 224 x 448, and the model takes 224 x 224 only (height x width)");
  EXPECT_EQ(refusal(vit, "image-classification",
                    {spec("pixel_values", DataType::float32,
                          {Dim::known(1), Dim::known(3), Dim::symbolic("height"), Dim::known(224)})}),
            "usage: pixel_values has an image of height x 224, and the model takes 224 x 224 only (height x width)");
  EXPECT_EQ(
      refusal(vit, "image-classification", {spec("pixel_values", DataType::float32, static_shape({1, 1, 224, 224}))}),
      "usage: pixel_values has 1 channels, and the model takes 3");
}

TEST(RegistryTest, SizesThatDecideTheGraphCannotBeDynamic) {
  const auto dynamic = [](const char* type, std::string_view task) {
    return refusal(fmt::format(R"({{"model_type": "{}"}})", type), task,
                   {spec("pixel_values", DataType::float32,
                         {Dim::known(1), Dim::known(3), Dim::symbolic("height"), Dim::known(224)})});
  };
  const std::string message = "usage: height and width of pixel_values are dynamic, and ";
  EXPECT_EQ(dynamic("swin", "image-classification"), message + "windows need them fixed");
  EXPECT_EQ(dynamic("dinov2", "image-classification"), message + "positions need them fixed");
  EXPECT_EQ(dynamic("beit", "image-classification"), message + "positions need them fixed");
  EXPECT_EQ(dynamic("mobilevit", "image-classification"), message + "patches need them fixed");
  EXPECT_EQ(dynamic("mobilenet_v2", "image-classification"), message + "paddings need them fixed");
  EXPECT_EQ(dynamic("segformer", "image-segmentation"), message + "stages need them fixed");
  EXPECT_EQ(dynamic("yolos", "object-detection"), message + "positions need them fixed");
}

TEST(RegistryTest, OptionsThatAGraphCannotHaveAreRefused) {
  const std::string bert = R"({"model_type": "bert"})";
  const InputSpec ids = spec("input_ids", DataType::int64, static_shape({2, 8}));
  EXPECT_EQ(refusal(bert, "fill-mask", {ids}, {.opset = 12}), "usage: opset 12 is not one that can be exported");
  EXPECT_EQ(refusal(bert, "fill-mask", {ids}, {.float_type = DataType::int8}),
            "usage: weights cannot be exported as int8");
}

TEST(RegistryTest, SaysWhyATypeIsRefused) {
  const auto error = [](const std::string& type) {
    const auto config = ModelConfig::parse(R"({"model_type": ")" + type + "\"}", "config.json");
    return choose_head(*config, "feature-extraction").error();
  };
  EXPECT_EQ(error("mu2").code, ErrorCode::unsupported);
  EXPECT_NE(error("mu2").message.find("remote code"), std::string::npos);
  EXPECT_NE(error("unlimited-ocr").message.find("remote code"), std::string::npos);
  EXPECT_NE(error("sam3_tracker").hint.find("onnx/vision_encoder.onnx"), std::string::npos);
}

TEST(RegistryTest, ModelsOfTwoTowersHaveTheInputsOfEach) {
  const char* clip = R"({"model_type": "clip", "text_config": {"max_position_embeddings": 20, "vocab_size": 50},
                         "vision_config": {"image_size": 28, "patch_size": 7}})";
  ASSERT_OK_AND(const ModelConfig config, ModelConfig::parse(clip, "config.json"));
  ASSERT_OK_AND(const HeadChoice text, choose_head(config, "feature-extraction"));
  EXPECT_EQ(text.class_name, "CLIPTextModelWithProjection");
  ASSERT_OK_AND(const std::vector<InputSpec> tokens, default_inputs(config, text, {}));
  ASSERT_EQ(tokens.size(), 2u);
  EXPECT_EQ(to_string(tokens[0].shape), "[1, 20]");
  EXPECT_EQ(tokens[0].range->high, 50);
  ASSERT_OK_AND(const HeadChoice image, choose_head(config, "image-feature-extraction"));
  ASSERT_OK_AND(const std::vector<InputSpec> pixels, default_inputs(config, image, {}));
  ASSERT_EQ(pixels.size(), 1u);
  EXPECT_EQ(to_string(pixels[0].shape), "[1, 3, 28, 28]");
  EXPECT_FALSE(default_inputs(config, image, {.values = {{"height", 56}, {"width", 56}}}));
}

// The contract of SAM's mask decoder at its real sizes.
TEST(RegistryTest, MaskDecodersTakePointsAndFeatures) {
  const auto shapes = [](const char* type) {
    const auto config = ModelConfig::parse(std::string(R"({"model_type": ")") + type + "\"}", "config.json");
    const auto head = choose_head(*config, "mask-generation");
    std::string listed;
    const Result<std::vector<InputSpec>> inputs = default_inputs(*config, *head, {});
    for (const InputSpec& input : *inputs) listed += input.name + to_string(input.shape) + " ";
    return listed;
  };
  const std::string sam =
      "input_points[1, 1, 5, 2] input_labels[1, 1, 5] image_embeddings[1, 256, 64, 64] mask_input[1, 1, 256, 256] "
      "use_mask_input[1] ";
  EXPECT_EQ(shapes("sam"), sam);
  EXPECT_EQ(shapes("sam2"), sam + "high_res_features0[1, 256, 256, 256] high_res_features1[1, 256, 128, 128] ");
}

// A component that names no row of its family could never be exported.
TEST(RegistryTest, EveryComponentIsAHead) {
  for (const ModelTypeInfo& type : model_types()) {
    const std::string text = R"({"model_type": ")" + std::string(type.model_type) + "\"}";
    ASSERT_OK_AND(const ModelConfig config, ModelConfig::parse(text, "config.json"));
    for (const CompositeChoice& composite : composites(type.model_type)) {
      EXPECT_FALSE(composite.tasks.empty()) << type.model_type;
      for (const ComponentChoice& part : composite.components)
        EXPECT_TRUE(models::find_head(config, part.head))
            << type.model_type << " " << part.name << ": " << part.head.class_name << " for " << part.head.task;
    }
  }
  EXPECT_TRUE(composites("bert").empty());
}

TEST(ConfigReader, SectionsShareTheFirstError) {
  ASSERT_OK_AND(const ModelConfig config, ModelConfig::parse(R"({"text_config": {"hidden_size": 12}})", "config.json"));
  models::ConfigReader fields(config);
  EXPECT_EQ(fields.section("text_config").size("hidden_size", 768), 12);
  EXPECT_EQ(fields.section("vision_config").size("hidden_size", 768), 768);
  EXPECT_TRUE(fields.status());
  ASSERT_OK_AND(const ModelConfig broken, ModelConfig::parse(R"({"text_config": {"hidden_size": 0}})", "config.json"));
  models::ConfigReader reader(broken);
  reader.section("text_config").size("hidden_size", 768);
  ASSERT_FALSE(reader.status());
  EXPECT_EQ(reader.status().error().code, ErrorCode::malformed);
}

}  // namespace
}  // namespace mk
