#include "export/graphs.h"

#include "testing/testing.h"

namespace mk {
namespace {

std::string graphs_for(const std::string& config, const GraphsRequest& request) {
  const auto choices = choose_graphs(ModelConfig::parse(config, "config.json").value(), request);
  if (!choices) return choices.error().to_string();
  std::string text;
  for (const ComponentChoice& graph : choices->graphs)
    text += (text.empty() ? "" : ", ") + (graph.name.empty() ? "" : graph.name + ": ") + graph.head.task;
  return text;
}

constexpr const char* bart =
    R"({"model_type": "bart", "architectures": ["BartForConditionalGeneration"], "is_encoder_decoder": true})";
constexpr const char* pair = "encoder: feature-extraction, decoder: text2text-generation";

// The rules of the composite registry (spec: loader, 5.3).
TEST(ChooseGraphs, ATaskThatNamesAPipelineIsThePair) {
  EXPECT_EQ(graphs_for(bart, {.task = "summarization"}), pair);
  EXPECT_EQ(graphs_for(bart, {.task = "table-question-answering"}), pair);
  EXPECT_EQ(graphs_for(bart, {}), pair);
}

TEST(ChooseGraphs, TheTaskOfADecoderIsTheDecoderAlone) {
  EXPECT_EQ(graphs_for(bart, {.task = "text2text-generation"}), "text2text-generation");
  EXPECT_EQ(graphs_for(bart, {.task = "feature-extraction"}), "feature-extraction");
}

TEST(ChooseGraphs, AClassifierIsOneGraph) {
  EXPECT_EQ(graphs_for(R"({"model_type": "bart", "architectures": ["BartForSequenceClassification"]})", {}),
            "text-classification");
}

TEST(ChooseGraphs, WhisperIsAlwaysThePair) {
  constexpr const char* whisper =
      R"({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "is_encoder_decoder": true})";
  EXPECT_EQ(graphs_for(whisper, {}), pair);
  EXPECT_EQ(graphs_for(whisper, {.task = "automatic-speech-recognition"}), pair);
}

TEST(ChooseGraphs, ASubmodelIsOneOfThem) {
  EXPECT_EQ(graphs_for(bart, {.submodel = "decoder"}), "decoder: text2text-generation");
  EXPECT_NE(graphs_for(bart, {.submodel = "decodr"}).find("Did you mean 'decoder'?"), std::string::npos);
  EXPECT_NE(graphs_for(bart, {.task = "text2text-generation", .submodel = "decoder"}).find("is one graph"),
            std::string::npos);
}

}  // namespace
}  // namespace mk
