#include "checkpoint/config.h"

#include <cmath>

#include "base/json.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::TemporaryFolder;

ModelConfig config(std::string_view text) {
  auto parsed = ModelConfig::parse(text, "config.json");
  EXPECT_TRUE(parsed) << parsed.error().to_string();
  return std::move(*parsed);
}

template <typename T>
std::string error_of(const Result<T>& result) {
  return result ? std::string("no error") : result.error().to_string();
}

TEST(ModelConfig, ReadsFieldsByName) {
  const ModelConfig c =
      config(R"({"model_type": "bert", "architectures": ["BertModel"], "hidden_size": 384, "eps": 1e-12,
    "use": true, "act": "gelu", "sizes": [1, 2], "names": ["a", "b"], "nothing": null, "float_int": 12.0})");
  EXPECT_EQ(c.model_type(), "bert");
  EXPECT_EQ(c.architectures(), std::vector<std::string>{"BertModel"});
  EXPECT_EQ(c.integer("hidden_size", 768), 384);
  EXPECT_EQ(c.integer("float_int", 1), 12);
  EXPECT_EQ(c.integer("absent", 768), 768);
  EXPECT_EQ(c.integer("nothing", 768), 768);
  EXPECT_EQ(c.number("eps", 1e-5), 1e-12);
  EXPECT_EQ(c.number("hidden_size", 1), 384.0);
  EXPECT_EQ(c.boolean("use", false), true);
  EXPECT_EQ(c.string("act", "relu"), "gelu");
  EXPECT_EQ(c.integers("sizes", {}), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(c.strings("names", {}), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(c.has("act"));
  EXPECT_FALSE(c.has("nothing"));
  EXPECT_FALSE(c.has("absent"));
}

TEST(ModelConfig, PairsMayBeOneNumber) {
  const ModelConfig c = config(R"({"a": 224, "b": [224, 192], "c": [16], "d": [], "e": [1, 2, 3], "f": "x"})");
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(c.pair("a", 1), Pair(224, 224));
  EXPECT_EQ(c.pair("b", 1), Pair(224, 192));
  EXPECT_EQ(c.pair("c", 1), Pair(16, 16));
  EXPECT_EQ(c.pair("absent", 1), Pair(1, 1));
  for (const std::string_view key : {"d", "e", "f"})
    EXPECT_NE(error_of(c.pair(key, 1)).find("config.json#/"), std::string::npos);
}

TEST(ModelConfig, ErrorsPoint) {
  const ModelConfig c =
      config(R"({"text_config": {"hidden_size": "wide", "inner": {"n": [1, "x"]}}, "model_type": "clip"})");
  ASSERT_OK_AND(const ModelConfig text, c.section("text_config"));
  EXPECT_EQ(text.model_type(), "");
  EXPECT_NE(error_of(text.integer("hidden_size", 1)).find("(config.json#/text_config/hidden_size)"), std::string::npos);
  ASSERT_OK_AND(const ModelConfig inner, text.section("inner"));
  EXPECT_NE(error_of(inner.integers("n", {})).find("(config.json#/text_config/inner/n"), std::string::npos);
  EXPECT_NE(error_of(c.section("vision_config")).find("config.json#/vision_config"), std::string::npos);
  EXPECT_NE(error_of(c.boolean("model_type", true)).find("config.json#/model_type"), std::string::npos);
}

TEST(ModelConfig, SectionsOutliveTheWhole) {
  auto section = config(R"({"a": {"b": 3}})").section("a");
  ASSERT_OK(section);
  EXPECT_EQ(section->integer("b", 0), 3);
}

TEST(ModelConfig, TakesAnotherType) {
  const ModelConfig c = config(R"({"hidden_size": 8})");
  EXPECT_EQ(c.with_model_type("bert").model_type(), "bert");
  EXPECT_EQ(c.with_model_type("bert").integer("hidden_size", 0), 8);
  EXPECT_EQ(c.model_type(), "");
}

TEST(ModelConfig, TakesPythonsNumbers) {
  const ModelConfig c = config(R"({"low": -Infinity, "high": Infinity, "bad": NaN})");
  EXPECT_EQ(c.number("low", 0), -INFINITY);
  EXPECT_EQ(c.number("high", 0), INFINITY);
  ASSERT_OK_AND(const double bad, c.number("bad", 0));
  EXPECT_TRUE(std::isnan(bad));
  EXPECT_FALSE(c.integer("high", 0));
}

TEST(ModelConfig, RefusesWhatIsNoConfig) {
  for (const std::string_view text :
       {"", "[]", "3", "{", R"({"model_type": 3})", R"({"architectures": "BertModel"})", R"({"architectures": [1]})"}) {
    const auto parsed = ModelConfig::parse(text, "config.json");
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::malformed);
    EXPECT_NE(parsed.error().where.find("config.json"), std::string::npos);
  }
}

// What transformers 4.57's PretrainedConfig makes of the same fields.
TEST(ModelConfig, CountsLabelsAsTransformersDoes) {
  EXPECT_EQ(config("{}").num_labels(), 2);
  EXPECT_EQ(config(R"({"num_labels": 7})").num_labels(), 7);
  EXPECT_EQ(config(R"({"num_labels": 7, "id2label": {"0": "a", "1": "b", "2": "c"}})").num_labels(), 3);
  EXPECT_EQ(config(R"({"id2label": null})").num_labels(), 2);
  EXPECT_EQ(config("{}").labels(), (std::vector<std::string>{"LABEL_0", "LABEL_1"}));
  EXPECT_EQ(config(R"({"id2label": {"1": "dog", "0": "cat"}})").labels(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(config(R"({"id2label": {"0": 5, "3": "x"}})").labels(), (std::vector<std::string>{"5", "LABEL_1"}));
  EXPECT_EQ(
      config(
          R"({"id2label": {"10": "k", "9": "j", "8": "i", "7": "h", "6": "g", "5": "f", "4": "e", "3": "d", "2": "c", "1": "b", "0": "a"}})")
          .labels()
          ->at(10),
      "k");
  for (const std::string_view text :
       {R"({"num_labels": 0})", R"({"num_labels": 1e18})", R"({"id2label": ["a"]})", R"({"id2label": {"x": "a"}})"})
    EXPECT_NE(error_of(config(text).labels()).find("config.json#/"), std::string::npos) << text;
}

TEST(ModelConfig, ReadsAFolder) {
  TemporaryFolder folder;
  const auto none = ModelConfig::read(folder.path());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::not_found);
  EXPECT_NE(none.error().to_string().find("config.json"), std::string::npos);
  folder.write("config.json", R"({"model_type": "vit"})");
  ASSERT_OK_AND(const ModelConfig c, ModelConfig::read(folder.path()));
  EXPECT_EQ(c.model_type(), "vit");
}

}  // namespace
}  // namespace mk
