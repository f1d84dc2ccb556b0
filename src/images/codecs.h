#pragma once
// What decode_image is made of: one function per format, and the orientation tag. Internal to images.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "images/image.h"

namespace mk::codecs {

using Bytes = std::span<const std::byte>;

// The longest side accepted; with max_image_pixels it bounds what a small hostile file can make us allocate.
inline constexpr std::int64_t max_side = 1'000'000;

struct Decoded {
  Image image;
  int orientation = 1;  // EXIF's, 1 to 8; not applied yet
};

// Message only; decode_image adds the name.
using Outcome = tl::expected<Decoded, std::string>;

Outcome decode_jpeg(Bytes bytes);
Outcome decode_png(Bytes bytes);
Outcome decode_webp(Bytes bytes);

// Empty when the size is acceptable, else what is wrong with it.
std::string size_problem(std::int64_t width, std::int64_t height);

// The orientation in an EXIF block, with or without its "Exif\0\0" prefix; 0 when it has none (or is broken).
int exif_orientation(Bytes exif);
// The orientation in an XMP packet: the first tiff:Orientation="N" or <tiff:Orientation>N; 0 when it has none.
int xmp_orientation(std::string_view xmp);
// The image turned as the orientation says; out of 1 to 8 leaves it.
Image turn(Image image, int orientation);

}  // namespace mk::codecs
