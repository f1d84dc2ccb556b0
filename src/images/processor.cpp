#include "images/processor.h"

#include <algorithm>
#include <utility>

#include "base/json.h"

namespace mk {
namespace {

// The transposing walk writes whole rows of each plane.
void write_planes(const Image& image, int left, int top, ImageSize size,
                  const std::array<std::array<float, 256>, 3>& values, std::span<float> out) {
  const auto width = static_cast<std::size_t>(size.width);
  const std::size_t plane = width * static_cast<std::size_t>(size.height);
  for (int y = 0; y < size.height; ++y) {
    const int source_y = y + top;
    const bool inside_rows = source_y >= 0 && source_y < image.height;
    const int first = inside_rows ? std::clamp(-left, 0, size.width) : size.width;
    const int end = inside_rows ? std::clamp(image.width - left, first, size.width) : size.width;
    for (std::size_t c = 0; c < 3; ++c) {
      float* row = out.data() + c * plane + static_cast<std::size_t>(y) * width;
      const auto& value = values[c];
      std::fill(row, row + first, value[0]);
      if (first < end) {
        const std::uint8_t* pixel = image.row(source_y) + static_cast<std::size_t>(first + left) * 3 + c;
        for (int x = first; x < end; ++x, pixel += 3) row[x] = value[*pixel];
      }
      std::fill(row + end, row + size.width, value[0]);
    }
  }
}

// Where a centred crop begins; negative where the image is smaller and zeros fill up. transformers rounds the
// padding up before it crops, which is what remains of both here.
int crop_offset(int length, int crop) {
  if (length >= crop) return (length - crop) / 2;
  return -((crop - length + 1) / 2);
}

}  // namespace

ImageSize ImageProcessor::resized(ImageSize image) const {
  if (exact_) return *exact_;
  if (!shortest_edge_) return image;
  const bool upright = image.width <= image.height;
  const int shorter = std::min(image.width, image.height), longer = std::max(image.width, image.height);
  const double stretched = static_cast<double>(std::int64_t{*shortest_edge_} * longer) / std::max(shorter, 1);
  const int stretched_edge = static_cast<int>(std::min(stretched, 2e9));
  return upright ? ImageSize{stretched_edge, *shortest_edge_} : ImageSize{*shortest_edge_, stretched_edge};
}

std::optional<ImageSize> ImageProcessor::fixed_size() const { return crop_ ? crop_ : exact_; }

ImageSize ImageProcessor::output_size(ImageSize image) const { return crop_ ? *crop_ : resized(image); }

Status ImageProcessor::process(const Image& image, std::span<float> out) const {
  const ImageSize before{image.height, image.width};
  const ImageSize after = resized(before);
  const ImageSize size = output_size(before);
  if (out.size() != 3 * static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width))
    return fail(ErrorCode::failed, "the image becomes " + std::to_string(size.height) + " x " +
                                       std::to_string(size.width) + " (height x width), which does not fit the input");
  const int top = crop_ ? crop_offset(after.height, crop_->height) : 0;
  const int left = crop_ ? crop_offset(after.width, crop_->width) : 0;
  if (after == before) {
    write_planes(image, left, top, size, values_, out);
    return {};
  }
  MK_TRY(const Image scaled, resize(image, after.width, after.height, resample_));
  write_planes(scaled, left, top, size, values_, out);
  return {};
}

}  // namespace mk
