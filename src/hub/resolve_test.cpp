#include "hub/resolve.h"

#include "testing/testing.h"

namespace mk {
namespace {

using testing::TemporaryFolder;

const std::string commit_a(40, 'a'), commit_b = "b0" + std::string(38, '1');
const std::string blob_hash(64, 'c');

std::string error_of(const Result<ResolvedModel>& model) { return model ? "no error" : model.error().to_string(); }

class ResolveTest : public ::testing::Test {
 protected:
  // A file of a snapshot, as the Hub's Python library stores it.
  void cached(const std::string& repository, const std::string& commit, const std::string& file,
              const std::string& blob = {}) {
    const Path base = Path("hub") / repository;
    if (blob.empty()) {
      root_.write(base / "snapshots" / commit / file, "{}");
      return;
    }
    root_.write(base / "blobs" / blob, "{}");
    const Path link = root_ / base / "snapshots" / commit / file;
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::create_symlink(Path("../../blobs") / blob, link);
  }
  void ref(const std::string& repository, const std::string& name, const std::string& commit) {
    root_.write(Path("hub") / repository / "refs" / name, commit);
  }
  Result<ResolvedModel> resolve(std::string_view text, WantedModel wanted = WantedModel::any) {
    MK_TRY(const ModelRef parsed, parse_model_ref(text));
    HubSettings settings;
    settings.roots = {root_ / "hub", root_ / "legacy"};
    settings.offline = "HF_HUB_OFFLINE";
    Hub hub(settings, silent_progress());
    return resolve_model(parsed, wanted, hub, Fetch::configs);
  }
  std::string at(const Path& path) { return to_utf8(root_ / path); }

  TemporaryFolder root_;
};

TEST_F(ResolveTest, FindsSnapshotsByBranchTagAndCommit) {
  ref("models--org--name", "main", commit_a + "\n");
  ref("models--org--name", "v1", commit_b);
  ref("models--org--name", "refs/pr/1", commit_b);
  for (const auto& commit : {commit_a, commit_b}) {
    cached("models--org--name", commit, "config.json");
    cached("models--org--name", commit, "model.safetensors", blob_hash);
  }
  const auto commit_of = [&](std::string_view text) {
    const auto model = resolve(text, WantedModel::checkpoint);
    EXPECT_TRUE(model) << error_of(model);
    return model ? model->commit : std::string();
  };
  EXPECT_EQ(commit_of("org/name"), commit_a);
  EXPECT_EQ(commit_of("org/name@main"), commit_a);
  EXPECT_EQ(commit_of("org/name@v1"), commit_b);
  EXPECT_EQ(commit_of("org/name@refs/pr/1"), commit_b);
  EXPECT_EQ(commit_of("org/name@" + commit_b), commit_b);
  EXPECT_EQ(commit_of("org/name@b011111"), commit_b);

  ASSERT_OK_AND(const ResolvedModel model, resolve("org/name"));
  EXPECT_FALSE(model.is_onnx());
  EXPECT_FALSE(model.is_local());
  EXPECT_EQ(model.folder, root_ / "hub" / "models--org--name" / "snapshots" / commit_a);
  EXPECT_EQ(blob_sha256(model.folder / "model.safetensors"), blob_hash);
  EXPECT_EQ(blob_sha256(model.folder / "config.json"), "");
}

TEST_F(ResolveTest, SaysWhereItLookedForAnId) {
  const auto absent = resolve("org/name");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::not_found);
  EXPECT_NE(error_of(absent).find(at("hub")), std::string::npos);
  EXPECT_NE(error_of(absent).find("HF_HUB_OFFLINE forbids the network"), std::string::npos);

  cached("models--org--name", commit_b, "config.json");
  const auto unnamed = resolve("org/name");
  ASSERT_FALSE(unnamed);
  EXPECT_EQ(unnamed.error().code, ErrorCode::not_found);
  EXPECT_NE(error_of(unnamed).find("org/name@" + commit_b), std::string::npos) << error_of(unnamed);
  EXPECT_FALSE(resolve("org/name@b0"));
  EXPECT_FALSE(resolve("org/name@v2"));

  ref("models--org--name", "main", commit_a);  // a ref to a snapshot that was never fetched
  EXPECT_FALSE(resolve("org/name"));
}

TEST_F(ResolveTest, LooksInTheLegacyCacheToo) {
  root_.write(Path("legacy/models--gpt2/refs/main"), commit_a);
  root_.write(Path("legacy/models--gpt2/snapshots") / commit_a / "config.json", "{}");
  ASSERT_OK_AND(const ResolvedModel model, resolve("gpt2"));
  EXPECT_EQ(model.commit, commit_a);
}

TEST_F(ResolveTest, FindsGraphsOfTheHub) {
  ref("models--org--name", "main", commit_a);
  cached("models--org--name", commit_a, "onnx/model.onnx");
  ASSERT_OK_AND(const ResolvedModel named, resolve("org/name/onnx/model.onnx"));
  EXPECT_EQ(named.onnx, named.folder / "onnx" / "model.onnx");
  EXPECT_EQ(named.commit, commit_a);
  EXPECT_EQ(named.output_folder(), Path());  // not the cache
  EXPECT_NE(error_of(resolve("org/name/other.onnx")).find("has no other.onnx"), std::string::npos);

  // Without config.json, the only graph is the model; of several, one must be named.
  ASSERT_OK_AND(const ResolvedModel only, resolve("org/name"));
  EXPECT_EQ(only.onnx, named.onnx);
  EXPECT_EQ(resolve("org/name", WantedModel::checkpoint).error().code, ErrorCode::usage);
  cached("models--org--name", commit_a, "onnx/model_int8.onnx");
  const auto several = resolve("org/name");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, ErrorCode::usage);
  EXPECT_NE(error_of(several).find("onnx/model.onnx, onnx/model_int8.onnx"), std::string::npos);
  cached("models--org--name", commit_a, "config.json");
  ASSERT_OK_AND(const ResolvedModel checkpoint, resolve("org/name"));
  EXPECT_FALSE(checkpoint.is_onnx());
}

TEST_F(ResolveTest, TellsWhatAFolderIs) {
  root_.write("checkpoint/config.json", "{}");
  root_.write("checkpoint/model.safetensors", "");
  root_.write("config/config.json", "{}");
  root_.write("exported/config.json", "{}");
  root_.write("exported/model.onnx", "");
  root_.write("built/config.json", "{}");
  root_.write("built/export.onnx", "");
  root_.write("built/quantized.onnx", "");
  root_.write("built/build_manifest.json", R"({"schema_version": 1, "final_artifact": "quantized.onnx"})");
  root_.write("several/config.json", "{}");
  root_.write("several/encoder.onnx", "");
  root_.write("several/decoder.onnx", "");
  root_.write("empty/readme", "");
  root_.write("in_place/config.json", "{}");
  root_.write("in_place/model.safetensors", "");
  root_.write("in_place/model.onnx", "");
  root_.write("in_place/build_manifest.json", R"({"final_artifact": "model.onnx"})");

  const auto shown = [&](std::string_view folder, WantedModel wanted) {
    const auto model = resolve(at(folder), wanted);
    if (!model) return std::string(name_of(model.error().code));
    return model->is_onnx() ? to_utf8(model->onnx.filename()) : std::string("checkpoint");
  };
  struct Row {
    std::string_view folder, any, checkpoint, onnx;
  };
  const Row rows[] = {
      {"checkpoint", "checkpoint", "checkpoint", "usage"},
      {"config", "checkpoint", "checkpoint", "usage"},
      {"exported", "model.onnx", "usage", "model.onnx"},
      {"built", "quantized.onnx", "usage", "quantized.onnx"},
      {"several", "checkpoint", "usage", "usage"},
      {"empty", "not_found", "not_found", "usage"},
      {"in_place", "model.onnx", "checkpoint", "model.onnx"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.folder);
    EXPECT_EQ(shown(row.folder, WantedModel::any), row.any);
    EXPECT_EQ(shown(row.folder, WantedModel::checkpoint), row.checkpoint);
    EXPECT_EQ(shown(row.folder, WantedModel::onnx), row.onnx);
  }
}

TEST_F(ResolveTest, AManifestCannotLeadOutOfItsFolder) {
  root_.write("secret.onnx", "");
  root_.write("built/model.onnx", "");
  root_.write("built/build_manifest.json", R"({"final_artifact": "../secret.onnx"})");
  ASSERT_OK_AND(const ResolvedModel model, resolve(at("built")));
  EXPECT_EQ(model.onnx.filename(), "model.onnx");
}

TEST_F(ResolveTest, AnOnnxFileIsNoCheckpoint) {
  const Path file = root_.write("m.onnx", "");
  ASSERT_OK_AND(const ResolvedModel model, resolve(to_utf8(file)));
  EXPECT_EQ(model.onnx, file);
  EXPECT_EQ(model.folder, root_.path());
  EXPECT_TRUE(model.is_local());
  EXPECT_EQ(model.output_folder(), root_.path());
  const auto refused = resolve(to_utf8(file), WantedModel::checkpoint);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace mk
