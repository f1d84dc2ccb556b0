#include "base/sha256.h"

#include "testing/testing.h"

namespace mk {
namespace {

// FIPS 180-4 examples.
constexpr std::string_view of_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr std::string_view of_million_a = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256, HashesText) {
  EXPECT_EQ(sha256_hex(std::string_view("abc")), of_abc);
  EXPECT_EQ(sha256_hex(std::string_view()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Sha256, HashesInPieces) {
  Sha256 hash;
  const std::string piece(1000, 'a');
  for (int i = 0; i < 1000; ++i) hash.update(std::as_bytes(std::span(piece)));
  EXPECT_EQ(hash.hex(), of_million_a);
}

TEST(Sha256, HashesFiles) {
  const testing::TemporaryFolder folder;
  ASSERT_OK_AND(const auto small, File::open(folder.write("a", "abc")));
  EXPECT_EQ(sha256_hex(*small), std::string(of_abc));
  const std::string million(1'000'000, 'a');
  ASSERT_OK_AND(const auto large, File::open(folder.write("b", million)));
  EXPECT_EQ(sha256_hex(*large), std::string(of_million_a));
  // sha256sum of 3,000,000 times 'a': more than one block.
  ASSERT_OK_AND(const auto larger, File::open(folder.write("c", million + million + million)));
  EXPECT_EQ(sha256_hex(*larger), std::string("2a152c894398719c0570f83fac34ac03a0f6e8e474b995c2403aa5434f7b9dd4"));
  ASSERT_OK_AND(const auto empty, File::open(folder.write("d", "")));
  EXPECT_EQ(sha256_hex(*empty), sha256_hex(std::string_view()));
}

}  // namespace
}  // namespace mk
