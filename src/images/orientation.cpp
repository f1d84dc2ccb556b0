#include <algorithm>
#include <cstring>

#include "images/codecs.h"

namespace mk::codecs {
namespace {

constexpr std::uint32_t orientation_tag = 0x0112;

// Reads the TIFF structure that EXIF is.
struct Tiff {
  Bytes bytes;
  bool big_endian;

  bool has(std::size_t at, std::size_t count) const { return at <= bytes.size() && count <= bytes.size() - at; }
  std::uint32_t read(std::size_t at, int width) const {
    std::uint32_t value = 0;
    for (int i = 0; i < width; ++i) {
      const auto byte = std::to_integer<std::uint32_t>(bytes[at + static_cast<std::size_t>(i)]);
      value = big_endian ? value << 8 | byte : value | byte << (8 * i);
    }
    return value;
  }
};

// The value's width in an entry, by TIFF field type; other types cannot hold an orientation.
int width_of_type(std::uint32_t type) {
  switch (type) {
    case 1:
      return 1;
    case 3:
      return 2;
    case 4:
      return 4;
    default:
      return 0;
  }
}

}  // namespace

int exif_orientation(Bytes exif) {
  constexpr char prefix[6] = {'E', 'x', 'i', 'f', 0, 0};
  while (exif.size() >= sizeof prefix && std::memcmp(exif.data(), prefix, sizeof prefix) == 0)
    exif = exif.subspan(sizeof prefix);
  if (exif.size() < 8) return 0;
  const char order = static_cast<char>(exif[0]);
  if ((order != 'I' && order != 'M') || exif[1] != exif[0]) return 0;
  const Tiff tiff{exif, order == 'M'};
  const std::size_t directory = tiff.read(4, 4);
  if (tiff.read(2, 2) != 42 || !tiff.has(directory, 2)) return 0;
  const std::size_t entries = tiff.read(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t at = directory + 2 + i * 12;
    if (!tiff.has(at, 12)) return 0;
    if (tiff.read(at, 2) != orientation_tag) continue;
    const int width = width_of_type(tiff.read(at + 2, 2));
    return width == 0 ? 0 : static_cast<int>(tiff.read(at + 8, width) & 0xff);
  }
  return 0;
}

int xmp_orientation(std::string_view xmp) {
  constexpr std::string_view key = "tiff:Orientation";
  for (std::size_t at = xmp.find(key); at != std::string_view::npos; at = xmp.find(key, at + 1)) {
    std::string_view rest = xmp.substr(at + key.size());
    if (rest.starts_with("=\""))
      rest.remove_prefix(2);
    else if (rest.starts_with('>'))
      rest.remove_prefix(1);
    else
      continue;
    if (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') return rest.front() - '0';
  }
  return 0;
}

Image turn(Image image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const int w = image.width, h = image.height;
  if (orientation == 4) {
    for (int y = 0; y < h / 2; ++y)
      std::swap_ranges(image.row(y), image.row(y) + image.row_bytes(), image.row(h - 1 - y));
    return image;
  }
  const bool swaps_axes = orientation >= 5;
  const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom = orientation == 3 || orientation == 6 || orientation == 7;
  Image out = swaps_axes ? Image(h, w) : Image(w, h);
  for (int y = 0; y < out.height; ++y) {
    std::uint8_t* target = out.row(y);
    for (int x = 0; x < out.width; ++x, target += 3) {
      int sx = swaps_axes ? y : x, sy = swaps_axes ? x : y;
      if (from_right) sx = w - 1 - sx;
      if (from_bottom) sy = h - 1 - sy;
      std::memcpy(target, image.row(sy) + static_cast<std::size_t>(sx) * 3, 3);
    }
  }
  return out;
}

}  // namespace mk::codecs
