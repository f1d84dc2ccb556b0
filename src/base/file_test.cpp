#include "base/file.h"

#include <cstring>
#include <thread>

#include "testing/testing.h"

namespace mk {
namespace {

using testing::TemporaryFolder;

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>((i * 2654435761u) >> 13);
  return text;
}

TEST(File, ReadsRanges) {
  const TemporaryFolder folder;
  ASSERT_OK_AND(const auto file, File::open(folder.write("a", "0123456789")));
  EXPECT_EQ(file->size(), 10u);
  std::string out(4, '?');
  ASSERT_OK(file->read(3, std::as_writable_bytes(std::span(out))));
  EXPECT_EQ(out, "3456");
  ASSERT_OK(file->read(10, {}));
}

TEST(File, NamesTheByteWhereItEnds) {
  const TemporaryFolder folder;
  ASSERT_OK_AND(const auto file, File::open(folder.write("a", "0123456789")));
  std::string out(8, '?');
  const Status status = file->read(5, std::as_writable_bytes(std::span(out)));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::malformed);
  EXPECT_EQ(status.error().message, "the file ends at byte 10, expected 8 bytes at 5");
  for (const std::uint64_t offset : {std::uint64_t{11}, std::uint64_t{1} << 62, ~std::uint64_t{0} - 3}) {
    EXPECT_EQ(file->read(offset, std::as_writable_bytes(std::span(out))).error().code, ErrorCode::malformed);
  }
}

TEST(File, TellsWhatCannotBeOpened) {
  const TemporaryFolder folder;
  EXPECT_EQ(File::open(folder / "none").error().code, ErrorCode::not_found);
  EXPECT_EQ(File::open(folder.path()).error().code, ErrorCode::not_found);
  EXPECT_EQ(File::open("").error().code, ErrorCode::not_found);
  EXPECT_EQ(File::open(Path(std::string(5000, 'a'))).error().code, ErrorCode::not_found);
  EXPECT_EQ(File::open(Path(std::string("a\0b", 3))).error().code, ErrorCode::not_found);
  EXPECT_EQ(File::open("/dev/null").error().code, ErrorCode::unsupported);
  EXPECT_EQ(File::open(folder.write("a", "") / "b").error().code, ErrorCode::not_found);
}

TEST(FileWriter, WritesPiecesOfEverySizeInOrder) {
  const TemporaryFolder folder;
  const std::string all = pattern(3 << 20);
  ASSERT_OK_AND(FileWriter writer, FileWriter::create(folder / "a"));
  std::size_t at = 0;
  for (std::size_t size = 0; at < all.size(); size = size * 5 / 3 + 1) {
    const std::string_view part = std::string_view(all).substr(at, size);
    ASSERT_OK(writer.write(part));
    at += part.size();
    ASSERT_EQ(writer.position(), at);
    if (size > (1u << 19)) size = 0;
  }
  ASSERT_OK(writer.close());
  ASSERT_OK(writer.close());
  EXPECT_FALSE(writer.write("more"));
  ASSERT_OK_AND(const std::string read, read_text(folder / "a"));
  EXPECT_TRUE(read == all);
}

TEST(FileWriter, PadsToAlignment) {
  const TemporaryFolder folder;
  ASSERT_OK_AND(FileWriter writer, FileWriter::create(folder / "a"));
  ASSERT_OK(writer.pad_to(64));
  EXPECT_EQ(writer.position(), 0u);
  ASSERT_OK(writer.write("abc"));
  ASSERT_OK(writer.pad_to(8));
  ASSERT_OK(writer.pad_to(8));
  ASSERT_OK(writer.pad_to(65536));
  ASSERT_OK(writer.close());
  ASSERT_OK_AND(const std::string read, read_text(folder / "a"));
  EXPECT_EQ(read, "abc" + std::string(65533, '\0'));
}

TEST(FileWriter, CopiesSmallAndLargeRangesBetweenWrites) {
  const TemporaryFolder folder;
  const std::string all = pattern(5 << 20);
  ASSERT_OK_AND(const auto source, File::open(folder.write("source", all)));
  ASSERT_OK_AND(FileWriter writer, FileWriter::create(folder / "a"));
  std::string expected = "head";
  ASSERT_OK(writer.write("head"));
  const std::pair<std::size_t, std::size_t> ranges[] = {
      {0, 0}, {7, 1}, {1000, 65536}, {3, 65537}, {12345, 4 << 20}, {all.size() - 9, 9}, {0, all.size()}};
  for (const auto& [offset, length] : ranges) {
    ASSERT_OK(writer.copy_from(*source, offset, length));
    ASSERT_OK(writer.write("|"));
    expected += all.substr(offset, length) + "|";
    ASSERT_EQ(writer.position(), expected.size());
  }
  ASSERT_OK(writer.sync());
  ASSERT_OK(writer.close());
  ASSERT_OK_AND(const std::string read, read_text(folder / "a"));
  EXPECT_TRUE(read == expected);
}

TEST(FileWriter, KeepsTheFirstError) {
  const TemporaryFolder folder;
  ASSERT_OK_AND(const auto source, File::open(folder.write("source", "0123456789")));
  ASSERT_OK_AND(FileWriter writer, FileWriter::create(folder / "a"));
  EXPECT_EQ(writer.copy_from(*source, 8, 3).error().code, ErrorCode::malformed);
  EXPECT_EQ(writer.write("x").error().message, "the file ends at byte 10, expected 3 bytes at 8");
  EXPECT_EQ(writer.close().error().code, ErrorCode::malformed);
}

TEST(FileWriter, NoticesASourceCutShort) {
  const TemporaryFolder folder;
  const Path path = folder.write("source", pattern(1 << 20));
  ASSERT_OK_AND(const auto source, File::open(path));
  std::filesystem::resize_file(path, 1 << 19);
  ASSERT_OK_AND(FileWriter writer, FileWriter::create(folder / "a"));
  const Status status = writer.copy_from(*source, 0, 1 << 20);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::malformed);
}

TEST(FileWriter, DoesNotTouchWhatIsThere) {
  const TemporaryFolder folder;
  const Path path = folder.write("a", "mine");
  EXPECT_EQ(FileWriter::create(path).error().code, ErrorCode::exists);
  EXPECT_EQ(FileWriter::create(folder.path()).error().code, ErrorCode::exists);
  EXPECT_EQ(FileWriter::create(folder / "none" / "a").error().code, ErrorCode::not_found);
  ASSERT_OK_AND(const std::string read, read_text(path));
  EXPECT_EQ(read, "mine");
}

TEST(File, ReadTextKeepsToTheLimit) {
  const TemporaryFolder folder;
  const Path path = folder.write("a", "12345");
  ASSERT_OK(read_text(path, 5));
  EXPECT_EQ(read_text(path, 4).error().code, ErrorCode::malformed);
}

TEST(File, ListsNamesInOrder) {
  const TemporaryFolder folder;
  for (const char* name : {"b", ".hidden", "a", "c/d"}) folder.write(name, "");
  ASSERT_OK_AND(const std::vector<Path> names, list_folder(folder.path()));
  EXPECT_EQ(names, (std::vector<Path>{".hidden", "a", "b", "c"}));
  EXPECT_EQ(list_folder(folder / "none").error().code, ErrorCode::not_found);
  EXPECT_EQ(list_folder(folder / "a").error().code, ErrorCode::not_found);
}

TEST(ReadStream, TakesFilesAndPipes) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(read_stream(folder.write("a.txt", "text")).value(), "text");
  EXPECT_EQ(read_stream(folder / "none").error().code, ErrorCode::not_found);
  EXPECT_EQ(read_stream(folder.write("b.txt", "12345"), 4).error().code, ErrorCode::malformed);
  EXPECT_FALSE(read_stream(folder.path()).has_value());
}

}  // namespace
}  // namespace mk
