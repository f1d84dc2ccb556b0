#include "base/publish.h"

#include "testing/testing.h"

namespace mk {
namespace {

using testing::TemporaryFolder;

std::string content(const Path& path) { return read_text(path).value_or("(none)"); }
std::vector<Path> names(const Path& folder) { return list_folder(folder).value_or(std::vector<Path>{"(none)"}); }
using Names = std::vector<Path>;

Status publish_pair(const Path& folder, std::string_view text, bool overwrite = true) {
  Publication publication;
  MK_CHECK(publication.add_text(folder / "m.onnx.data", text, overwrite));
  MK_CHECK(publication.add_text(folder / "m.onnx", text, overwrite));
  return publication.commit();
}

// What a kill at each moment of a swap leaves behind, made by hand: the sweep ends with the whole new pair.
TEST(Publication, ASweepFinishesASwapThatWasBegun) {
  const char* staging = ".1-0123456789abcdef.winml-tmp";
  struct Moment {
    const char* name;
    std::vector<std::pair<std::string, std::string>> files;
  };
  const std::vector<Moment> moments{
      {"before the first move", {{"m.onnx", "a"}, {"m.onnx.data", "a"}, {"new/m.onnx", "b"}, {"new/m.onnx.data", "b"}}},
      {"the old model is away",
       {{"m.onnx.data", "a"}, {"old/m.onnx", "a"}, {"new/m.onnx", "b"}, {"new/m.onnx.data", "b"}}},
      {"all old ones are away",
       {{"old/m.onnx", "a"}, {"old/m.onnx.data", "a"}, {"new/m.onnx", "b"}, {"new/m.onnx.data", "b"}}},
      {"the new data is in",
       {{"m.onnx.data", "b"}, {"old/m.onnx", "a"}, {"old/m.onnx.data", "a"}, {"new/m.onnx", "b"}}},
      {"all new ones are in", {{"m.onnx", "b"}, {"m.onnx.data", "b"}, {"old/m.onnx", "a"}, {"old/m.onnx.data", "a"}}},
      {"a first publication, the data is in", {{"m.onnx.data", "b"}, {"new/m.onnx", "b"}}},
  };
  for (const Moment& moment : moments) {
    const TemporaryFolder folder;
    for (const char* inner : {"new", "old"}) std::filesystem::create_directories(folder / staging / inner);
    folder.write(Path(staging) / "complete", "");
    for (const auto& [name, text] : moment.files) {
      const bool staged = name.find('/') != std::string::npos;
      folder.write(staged ? Path(staging) / name : Path(name), text);
    }
    sweep_leftovers(folder.path());
    EXPECT_EQ(names(folder.path()), (Names{"m.onnx", "m.onnx.data"})) << moment.name;
    EXPECT_EQ(content(folder / "m.onnx"), "b") << moment.name;
    EXPECT_EQ(content(folder / "m.onnx.data"), "b") << moment.name;
  }
}

TEST(Publication, ASweepDropsWhatWasStillBeingWritten) {
  const TemporaryFolder folder;
  folder.write("m.onnx", "a");
  folder.write(".1-0123456789abcdef.winml-tmp/new/m.onnx", "half");
  sweep_leftovers(folder.path());
  EXPECT_EQ(names(folder.path()), (Names{"m.onnx"}));
  EXPECT_EQ(content(folder / "m.onnx"), "a");
}

TEST(Publication, PublishesTogether) {
  const TemporaryFolder folder;
  {
    Publication publication;
    ASSERT_OK_AND(FileWriter data, publication.add(folder / "m.onnx.data", false));
    ASSERT_OK(data.write("data"));
    ASSERT_OK(data.close());
    ASSERT_OK(publication.add_text(folder / "m.onnx", "model", false));
    const Path staged = publication.staged(folder / "m.onnx");
    EXPECT_EQ(content(staged), "model");
    EXPECT_EQ(content(staged.parent_path() / "m.onnx.data"), "data");
    EXPECT_EQ(publication.staged(folder / "other"), Path());
    EXPECT_FALSE(std::filesystem::exists(folder / "m.onnx.data"));
    ASSERT_OK(publication.commit());
  }
  EXPECT_EQ(names(folder.path()), (Names{"m.onnx", "m.onnx.data"}));
  EXPECT_EQ(content(folder / "m.onnx"), "model");
  ASSERT_OK(publish_pair(folder.path(), "new"));
  EXPECT_EQ(names(folder.path()), (Names{"m.onnx", "m.onnx.data"}));
  EXPECT_EQ(content(folder / "m.onnx"), "new");
  EXPECT_EQ(content(folder / "m.onnx.data"), "new");
}

TEST(Publication, DiscardsWhatIsNotCommitted) {
  const TemporaryFolder folder;
  folder.write("keep/old", "old");
  {
    Publication publication;
    ASSERT_OK(publication.add_text(folder / "a" / "b" / "m.onnx", "x", false));
    ASSERT_OK(publication.add_text(folder / "keep" / "old", "x", true));
    EXPECT_TRUE(std::filesystem::exists(folder / "a" / "b"));
  }
  EXPECT_EQ(names(folder.path()), Names{"keep"});
  EXPECT_EQ(names(folder / "keep"), Names{"old"});
  EXPECT_EQ(content(folder / "keep" / "old"), "old");
}

TEST(Publication, MovingDiscardsOnce) {
  const TemporaryFolder folder;
  Publication first;
  ASSERT_OK(first.add_text(folder / "a", "x", false));
  Publication second = std::move(first);
  first = Publication();
  ASSERT_OK(second.commit());
  EXPECT_EQ(names(folder.path()), Names{"a"});
}

TEST(Publication, KeepsWhatIsThereWithoutOverwrite) {
  const TemporaryFolder folder;
  folder.write("m.onnx", "mine");
  Publication publication;
  const Result<FileWriter> taken = publication.add(folder / "m.onnx", false);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::exists);
  EXPECT_EQ(taken.error().hint, "Re-run with --overwrite to replace it");

  ASSERT_OK(publication.add_text(folder / "n.onnx.data", "new", true));
  ASSERT_OK(publication.add_text(folder / "n.onnx", "new", false));
  folder.write("n.onnx", "came later");
  EXPECT_EQ(publication.commit().error().code, ErrorCode::exists);
  EXPECT_EQ(names(folder.path()), (Names{"m.onnx", "n.onnx"}));
  EXPECT_EQ(content(folder / "n.onnx"), "came later");
}

TEST(Publication, PublishesNothingAfterAWriteError) {
  const TemporaryFolder folder;
  ASSERT_OK(publish_pair(folder.path(), "old"));
  Publication publication;
  ASSERT_OK_AND(const auto source, File::open(folder / "m.onnx"));
  {
    ASSERT_OK_AND(FileWriter data, publication.add(folder / "m.onnx.data", true));
    EXPECT_FALSE(data.copy_from(*source, 0, 100));
  }
  ASSERT_OK(publication.add_text(folder / "m.onnx", "new", true));
  EXPECT_EQ(publication.commit().error().code, ErrorCode::malformed);
  EXPECT_EQ(names(folder.path()), (Names{"m.onnx", "m.onnx.data"}));
  EXPECT_EQ(content(folder / "m.onnx"), "old");
  EXPECT_EQ(content(folder / "m.onnx.data"), "old");
}

TEST(Publication, ClosesWritersThatAreStillOpen) {
  const TemporaryFolder folder;
  Publication publication;
  ASSERT_OK_AND(FileWriter writer, publication.add(folder / "m.onnx", false));
  ASSERT_OK(writer.write("buffered"));
  ASSERT_OK(publication.commit());
  EXPECT_EQ(content(folder / "m.onnx"), "buffered");
  EXPECT_FALSE(writer.write("late"));
}

TEST(Publication, RefusesWhatCannotBeAFile) {
  const TemporaryFolder folder;
  folder.write("file", "x");
  std::filesystem::create_directory(folder / "sub");
  std::filesystem::create_directory_symlink(folder / "sub", folder / "link");
  Publication publication;
  for (const Path& path : {folder / "sub", folder / "sub/", folder / "link", Path("/dev/null"), Path(""), folder / "..",
                           folder / "file" / "m.onnx", folder / Path(std::string("a\0b", 3))}) {
    const Result<FileWriter> writer = publication.add(path, true);
    ASSERT_FALSE(writer) << path;
    EXPECT_EQ(writer.error().code, ErrorCode::usage) << path;
  }
  ASSERT_OK(publication.add_text(folder / "m.onnx", "x", true));
  EXPECT_EQ(publication.add(folder / "sub" / ".." / "m.onnx", true).error().code, ErrorCode::usage);
}

TEST(Publication, TakesEveryNameTheSystemTakes) {
  const TemporaryFolder folder;
  const Path longest = std::string(255, 'n'), odd = std::string("\xff\xfe\n \x80");
  Publication publication;
  ASSERT_OK(publication.add_text(folder / longest, "long", false));
  ASSERT_OK(publication.add_text(folder / odd, "odd", false));
  const Result<FileWriter> writer = publication.add(folder / Path(std::string(256, 'n')), false);
  ASSERT_FALSE(writer);
  EXPECT_NE(writer.error().message.find("too long"), std::string::npos);
  ASSERT_OK(publication.commit());
  EXPECT_EQ(content(folder / longest), "long");
  EXPECT_EQ(content(folder / odd), "odd");
}

TEST(Publication, ReplacesLinksAndLeavesTheirTargets) {
  const TemporaryFolder folder;
  folder.write("target", "precious");
  std::filesystem::create_symlink(folder / "target", folder / "link");
  std::filesystem::create_symlink(folder / "nowhere", folder / "dangling");
  Publication publication;
  EXPECT_EQ(publication.add(folder / "link", false).error().code, ErrorCode::exists);
  EXPECT_EQ(publication.add(folder / "dangling", false).error().code, ErrorCode::exists);
  ASSERT_OK(publication.add_text(folder / "link", "new", true));
  ASSERT_OK(publication.add_text(folder / "dangling", "new", true));
  ASSERT_OK(publication.commit());
  EXPECT_EQ(content(folder / "target"), "precious");
  EXPECT_EQ(content(folder / "link"), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(folder / "link"));
  EXPECT_FALSE(std::filesystem::exists(folder / "nowhere"));
}

TEST(Publication, WritesThroughLinkedFolders) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "real");
  std::filesystem::create_directory_symlink("real", folder / "link");
  Publication publication;
  ASSERT_OK(publication.add_text(folder / "real" / "a", "a", false));
  ASSERT_OK(publication.add_text(folder / "link" / "b", "b", false));
  ASSERT_OK(publication.commit());
  EXPECT_EQ(names(folder / "real"), (Names{"a", "b"}));
}

TEST(Publication, RemovesTheOldDataOfANewModel) {
  const TemporaryFolder folder;
  ASSERT_OK(publish_pair(folder.path(), "old"));
  Publication publication;
  ASSERT_OK(publication.add_text(folder / "m.onnx", "new", true));
  publication.remove_on_commit(folder / "m.onnx.data");
  publication.remove_on_commit(folder / "m.onnx");
  publication.remove_on_commit(folder / "never.there");
  EXPECT_TRUE(std::filesystem::exists(folder / "m.onnx.data"));
  ASSERT_OK(publication.commit());
  EXPECT_EQ(names(folder.path()), Names{"m.onnx"});
  EXPECT_EQ(content(folder / "m.onnx"), "new");
}

}  // namespace
}  // namespace mk
