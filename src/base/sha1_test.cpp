#include "base/sha1.h"

#include "testing/testing.h"

namespace mk {
namespace {

// FIPS 180-4 example, and the digest of nothing.
TEST(Sha1, OfFiles) {
  testing::TemporaryFolder folder;
  ASSERT_OK_AND(auto abc, File::open(folder.write("abc", "abc")));
  ASSERT_OK_AND(auto digest, sha1_hex(*abc));
  EXPECT_EQ(digest, "a9993e364706816aba3e25717850c26c9cd0d89d");
  ASSERT_OK_AND(auto empty, File::open(folder.write("empty", "")));
  ASSERT_OK_AND(digest, sha1_hex(*empty));
  EXPECT_EQ(digest, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
}

// As `git hash-object` prints it for "hello\n" and for an empty file.
TEST(Sha1, NamesContentsAsGitDoes) {
  testing::TemporaryFolder folder;
  ASSERT_OK_AND(auto hello, File::open(folder.write("hello", "hello\n")));
  ASSERT_OK_AND(auto digest, git_blob_hex(*hello));
  EXPECT_EQ(digest, "ce013625030ba8dba906f756967f9e9ca394464a");
  ASSERT_OK_AND(auto empty, File::open(folder.write("empty", "")));
  ASSERT_OK_AND(digest, git_blob_hex(*empty));
  EXPECT_EQ(digest, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

}  // namespace
}  // namespace mk
