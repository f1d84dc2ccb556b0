// Builds that are killed, or that meet a full disk or a folder that cannot be written.

#include <sys/mount.h>

#include <map>
#include <random>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "winml.h"

namespace mk {
namespace {

using testing::winml;

std::vector<std::string> build_arguments(const Path& out, const Path& export_config) {
  return {"build",
          "-m",
          to_utf8(testing::repository("samples/digits-vit")),
          "-o",
          to_utf8(out),
          "--no-verify",
          "-q",
          "--export-config",
          to_utf8(export_config)};
}

std::string hash_of(const Path& file) { return sha256_hex(read_text(file).value_or("")); }

std::vector<std::string> names_in(const Path& folder) {
  std::vector<std::string> names;
  for (const Path& name : list_folder(folder).value_or(std::vector<Path>{})) names.push_back(to_utf8(name));
  return names;
}

const std::vector<std::string> artefacts{"build_manifest.json", "config.json", "model.onnx", "preprocessor_config.json",
                                         "winml_build_config.json"};

class InterruptedBuild : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* opset : {"17", "18"}) {
      const Path config =
          folder.write(std::string("opset") + opset + ".json", std::string("{\"opset_version\": ") + opset + "}");
      configs.push_back(config);
      const Path clean = folder / (std::string("clean") + opset);
      ASSERT_OK_AND(const ProcessOutcome outcome, winml(build_arguments(clean, config)));
      ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
      whole[hash_of(clean / "model.onnx")] = opset;
    }
    ASSERT_EQ(whole.size(), 2u);
  }

  testing::TemporaryFolder folder;
  std::vector<Path> configs;
  std::map<std::string, std::string> whole;  // hash of a finished model -> its opset
};

// Every other run overwrites what the one before left with another model.
TEST_F(InterruptedBuild, AHundredKillsLeaveTheOldTheNewOrNothing) {
  const Path out = folder / "out";
  std::mt19937 random(7);
  std::uniform_int_distribution<int> moment(0, 60);
  int killed = 0;
  for (int i = 0; i < 100; ++i) {
    ProcessOptions options;
    options.timeout = std::chrono::milliseconds(moment(random));
    ASSERT_OK_AND(const ProcessOutcome outcome,
                  winml(build_arguments(out, configs[static_cast<std::size_t>(i % 2)]), options));
    killed += outcome.timed_out ? 1 : 0;
    ASSERT_TRUE(outcome.timed_out || outcome.exit_code == 0) << outcome.err;
    if (!std::filesystem::exists(out / "model.onnx")) continue;
    ASSERT_TRUE(whole.contains(hash_of(out / "model.onnx"))) << "half a model after kill " << i;
    ASSERT_OK_AND(const Json manifest, read_json(out / "build_manifest.json"));
    EXPECT_EQ(manifest["artifacts"][0]["sha256"], hash_of(out / "model.onnx"));
  }
  EXPECT_GT(killed, 10);

  ASSERT_OK_AND(const ProcessOutcome last, winml(build_arguments(out, configs[0])));
  EXPECT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(whole[hash_of(out / "model.onnx")], "17");
  EXPECT_EQ(names_in(out), artefacts) << "leftovers of killed runs";
}

TEST_F(InterruptedBuild, ATerminationAtAnyMomentCleansUp) {
  const Path out = folder / "out";
  int stopped = 0;
  for (int i = 0; i < 20; ++i) {
    std::vector<std::string> arguments{"--signal=TERM", "0.0" + std::to_string(10 + 2 * i), MODELKIT_WINML};
    for (std::string& argument : build_arguments(out, configs[static_cast<std::size_t>(i % 2)]))
      arguments.push_back(std::move(argument));
    ASSERT_OK_AND(const ProcessOutcome outcome, run_process("timeout", {.arguments = std::move(arguments)}));
    stopped += outcome.exit_code == 124 ? 1 : 0;
    if (!std::filesystem::exists(out)) continue;
    for (const std::string& name : names_in(out)) EXPECT_NE(name[0], '.') << "left behind: " << name;
  }
  EXPECT_GT(stopped, 0);
}

// A small file system of its own, where this process may mount one.
class SmallDisk {
 public:
  SmallDisk(const Path& place, const char* options) : place_(place) {
    std::filesystem::create_directories(place);
    mounted_ = mount("tmpfs", place.c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(place_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }
  bool make_read_only() const { return mount("tmpfs", place_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, nullptr) == 0; }

 private:
  Path place_;
  bool mounted_ = false;
};

TEST_F(InterruptedBuild, AFullDiskLosesNothing) {
  const SmallDisk disk(folder / "disk", "size=900k");
  if (!disk.mounted()) GTEST_SKIP() << "this process may not mount a file system";
  const Path out = folder / "disk" / "out";
  ASSERT_OK_AND(const ProcessOutcome first, winml(build_arguments(out, configs[0])));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  ASSERT_OK_AND(const ProcessOutcome second, winml(build_arguments(out, configs[1])));
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.err.find("space"), std::string::npos) << second.err;
  EXPECT_EQ(std::count(second.err.begin(), second.err.end(), '\n'), 1) << second.err;
  EXPECT_EQ(whole[hash_of(out / "model.onnx")], "17");
  EXPECT_EQ(names_in(out), artefacts);
}

TEST_F(InterruptedBuild, AReadOnlyFolderIsOneClearLine) {
  const SmallDisk disk(folder / "disk", "size=4m");
  if (!disk.mounted() || !disk.make_read_only()) GTEST_SKIP() << "this process may not mount a file system";
  ASSERT_OK_AND(const ProcessOutcome outcome, winml(build_arguments(folder / "disk" / "out", configs[0])));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_EQ(outcome.err.rfind("error: ", 0), 0u) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

}  // namespace
}  // namespace mk
