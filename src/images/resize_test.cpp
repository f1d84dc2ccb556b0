// Against hashes of what Pillow 13 makes: tests/data/images/resize.json, made by make_images.py.

#include "images/resize.h"

#include "base/json.h"
#include "base/sha256.h"
#include "testing/testing.h"

namespace mk {
namespace {

// The noise of make_images.py.
Image noise(int width, int height) {
  Image image(width, height);
  auto state = static_cast<std::uint32_t>(width) * 65537U + static_cast<std::uint32_t>(height);
  for (auto& byte : image.rgb) {
    state = state * 1664525U + 1013904223U;
    const auto value = static_cast<std::uint8_t>(state >> 24);
    byte = value < 60 ? 0 : value > 195 ? 255 : value;
  }
  return image;
}

TEST(Resize, EqualsPillowToTheBit) {
  ASSERT_OK_AND(const Json rows, read_json(testing::repository("tests/data/images/resize.json")));
  ASSERT_GE(rows.size(), 300U);
  for (const Json& row : rows) {
    const Image source = noise(row[0], row[1]);
    ASSERT_OK_AND(const Image image, resize(source, row[2], row[3], static_cast<Resample>(row[4].get<int>())));
    EXPECT_EQ(sha256_hex({reinterpret_cast<const char*>(image.rgb.data()), image.rgb.size()}), row[5]) << row.dump();
  }
}

TEST(Resize, RefusesImpossibleSizes) {
  EXPECT_FALSE(resize(noise(4, 4), 0, 5, Resample::bilinear).has_value());
  EXPECT_FALSE(resize(noise(4, 4), 5, -1, Resample::nearest).has_value());
  EXPECT_FALSE(resize(noise(4, 4), 60'000, 60'000, Resample::bicubic).has_value());
}

}  // namespace
}  // namespace mk
