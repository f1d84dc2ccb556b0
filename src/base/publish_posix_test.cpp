// Publications that are killed, run out of space, or may not write.

#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "base/publish.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::TemporaryFolder;
using Names = std::vector<Path>;

std::string content(const Path& path) { return read_text(path).value_or("(none)"); }

Status publish_pair(const Path& folder, const std::string& version, std::size_t data_bytes) {
  Publication publication;
  {
    MK_TRY(FileWriter data, publication.add(folder / "m.onnx.data", true));
    for (std::size_t written = 0; written < data_bytes; written += version.size()) MK_CHECK(data.write(version));
  }
  MK_CHECK(publication.add_text(folder / "m.onnx", version, true));
  return publication.commit();
}

pid_t publish_forever(const Path& folder, const std::string& name) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  for (int i = 0;; ++i) {
    if (!publish_pair(folder, name + std::to_string(i) + ";", 20'000)) ::_exit(1);
  }
}

// True when it was still running, without an error.
bool kill_and_reap(pid_t child) {
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

// A small file system of its own; `made` is false where we may not mount.
class SmallDisk {
 public:
  SmallDisk(const Path& folder, const char* options) : folder_(folder) {
    std::filesystem::create_directories(folder);
    made = ::mount("none", folder.c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallDisk() {
    if (made) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool read_only() const { return ::mount("none", folder_.c_str(), "", MS_REMOUNT | MS_RDONLY, "") == 0; }
  bool writable() const { return ::mount("none", folder_.c_str(), "", MS_REMOUNT, "") == 0; }
  bool made = false;

 private:
  Path folder_;
};

// A model names its data by holding the same text.
void survive_kills(const Path& folder) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int complete = 0;
  for (int round = 0; round < 100; ++round) {
    const bool two = round % 4 == 3;
    const pid_t first = publish_forever(folder, "a" + std::to_string(round) + ".");
    const pid_t second = two ? publish_forever(folder, "b" + std::to_string(round) + ".") : 0;
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 12'000));
    ASSERT_TRUE(kill_and_reap(first));
    ASSERT_TRUE(!two || kill_and_reap(second));

    const std::string model = content(folder / "m.onnx");
    if (model == "(none)") continue;
    ++complete;
    ASSERT_EQ(model.back(), ';');
    const std::string data = content(folder / "m.onnx.data");
    ASSERT_GE(data.size(), 20'000u);
    for (std::size_t at = 0; at < data.size(); at += model.size()) ASSERT_EQ(data.substr(at, model.size()), model);
  }
  EXPECT_GT(complete, 20);
  ASSERT_OK(publish_pair(folder, "last", 4));
  ASSERT_OK_AND(const Names names, list_folder(folder));
  EXPECT_EQ(names, (Names{"m.onnx", "m.onnx.data"}));
}

TEST(Publication, SurvivesKillsAtAnyMoment) {
  const TemporaryFolder folder;
  survive_kills(folder.path());
}

// Where syncing takes no time most kills meet the moves.
TEST(Publication, SurvivesKillsInMemory) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder / "disk", "size=16m");
  if (!disk.made) GTEST_SKIP() << "cannot mount";
  survive_kills(folder / "disk");
}

TEST(Publication, SweepsOnlyTheDead) {
  const TemporaryFolder folder;
  folder.write(".mine.winml-tmp", "a file of that kind of name");
  folder.write(".12-0123456789abcdef.winml-tmp/new/m.onnx", "left");
  folder.write(".12-0123456789abcdef.winml-tmpx/a", "not ours");
  folder.write(".12-0123456789ABCDEF.winml-tmp/a", "not ours");
  folder.write("12-0123456789abcdef.winml-tmp/a", "not ours");
  folder.write("outside", "precious");
  std::filesystem::create_directories(folder / ".13-0123456789abcdef.winml-tmp");
  std::filesystem::create_symlink(folder / "outside", folder / ".13-0123456789abcdef.winml-tmp/link");
  std::filesystem::create_directory_symlink("/", folder / ".14-0123456789abcdef.winml-tmp");
  Publication alive;
  ASSERT_OK(alive.add_text(folder / "n.onnx", "alive", false));
  const Path staged = alive.staged(folder / "n.onnx");
  ASSERT_OK(publish_pair(folder.path(), "x", 1));
  EXPECT_EQ(content(staged), "alive");
  ASSERT_OK(alive.commit());
  ASSERT_OK_AND(const Names names, list_folder(folder.path()));
  EXPECT_EQ(names, (Names{".12-0123456789ABCDEF.winml-tmp", ".12-0123456789abcdef.winml-tmpx",
                          ".14-0123456789abcdef.winml-tmp", ".mine.winml-tmp", "12-0123456789abcdef.winml-tmp",
                          "m.onnx", "m.onnx.data", "n.onnx", "outside"}));
  EXPECT_EQ(content(folder / "outside"), "precious");
}

TEST(Publication, SaysThatTheDiskIsFull) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder / "disk", "size=256k");
  if (!disk.made) GTEST_SKIP() << "cannot mount";
  ASSERT_OK(publish_pair(folder / "disk", "old;", 50'000));
  const Status status = publish_pair(folder / "disk", "new;", 1'000'000);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().to_string(), "cannot write: no space left on the disk (" +
                                            to_utf8(folder / "disk" / "m.onnx.data") +
                                            "). Free some space, or choose another folder with -o");
  // What only the last flush finds.
  const Status late = publish_pair(folder / "disk", "new;", 220'000);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message, "cannot write: no space left on the disk");
  ASSERT_OK_AND(const Names names, list_folder(folder / "disk"));
  EXPECT_EQ(names, (Names{"m.onnx", "m.onnx.data"}));
  EXPECT_EQ(content(folder / "disk" / "m.onnx"), "old;");
  ASSERT_OK(publish_pair(folder / "disk", "new;", 50'000));
  EXPECT_EQ(content(folder / "disk" / "m.onnx"), "new;");
}

TEST(Publication, SaysThatTheFolderIsReadOnly) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder / "disk", "size=256k");
  if (!disk.made) GTEST_SKIP() << "cannot mount";
  ASSERT_OK(publish_pair(folder / "disk", "old;", 10));
  ASSERT_TRUE(disk.read_only());
  for (const Path& target : {folder / "disk", folder / "disk" / "sub" / "sub"}) {
    const Status status = publish_pair(target, "new;", 10);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::failed);
    EXPECT_NE(status.error().to_string().find("the file system is read-only"), std::string::npos);
  }
  EXPECT_EQ(content(folder / "disk" / "m.onnx"), "old;");
}

TEST(Publication, PutsTheOldFilesBackWhenAMoveFails) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder / "disk", "size=256k");
  if (!disk.made) GTEST_SKIP() << "cannot mount";
  folder.write("disk/first", "old");
  folder.write("stale", "old");
  ASSERT_OK(publish_pair(folder.path(), "old", 3));
  Publication publication;
  ASSERT_OK(publication.add_text(folder / "disk" / "first", "new", true));
  ASSERT_OK(publication.add_text(folder / "m.onnx.data", "new", true));
  ASSERT_OK(publication.add_text(folder / "m.onnx", "new", true));
  publication.remove_on_commit(folder / "stale");
  ASSERT_TRUE(disk.read_only());
  const Status status = publication.commit();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "cannot put the file in place: the file system is read-only");
  ASSERT_TRUE(disk.writable());
  for (const char* name : {"m.onnx", "m.onnx.data", "stale", "disk/first"}) EXPECT_EQ(content(folder / name), "old");
  ASSERT_OK_AND(const Names names, list_folder(folder.path()));
  EXPECT_EQ(names, (Names{"disk", "m.onnx", "m.onnx.data", "stale"}));
}

TEST(FileWriter, CopiesBetweenFileSystems) {
  const TemporaryFolder folder;
  const SmallDisk disk(folder / "disk", "size=4m");
  if (!disk.made) GTEST_SKIP() << "cannot mount";
  const std::string all(3'000'000, 'x');
  ASSERT_OK_AND(const auto source, File::open(folder.write("source", "head" + all)));
  ASSERT_OK_AND(FileWriter writer, FileWriter::create(folder / "disk" / "a"));
  ASSERT_OK(writer.write("begin"));
  ASSERT_OK(writer.copy_from(*source, 4, all.size()));
  ASSERT_OK(writer.close());
  EXPECT_TRUE(content(folder / "disk" / "a") == "begin" + all);
}

}  // namespace
}  // namespace mk
