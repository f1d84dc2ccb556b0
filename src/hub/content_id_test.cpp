#include "hub/content_id.h"

#include <chrono>

#include "base/file.h"
#include "base/sha256.h"
#include "hub/side_files.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::TemporaryFolder;

TEST(ContentIds, OfSmallAndLargeFiles) {
  TemporaryFolder folder;
  const ContentIds ids(folder / "memory");
  // echo -n abc | sha256sum
  EXPECT_EQ(ids.sha256(folder.write("small", "abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  // head -c 2000000 /dev/zero | tr '\0' x | sha256sum
  EXPECT_EQ(ids.sha256(folder.write("large", std::string(2'000'000, 'x'))),
            "be8889d3b8893c11d290b8dcf682164c326a90e6998f6bddb25d9a3a02daf666");
  EXPECT_EQ(ids.sha256(folder / "none").error().code, ErrorCode::not_found);
}

TEST(ContentIds, RememberOnlyTheSameState) {
  TemporaryFolder folder;
  const ContentIds ids(folder / "memory", std::chrono::nanoseconds(0));
  const Path file = folder.write("large", std::string(2'000'000, 'x'));
  const auto written = std::filesystem::last_write_time(file);
  ASSERT_OK_AND(const std::string first, ids.sha256(file));

  // What the record says is believed.
  ASSERT_OK_AND(const auto records, list_folder(folder / "memory"));
  ASSERT_EQ(records.size(), 1u);
  ASSERT_OK_AND(std::string record, read_text(folder / "memory" / records[0]));
  record.replace(record.size() - 64, 64, std::string(64, 'e'));
  folder.write("memory" / records[0], record);
  EXPECT_EQ(ids.sha256(file), std::string(64, 'e'));

  // Other content, though size and modification time are the same.
  folder.write("large", std::string(2'000'000, 'y'));
  std::filesystem::last_write_time(file, written);
  EXPECT_EQ(ids.sha256(file), sha256_hex(std::string(2'000'000, 'y')));

  folder.write("memory" / records[0], "damaged");
  EXPECT_EQ(ids.sha256(file), sha256_hex(std::string(2'000'000, 'y')));
}

TEST(ContentIds, DoNotRememberWhatJustChanged) {
  TemporaryFolder folder;
  const ContentIds ids(folder / "memory");
  ASSERT_OK(ids.sha256(folder.write("large", std::string(2'000'000, 'x'))));
  EXPECT_FALSE(std::filesystem::exists(folder / "memory"));
}

TEST(ContentIds, NeedNoMemory) {
  TemporaryFolder folder;
  const ContentIds ids(folder.write("a file", "") / "memory", std::chrono::nanoseconds(0));
  ASSERT_OK(ids.sha256(folder.write("large", std::string(2'000'000, 'x'))));
}

TEST(ContentIds, ABlobsNameIsItsHash) {
  TemporaryFolder folder;
  const std::string hash(64, 'a');
  folder.write(Path("blobs") / hash, "not that hash");
  std::filesystem::create_directories(folder / "snapshots/1");
  std::error_code error;
  std::filesystem::create_symlink(Path("../../blobs") / hash, folder / "snapshots/1/model.safetensors", error);
  if (error) GTEST_SKIP() << "no symbolic links here";
  EXPECT_EQ(ContentIds(folder / "memory").sha256(folder / "snapshots/1/model.safetensors"), hash);
}

TEST(SideFiles, TravelWithAModel) {
  TemporaryFolder folder;
  for (const std::string_view name :
       {"config.json", "model.safetensors", "tokenizer.json", "vocab.txt", "README.md", "training_args.bin",
        "preprocessor_config.json", "1_Pooling/config.json", "onnx/model.onnx", "additional_chat_templates/rag.jinja",
        "chat_template.jinja", "winml_build_config.json"})
    folder.write(name, "");
  ASSERT_OK_AND(const auto files, side_files_in(folder.path()));
  EXPECT_EQ(files,
            (std::vector<Path>{"1_Pooling/config.json", "additional_chat_templates/rag.jinja", "chat_template.jinja",
                               "config.json", "preprocessor_config.json", "tokenizer.json", "vocab.txt"}));
  EXPECT_FALSE(side_files_in(folder / "none"));
}

}  // namespace
}  // namespace mk
