// Names under which checkpoints keep weights: prefixes of base models, names of older libraries, tied parameters; and
// what is said of tensors that are missing, misshapen or left over.

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "golden_case.h"
#include "testing/testing.h"
#include "testing/warnings.h"

namespace mk::golden {
namespace {

using Rename = std::function<std::optional<std::string>(std::string)>;  // nothing leaves the tensor out

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  if (const auto at = text.find(from); at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

// A golden case whose checkpoint has other names; configuration fields may be changed, too.
class NamesTest : public ::testing::Test {
 protected:
  void use(const std::string& name, const Rename& rename, const Json& fields = Json::object()) {
    const Path source = testing::repository("tests/data/cases/" + name);
    ASSERT_OK_AND(case_, read_case(source));
    ASSERT_OK_AND(const std::string bytes, read_text(source / "model.safetensors"));
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    ASSERT_OK_AND(const Json header, parse_json(std::string_view(bytes).substr(8, size), "header"));
    Json renamed = Json::object();
    for (const auto& [key, value] : header.items())
      if (const auto now = key == "__metadata__" ? key : rename(key)) renamed[*now] = value;
    const std::string text = renamed.dump();
    size = text.size();
    std::string file(reinterpret_cast<const char*>(&size), sizeof size);
    folder_.write("model.safetensors", file + text + bytes.substr(8 + header.dump().size() + padding(bytes, header)));
    ASSERT_OK_AND(Json config, read_json(source / "config.json"));
    for (const auto& [key, value] : fields.items()) config[key] = value;
    folder_.write("config.json", config.dump());
    case_.folder = folder_.path();
  }

  // Adds a float32 tensor of zeros behind the others.
  void append_zeros(const std::string& name, const std::vector<std::int64_t>& dims) {
    ASSERT_OK_AND(const std::string bytes, read_text(folder_ / "model.safetensors"));
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    ASSERT_OK_AND(Json header, parse_json(std::string_view(bytes).substr(8, size), "header"));
    std::size_t count = sizeof(float);
    for (const std::int64_t dim : dims) count *= static_cast<std::size_t>(dim);
    const std::size_t begin = bytes.size() - 8 - size;
    header[name] = {{"dtype", "F32"}, {"shape", dims}, {"data_offsets", {begin, begin + count}}};
    const std::string text = header.dump();
    const std::uint64_t length = text.size();
    folder_.write("model.safetensors", std::string(reinterpret_cast<const char*>(&length), sizeof length) + text +
                                           bytes.substr(8 + size) + std::string(count, '\0'));
  }

  void expect_results() {
    ASSERT_OK_AND(built_, build(case_));
    ASSERT_OK_AND(const auto got, run(*built_.model, case_.inputs));
    for (const HostTensor& want : case_.outputs)
      EXPECT_EQ(difference(got.at(want.name), want, case_.atol, case_.rtol), "");
  }

  Error expect_error() {
    const Result<BuiltGraph> built = build(case_);
    EXPECT_FALSE(built);
    return built ? Error{} : built.error();
  }

  testing::TemporaryFolder folder_;
  Case case_;
  BuiltGraph built_;

 private:
  static std::size_t padding(const std::string& bytes, const Json& header) {
    std::uint64_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof size);
    return size - header.dump().size();
  }
};

std::optional<std::string> same(std::string name) { return name; }

TEST_F(NamesTest, HeadOnABaseModelWithoutItsPrefix) {
  use("bert.text-classification", [](const std::string& name) { return replaced(name, "bert.", ""); });
  expect_results();
  EXPECT_TRUE(built_.unused.empty());
}

TEST_F(NamesTest, BaseModelOutOfAHead) {
  use("bert.feature-extraction", [](const std::string& name) { return "bert." + name; });
  expect_results();
  EXPECT_EQ(built_.unused, (std::vector<std::string>{"bert.pooler.dense.bias", "bert.pooler.dense.weight"}));
}

TEST_F(NamesTest, LegacyNamesOfLayerNorm) {
  use("bert.fill-mask", [](const std::string& name) {
    return replaced(replaced(name, "LayerNorm.weight", "LayerNorm.gamma"), "LayerNorm.bias", "LayerNorm.beta");
  });
  expect_results();
  EXPECT_TRUE(built_.unused.empty());
  for (const Value* weight : built_.model->graph->initializers())
    EXPECT_EQ(weight->name().find("gamma"), std::string::npos) << "initializers have the model's names";
}

// safetensors drops one name of shared data, and which one depends on who wrote the file.
TEST_F(NamesTest, TiedEmbeddingUnderTheHeadsName) {
  use("roberta.fill-mask", [](const std::string& name) {
    return replaced(name, "roberta.embeddings.word_embeddings.weight", "lm_head.decoder.weight");
  });
  expect_results();
  EXPECT_TRUE(built_.unused.empty());
}

TEST_F(NamesTest, BiasOfATiedHeadUnderItsOtherName) {
  use("bert.fill-mask",
      [](const std::string& name) { return replaced(name, "cls.predictions.bias", "cls.predictions.decoder.bias"); });
  expect_results();
  EXPECT_TRUE(built_.unused.empty());
}

TEST_F(NamesTest, BuffersAreNotUnused) {
  use("bert.feature-extraction",
      [](const std::string& name) { return name == "pooler.dense.bias" ? "embeddings.position_ids" : name; });
  expect_results();
  EXPECT_EQ(built_.unused, (std::vector<std::string>{"pooler.dense.weight"}));
}

// transformers would draw the head at random; a random head is of no use.
TEST_F(NamesTest, AHeadThatIsNotInTheCheckpointIsAnError) {
  use("bert.feature-extraction", same);
  case_.task = "text-classification";
  const Error error = expect_error();
  EXPECT_EQ(error.code, ErrorCode::malformed);
  EXPECT_EQ(error.message, "classifier.weight and classifier.bias are not in the checkpoint");
  EXPECT_EQ(Path(error.where).filename(), "model.safetensors");
  EXPECT_EQ(error.hint,
            "The checkpoint has no head for text-classification; it can be exported for feature-extraction");
}

// transformers 4.57 ties after it has loaded: the embedding is what counts.
TEST_F(NamesTest, ATiedHeadThatDiffersInTheFileIsTold) {
  use("bert.fill-mask", same);
  ASSERT_OK_AND(const Checkpoint before, Checkpoint::open(folder_.path()));
  append_zeros("cls.predictions.decoder.weight", before.find("bert.embeddings.word_embeddings.weight")->dims);
  expect_results();
  EXPECT_TRUE(built_.unused.empty());
  testing::Warnings warnings;
  ASSERT_OK(build(case_, {.options = {.progress = &warnings}}));
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_TRUE(
      warnings.messages[0].starts_with("cls.predictions.decoder.weight differs from "
                                       "bert.embeddings.word_embeddings.weight in the checkpoint"))
      << warnings.messages[0];
}

TEST_F(NamesTest, UntiedHeadWithoutItsMatrixIsAnError) {
  use("bert.fill-mask", same, {{"tie_word_embeddings", false}});
  const Error error = expect_error();
  EXPECT_EQ(error.code, ErrorCode::malformed);
  EXPECT_EQ(error.message, "cls.predictions.decoder.weight is not in the checkpoint");
}

TEST_F(NamesTest, ManyMissingTensorsAreCounted) {
  use("bert.feature-extraction", [](const std::string& name) { return "encoder." + name; });
  EXPECT_EQ(expect_error().message, "embeddings.word_embeddings.weight and 36 more tensors are not in the checkpoint");
}

TEST_F(NamesTest, AMisshapenTensorNamesBothShapesAndTheField) {
  use("bert.feature-extraction", same, {{"intermediate_size", 41}});
  const Error error = expect_error();
  EXPECT_EQ(error.code, ErrorCode::malformed);
  EXPECT_EQ(
      error.message,
      "encoder.layer.0.intermediate.dense.weight has shape [37, 32], expected [41, 32], and 5 more tensors differ");
  EXPECT_NE(error.hint.find("config.json says intermediate_size 41"), std::string::npos) << error.hint;
}

}  // namespace
}  // namespace mk::golden
