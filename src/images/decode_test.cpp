// Against what Pillow reads: tests/data/images, made by make_images.py.

#include "images/decode.h"

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "testing/testing.h"

namespace mk {
namespace {

std::string_view bytes_of(const Image& image) {
  return {reinterpret_cast<const char*>(image.rgb.data()), image.rgb.size()};
}

std::span<const std::byte> span_of(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

std::string load(std::string_view name) {
  return *read_text(testing::repository("tests/data/images") / path_from_utf8(name));
}

int largest_difference(const Image& a, const Image& b) {
  int largest = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) largest = std::max(largest, std::abs(a.rgb[i] - b.rgb[i]));
  return largest;
}

TEST(Decode, GivesWhatPillowGives) {
  const Path folder = testing::repository("tests/data/images");
  ASSERT_OK_AND(const Json images, read_json(folder / "images.json"));
  ASSERT_GE(images.size(), 45U);
  for (const auto& [name, expected] : images.items()) {
    SCOPED_TRACE(name);
    ASSERT_OK_AND(const Image image, read_image(folder / name));
    EXPECT_EQ(image.width, expected["size"][0]);
    EXPECT_EQ(image.height, expected["size"][1]);
    if (expected.contains("sha256")) {
      EXPECT_EQ(sha256_hex(bytes_of(image)), expected["sha256"]);
      continue;
    }
    ASSERT_OK_AND(const Image other, read_image(folder / expected["expected"].get<std::string>()));
    ASSERT_EQ(image.rgb.size(), other.rgb.size());
    EXPECT_LE(largest_difference(image, other), 2);
  }
}

// Whatever the bytes, an error or an image; sanitizers watch the rest.
TEST(Decode, SurvivesBrokenBytes) {
  for (const char* name : {"png-2-8-interlaced.png", "png-3-4.png", "jpeg-420.jpg", "jpeg-progressive.jpg",
                           "jpeg-exif-5.jpg", "webp-lossy.webp", "webp-alpha.webp", "webp-animated.webp"}) {
    SCOPED_TRACE(name);
    const std::string whole = load(name);
    for (std::size_t length = 0; length < whole.size(); ++length) {
      const auto cut = decode_image(span_of(whole.substr(0, length)), "cut");
      if (length + 40 < whole.size()) {
        EXPECT_FALSE(cut.has_value()) << length;
      }
    }
    for (std::size_t at = 0; at < whole.size(); ++at) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
      (void)decode_image(span_of(flipped), "flipped");
    }
  }
}

TEST(Decode, NamesWhatIsWrong) {
  const auto error_of = [](const std::string& bytes) -> Error {
    const auto outcome = decode_image(span_of(bytes), "row 7");
    return outcome ? Error{} : outcome.error();
  };
  EXPECT_EQ(error_of("").code, ErrorCode::malformed);
  EXPECT_EQ(error_of("hello, world").to_string(), "the bytes are no image (row 7). JPEG, PNG and WebP are read");
  EXPECT_EQ(error_of("GIF89a...").code, ErrorCode::unsupported);
  EXPECT_NE(error_of("GIF89a...").message.find("GIF"), std::string::npos);
  const std::string jpeg = load("jpeg-420.jpg");
  EXPECT_NE(error_of(jpeg.substr(0, jpeg.size() * 3 / 4)).message.find("truncated"), std::string::npos);
  const auto missing = read_image("/nowhere/x.png");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
}

TEST(Decode, RefusesTooManyPixels) {
  std::string png = load("png-2-8.png");
  for (const std::size_t at : {std::size_t{16}, std::size_t{20}}) png.replace(at, 4, std::string("\0\0\x7f\xff", 4));
  // libpng checks the header's sum first; put it right.
  std::uint32_t crc = 0xffffffffU;
  for (std::size_t i = 12; i < 29; ++i) {
    crc ^= static_cast<std::uint8_t>(png[i]);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? crc >> 1 ^ 0xedb88320U : crc >> 1;
  }
  crc = ~crc;
  for (std::size_t i = 0; i < 4; ++i) png[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
  const auto outcome = decode_image(span_of(png), "bomb");
  ASSERT_FALSE(outcome.has_value());
  EXPECT_NE(outcome.error().message.find("32767 x 32767"), std::string::npos) << outcome.error().to_string();
}

}  // namespace
}  // namespace mk
