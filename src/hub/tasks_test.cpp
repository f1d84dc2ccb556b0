#include "hub/tasks.h"

#include <fstream>

#include "testing/testing.h"

namespace mk {
namespace {

ModelConfig config(std::string_view text) {
  auto parsed = ModelConfig::parse(text, "config.json");
  EXPECT_TRUE(parsed) << parsed.error().to_string();
  return std::move(*parsed);
}

TEST(Tasks, ThereAreForty) { EXPECT_EQ(known_tasks().size(), 40u); }

TEST(Tasks, Synonyms) {
  const std::pair<std::string_view, std::string_view> rows[] = {
      {"fill-mask", "fill-mask"},
      {"masked-lm", "fill-mask"},
      {"Masked_LM", "fill-mask"},
      {"causal-lm", "text-generation"},
      {"causal-lm-with-past", "text-generation-with-past"},
      {"text-generation-with-past", "text-generation-with-past"},
      {"summarization", "text2text-generation"},
      {"translation", "text2text-generation"},
      {"sequence-classification", "text-classification"},
      {"zero-shot-classification", "text-classification"},
      {"image-feature-extraction", "image-feature-extraction"},
      {"mask-generation", "mask-generation"},
      {"nonsense", "nonsense"},
  };
  for (const auto& [from, to] : rows) EXPECT_EQ(normalise_task(from), to);
}

TEST(Tasks, UnknownOnesAreUsageErrors) {
  ASSERT_OK(check_task("fill-mask"));
  ASSERT_OK(check_task("masked-lm"));
  ASSERT_OK(check_task("text-generation-with-past"));
  const auto status = check_task("fil-mask");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::usage);
  EXPECT_NE(status.error().hint.find("fill-mask"), std::string::npos);
  EXPECT_FALSE(check_task("quantum-chess"));
  EXPECT_FALSE(check_task(""));
}

struct ClassRow {
  std::string_view class_name, model_type, task;
};

// What transformers' and Optimum's tables say of these classes.
TEST(Tasks, OfClasses) {
  const ClassRow rows[] = {
      {"GPT2LMHeadModel", "gpt2", "text-generation"},
      {"LlamaForCausalLM", "llama", "text-generation"},
      {"T5ForConditionalGeneration", "t5", "text2text-generation"},
      {"BartForConditionalGeneration", "bart", "text2text-generation"},
      {"DetrForObjectDetection", "detr", "object-detection"},
      {"DetrForSegmentation", "detr", "image-segmentation"},
      {"BlipForConditionalGeneration", "blip", "image-text-to-text"},
      {"WhisperForConditionalGeneration", "whisper", "automatic-speech-recognition"},
      {"WhisperForAudioClassification", "whisper", "audio-classification"},
      {"Wav2Vec2ForSequenceClassification", "wav2vec2", "audio-classification"},
      {"Wav2Vec2ForSpeechClassification", "wav2vec2_emotion_regression", "audio-classification"},
      {"ViTModel", "vit", "image-feature-extraction"},
      {"ViTMAEForPreTraining", "vit_mae", "image-feature-extraction"},
      {"BertModel", "bert", "feature-extraction"},
      {"Wav2Vec2Model", "wav2vec2", "feature-extraction"},
      {"TFBertForMaskedLM", "bert", "fill-mask"},
      {"FlaxBertForMaskedLM", "bert", "fill-mask"},
      {"BertForNextSentencePrediction", "bert", "next-sentence-prediction"},
      {"DeiTForImageClassificationWithTeacher", "deit", "image-classification"},
      {"DPTForDepthEstimation", "dpt", "depth-estimation"},
      {"SamModel", "sam", "mask-generation"},
      {"CLIPVisionModelWithProjection", "clip_vision_model", "image-feature-extraction"},
      {"FlaubertWithLMHeadModel", "flaubert", "fill-mask"},
      {"Mystery", "mystery", ""},
      {"", "", ""},
  };
  for (const ClassRow& row : rows) EXPECT_EQ(task_of_class(row.class_name, row.model_type), row.task) << row.class_name;
}

struct ChoiceRow {
  std::string_view config;
  TaskRequest request;
  std::string_view task, name, source;
};

TEST(Tasks, AreChosenInOrder) {
  constexpr std::string_view bert = R"({"model_type": "bert", "architectures": ["BertForMaskedLM"]})";
  const ChoiceRow rows[] = {
      {bert, {}, "fill-mask", "fill-mask", "tasks-manager"},
      {bert, {.task = "text-classification"}, "text-classification", "text-classification", "user-task"},
      {bert, {.task = "masked-lm"}, "fill-mask", "masked-lm", "user-task"},
      {R"({"model_type": "vit"})",
       {.task = "feature-extraction"},
       "image-feature-extraction",
       "feature-extraction",
       "user-task"},
      {bert, {.model_class = "BertModel"}, "feature-extraction", "feature-extraction", "user-class"},
      {bert, {.task = "fill-mask", .model_class = "BertModel"}, "fill-mask", "fill-mask", "user-class"},
      {bert, {.model_id = "prajjwal1/bert-tiny"}, "feature-extraction", "feature-extraction", "model-id-default"},
      {bert, {.model_id = "prajjwal1/bert-tiny@main"}, "feature-extraction", "feature-extraction", "model-id-default"},
      {R"({"model_type": "sam", "architectures": ["SamModel"]})",
       {},
       "mask-generation",
       "mask-generation",
       "sentinel-default"},
      {R"({"model_type": "sam2_video"})", {}, "mask-generation", "mask-generation", "sentinel-default"},
      {R"({"model_type": "vitpose", "architectures": ["VitPoseForPoseEstimation"]})",
       {},
       "keypoint-detection",
       "keypoint-detection",
       "sentinel-default"},
      {R"({"model_type": "bert"})",
       {.first_task = "feature-extraction"},
       "feature-extraction",
       "feature-extraction",
       "wrapped-library"},
      {R"({"model_type": "bart", "architectures": ["BartForMaskedLM"], "is_encoder_decoder": true})",
       {},
       "text2text-generation",
       "text2text-generation",
       "tasks-manager"},
      {R"({"model_type": "bart", "architectures": ["BartForConditionalGeneration"], "is_encoder_decoder": true})",
       {},
       "text2text-generation",
       "text2text-generation",
       "tasks-manager"},
      {R"({"model_type": "bart", "architectures": ["BartForSequenceClassification"], "is_encoder_decoder": true})",
       {},
       "text-classification",
       "text-classification",
       "tasks-manager"},
  };
  for (const ChoiceRow& row : rows) {
    SCOPED_TRACE(row.config);
    ASSERT_OK_AND(const TaskChoice choice, choose_task(config(row.config), row.request));
    EXPECT_EQ(choice.task, row.task);
    EXPECT_EQ(choice.name, row.name);
    EXPECT_EQ(name_of(choice.source), row.source);
  }
}

TEST(Tasks, NothingIsGuessed) {
  for (const auto& [text, request] : std::initializer_list<std::pair<std::string_view, TaskRequest>>{
           {R"({"model_type": "bert"})", {}},
           {R"({"architectures": ["Mystery"]})", {}},
           {R"({"architectures": ["BertModel"]})", {.task = "nonsense"}},
           {R"({"architectures": ["BertModel"]})", {.model_class = "Mystery"}}}) {
    const auto choice = choose_task(config(text), request);
    ASSERT_FALSE(choice) << text;
    EXPECT_EQ(choice.error().code, ErrorCode::usage);
    EXPECT_NE(choice.error().to_string().find("--task"), std::string::npos);
  }
}

TEST(Tasks, OfClassesThatTransformersSaved) {
  std::ifstream rows(testing::repository("tests/data/hub/tasks_of_classes.txt"));
  std::string line;
  std::getline(rows, line);
  int count = 0;
  for (std::string class_name, model_type, task; rows >> class_name >> model_type >> task; ++count)
    EXPECT_EQ(task_of_class(class_name, model_type), task) << class_name;
  EXPECT_GT(count, 100);
}

}  // namespace
}  // namespace mk
