#include "base/partial_file.h"

#include <sys/file.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "base/file.h"
#include "base/file_lock.h"
#include "testing/testing.h"

namespace mk {
namespace {

TEST(PartialFile, GrowsOverSeveralOpenings) {
  const testing::TemporaryFolder folder;
  const Path path = folder / "x.incomplete";
  const auto append = [](PartialFile& file, std::string_view text) {
    ASSERT_OK(file.append(std::as_bytes(std::span(text))));
  };
  {
    ASSERT_OK_AND(PartialFile file, PartialFile::open(path));
    EXPECT_EQ(file.size(), 0u);
    append(file, "one ");
    EXPECT_EQ(read_text(path).value(), "one ");  // there without being closed
  }
  ASSERT_OK_AND(PartialFile file, PartialFile::open(path));
  EXPECT_EQ(file.size(), 4u);
  append(file, "two");
  EXPECT_EQ(read_text(path).value(), "one two");
  ASSERT_OK(file.clear());
  append(file, "three");
  ASSERT_OK(file.sync());
  EXPECT_EQ(read_text(path).value(), "three");
  EXPECT_FALSE(PartialFile::open(folder / "none" / "x"));
  std::filesystem::create_symlink(path, folder / "link");
  EXPECT_FALSE(PartialFile::open(folder / "link"));
}

TEST(FileLock, KeepsOthersOutUntilItEnds) {
  const testing::TemporaryFolder folder;
  const Path path = folder / "locks" / "x.lock";
  auto held = FileLock::acquire(path, {});
  ASSERT_OK(held);
  EXPECT_TRUE(held->is_exclusive());
  std::optional<FileLock> lock(std::move(*held));
  bool waited = false;
  std::thread other([&] { EXPECT_TRUE(FileLock::acquire(path, [&] { waited = true; })); });
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  lock.reset();
  other.join();
  EXPECT_TRUE(waited);
  EXPECT_TRUE(std::filesystem::exists(path));
}

// Some programs remove the file while they hold it; the lock on it is worth nothing then.
TEST(FileLock, IsOfTheFileThatHasTheName) {
  const testing::TemporaryFolder folder;
  const Path path = folder / "x.lock";
  auto first = FileLock::acquire(path, {});
  ASSERT_OK(first);
  std::optional<FileLock> lock(std::move(*first));
  std::thread other([&] {
    EXPECT_TRUE(FileLock::acquire(path, [&] {
      std::filesystem::remove(path);
      lock.reset();
    }));
    EXPECT_TRUE(std::filesystem::exists(path));
  });
  other.join();
}

}  // namespace
}  // namespace mk
