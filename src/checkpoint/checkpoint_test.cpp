#include "checkpoint/checkpoint.h"

#include <fmt/format.h>

#include "checkpoint/expect_tensors.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::fixture;
using testing::TemporaryFolder;

// One U8 tensor of one element.
std::string safetensors(std::string_view name, char value) {
  const std::string header = fmt::format(R"({{"{}":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}}})", name);
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  return bytes + header + value;
}

char value_of(const Checkpoint& checkpoint, std::string_view name) {
  const Tensor* tensor = checkpoint.find(name);
  if (!tensor) return '-';
  const auto bytes = read_all(*tensor->data);
  return bytes && bytes->size() == 1 ? static_cast<char>(bytes->front()) : '?';
}

std::string error_of(const Result<Checkpoint>& checkpoint) {
  return checkpoint ? std::string() : checkpoint.error().to_string();
}

TEST(Checkpoint, PrefersSafetensors) {
  TemporaryFolder folder;
  std::filesystem::copy_file(fixture("module.bin"), folder / "pytorch_model.bin");
  ASSERT_OK_AND(const Checkpoint bin, Checkpoint::open(folder.path()));
  testing::expect_tensors(bin, "module.json");
  folder.write("model.safetensors.index.json", R"({"weight_map": {"b": "model-1.safetensors"}})");
  folder.write("model-1.safetensors", safetensors("b", 'B'));
  ASSERT_OK_AND(const Checkpoint sharded, Checkpoint::open(folder.path()));
  EXPECT_EQ(value_of(sharded, "b"), 'B');
  folder.write("model.safetensors", safetensors("a", 'A'));
  ASSERT_OK_AND(const Checkpoint single, Checkpoint::open(folder.path()));
  EXPECT_EQ(value_of(single, "a"), 'A');
  EXPECT_EQ(single.files(), std::vector<Path>{folder / "model.safetensors"});
}

TEST(Checkpoint, JoinsShards) {
  TemporaryFolder folder;
  folder.write("model.safetensors.index.json",
               R"({"metadata": {"total_size": 2}, "weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
  folder.write("one.safetensors", safetensors("a", 'A'));
  folder.write("two.safetensors", safetensors("b", 'B'));
  ASSERT_OK_AND(const Checkpoint checkpoint, Checkpoint::open(folder.path()));
  EXPECT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(value_of(checkpoint, "a"), 'A');
  EXPECT_EQ(value_of(checkpoint, "b"), 'B');
  EXPECT_EQ(checkpoint.files().size(), 2u);
  EXPECT_EQ(checkpoint.total_bytes(), 2u);
}

TEST(Checkpoint, JoinsShardsOfTheOldForm) {
  TemporaryFolder folder;
  std::filesystem::copy_file(fixture("module.bin"), folder / "pytorch_model-00001-of-00001.bin");
  folder.write("pytorch_model.bin.index.json", R"({"weight_map": {"0.weight": "pytorch_model-00001-of-00001.bin"}})");
  ASSERT_OK_AND(const Checkpoint checkpoint, Checkpoint::open(folder.path()));
  testing::expect_tensors(checkpoint, "module.json");
}

TEST(Checkpoint, NamesWhatIsWrongWithAnIndex) {
  TemporaryFolder folder;
  folder.write("one.safetensors", safetensors("a", 'A'));
  const auto with_index = [&](std::string_view json) {
    folder.write("model.safetensors.index.json", json);
    return Checkpoint::open(folder.path());
  };
  EXPECT_NE(error_of(with_index("{")).find("model.safetensors.index.json"), std::string::npos);
  EXPECT_NE(error_of(with_index("{}")).find("#/weight_map"), std::string::npos);
  EXPECT_NE(error_of(with_index(R"({"weight_map": {}})")).find("the index names no tensor"), std::string::npos);
  EXPECT_NE(error_of(with_index(R"({"weight_map": {"a": "../one.safetensors"}})")).find("'a' is no file name"),
            std::string::npos);
  EXPECT_NE(error_of(with_index(R"({"weight_map": {"a": 1}})")).find("'a' is no file name"), std::string::npos);
  const auto missing = with_index(R"({"weight_map": {"a": "three.safetensors"}})");
  EXPECT_NE(error_of(missing).find("the shard three.safetensors is missing"), std::string::npos);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_NE(error_of(with_index(R"({"weight_map": {"b": "one.safetensors"}})"))
                .find("'b' is not in its shard one.safetensors"),
            std::string::npos);
}

TEST(Checkpoint, TheIndexDecidesWhichOfTwoShardsCounts) {
  TemporaryFolder folder;
  const std::string both =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})";
  folder.write("one.safetensors", std::string(1, static_cast<char>(both.size())) + std::string(7, '\0') + both + "12");
  folder.write("two.safetensors", safetensors("a", '3'));
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a": "two.safetensors", "b": "one.safetensors"}})");
  ASSERT_OK_AND(const Checkpoint checkpoint, Checkpoint::open(folder.path()));
  EXPECT_EQ(value_of(checkpoint, "a"), '3');
  EXPECT_EQ(value_of(checkpoint, "b"), '2');

  folder.write("three.safetensors", safetensors("c", '4'));
  folder.write("one.safetensors", safetensors("c", '5'));
  folder.write("model.safetensors.index.json", R"({"weight_map": {"x": "three.safetensors", "b": "one.safetensors"}})");
  EXPECT_NE(error_of(Checkpoint::open(folder.path())).find("'c' is in two shards"), std::string::npos);
}

TEST(Checkpoint, SaysWhatAFolderWithoutWeightsNeeds) {
  TemporaryFolder folder;
  const auto said = [&](std::string_view file) {
    if (!file.empty()) folder.write(file, "x");
    const auto checkpoint = Checkpoint::open(folder.path());
    EXPECT_FALSE(checkpoint);
    EXPECT_EQ(checkpoint.error().code, ErrorCode::not_found);
    if (!file.empty()) std::filesystem::remove(folder / file);
    return error_of(checkpoint);
  };
  const std::string empty = said("");
  for (const std::string_view name :
       {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"})
    EXPECT_NE(empty.find(name), std::string::npos) << empty;
  EXPECT_NE(said("tf_model.h5").find("tf_model.h5 is TensorFlow weights"), std::string::npos);
  EXPECT_NE(said("flax_model.msgpack").find("flax_model.msgpack is Flax weights"), std::string::npos);
  EXPECT_NE(said("last.ckpt").find("last.ckpt is a training checkpoint"), std::string::npos);
  EXPECT_NE(said("adapter_model.safetensors").find("an adapter without its base model"), std::string::npos);
  EXPECT_NE(said("model.fp16.safetensors").find("rename it to model.safetensors"), std::string::npos);
  const auto none = Checkpoint::open(folder / "none");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::not_found);
}

TEST(Checkpoint, SaysThatACachedFileWasNotFetched) {
  TemporaryFolder folder;
  std::error_code error;
  std::filesystem::create_symlink("../../blobs/0123", folder / "model.safetensors", error);
  if (error) GTEST_SKIP() << "no symbolic links here";
  EXPECT_NE(error_of(Checkpoint::open(folder.path())).find("model.safetensors is a link to a file that is not there"),
            std::string::npos);
}

}  // namespace
}  // namespace mk
