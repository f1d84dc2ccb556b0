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

}  // namespace
}  // namespace mk
