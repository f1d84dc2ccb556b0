#include "hub/model_type.h"

#include "testing/testing.h"

namespace mk {
namespace {

const std::vector<KnownModelType> known{
    {"bert", {"BertModel", "BertForMaskedLM"}},
    {"distilbert", {"DistilBertModel"}},
    {"roberta", {"RobertaModel"}},
    {"xlm-roberta", {"XLMRobertaModel"}},
};

ModelRef hub(std::string id) { return {.kind = ModelRefKind::hub_id, .id = std::move(id)}; }
ModelRef local(std::string path) { return {.kind = ModelRefKind::folder, .local_path = std::move(path)}; }

std::string inferred(std::string_view json, const ModelRef& ref) {
  const auto config = ModelConfig::parse(json, "config.json");
  EXPECT_TRUE(config);
  return infer_model_type(*config, ref, known).value_or("none");
}

TEST(ModelType, FromNames) {
  EXPECT_EQ(inferred("{}", hub("google/BERT-tiny")), "bert");
  EXPECT_EQ(inferred("{}", hub("me/my-distilbert-v2")), "distilbert");
  EXPECT_EQ(inferred("{}", hub("me/xlm-roberta-base")), "xlm-roberta");
  EXPECT_EQ(inferred("{}", hub("bert/unknown")), "none");
  EXPECT_EQ(inferred("{}", local("/models/bert/unknown")), "none");
  EXPECT_EQ(inferred("{}", local("/models/roberta-small/")), "roberta");
}

TEST(ModelType, ASavedNameCountsFirstLocally) {
  constexpr std::string_view saved = R"({"_name_or_path": "org/roberta-base"})";
  EXPECT_EQ(inferred(saved, local("/models/bert-copy")), "roberta");
  EXPECT_EQ(inferred(saved, hub("org/bert-copy")), "bert");
  EXPECT_EQ(inferred(R"({"_name_or_path": "/home/me/roberta-base"})", local("/models/bert-copy")), "bert");
  EXPECT_EQ(inferred(R"({"_name_or_path": "./roberta"})", local("/models/bert-copy")), "bert");
}

TEST(ModelType, NeverAgainstTheArchitectures) {
  EXPECT_EQ(inferred(R"({"architectures": ["BertForMaskedLM"]})", hub("me/bert")), "bert");
  EXPECT_EQ(inferred(R"({"architectures": ["T5Model"]})", hub("me/bert")), "none");
}

}  // namespace
}  // namespace mk
