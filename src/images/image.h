#pragma once
// An image in memory: 8-bit RGB, rows from the top, interleaved, without padding.
// It is what Pillow calls mode "RGB"; every decoder delivers it, every processor starts from it.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mk {

struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> rgb;  // 3 * width * height

  Image() = default;
  Image(int w, int h) : width(w), height(h), rgb(static_cast<std::size_t>(w) * static_cast<std::size_t>(h) * 3) {}

  std::size_t row_bytes() const { return static_cast<std::size_t>(width) * 3; }
  std::uint8_t* row(int y) { return rgb.data() + static_cast<std::size_t>(y) * row_bytes(); }
  const std::uint8_t* row(int y) const { return rgb.data() + static_cast<std::size_t>(y) * row_bytes(); }
};

// Images with more pixels are refused, decoded or resized (Pillow's limit against decompression bombs).
inline constexpr std::int64_t max_image_pixels = 178'956'970;

}  // namespace mk
