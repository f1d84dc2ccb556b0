#include "hub/model_ref.h"

#include "testing/testing.h"

namespace mk {
namespace {

using testing::TemporaryFolder;

// A working folder with a folder `bert`, and files m.onnx and README.md.
class ModelRefTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("m.onnx", "");
    folder_.write("README.md", "");
    folder_.write("bert/config.json", "{}");
    std::filesystem::current_path(folder_.path());
  }
  void TearDown() override { std::filesystem::current_path(before_); }

  TemporaryFolder folder_;
  Path before_ = std::filesystem::current_path();
};

struct Case {
  std::string_view text;
  std::string_view kind;  // or the exit code's name for an error
  std::string_view id = {}, revision = {}, file = {};
};

// The table of the loader's specification, with revisions allowed.
TEST_F(ModelRefTest, ToldFromTheText) {
  const Case cases[] = {
      {"", "usage"},
      {"   ", "usage"},
      {"m.onnx", "local_onnx"},
      {"./m.onnx", "local_onnx"},
      {"./absent.onnx", "local_onnx"},
      {"C:\\m\\absent.onnx", "local_onnx"},
      {"c:/m/Absent.ONNX", "local_onnx"},
      {"/no/such/folder/x.onnx", "local_onnx"},
      {"absent.onnx", "not_found"},
      {"dir/absent.onnx", "not_found"},
      {"org/repo/absent.onnx", "hub_onnx", "org/repo", "", "absent.onnx"},
      {"org/repo/onnx/model_int8.onnx", "hub_onnx", "org/repo", "", "onnx/model_int8.onnx"},
      {"org/repo@v1.0/onnx/model.ONNX", "hub_onnx", "org/repo", "v1.0", "onnx/model.ONNX"},
      {"org/repo/../../x.onnx", "usage"},
      {"bert", "build_dir"},
      {"bert/", "build_dir"},
      {"./bert", "build_dir"},
      {".", "build_dir"},
      {"./nothing", "not_found"},
      {"~/nothing-of-this-name", "not_found"},
      {"a\\b", "not_found"},
      {"microsoft/resnet-50", "hf_id", "microsoft/resnet-50"},
      {"gpt2", "hf_id", "gpt2"},
      {"Qwen/Qwen2.5-0.5B", "hf_id", "Qwen/Qwen2.5-0.5B"},
      {"org/name@main", "hf_id", "org/name", "main"},
      {"gpt2@607a30d783dfa663caf39e06633721c8d4cfcd7e", "hf_id", "gpt2", "607a30d783dfa663caf39e06633721c8d4cfcd7e"},
      {"org/name@refs/pr/1", "hf_id", "org/name", "refs/pr/1"},
      {"org/name@", "usage"},
      {"org/name@../../x", "usage"},
      {"org/name@a b", "usage"},
      {"@main", "usage"},
      {"a/b/c", "not_found"},
      {"-x/y", "usage"},
      {"a b", "usage"},
      {"org/", "usage"},
      {"README.md", "usage"},
      {"nofile.txt", "hf_id", "nofile.txt"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    const auto ref = parse_model_ref(c.text);
    if (!ref) {
      EXPECT_EQ(name_of(ref.error().code), c.kind) << ref.error().to_string();
      continue;
    }
    EXPECT_EQ(name_of(ref->kind), c.kind);
    EXPECT_EQ(ref->raw, c.text);
    EXPECT_EQ(ref->id, c.id);
    EXPECT_EQ(ref->revision, c.revision);
    EXPECT_EQ(ref->file, c.file);
    const bool is_local = ref->kind == ModelRefKind::local_onnx || ref->kind == ModelRefKind::folder;
    EXPECT_EQ(is_local, !ref->local_path.empty());
  }
}

TEST_F(ModelRefTest, AnExistingFolderWinsOverAnId) {
  folder_.write("org/name/config.json", "{}");
  ASSERT_OK_AND(const ModelRef ref, parse_model_ref("org/name"));
  EXPECT_EQ(ref.kind, ModelRefKind::folder);
}

}  // namespace
}  // namespace mk
