#include "checkpoint/strided.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

namespace mk {
namespace {

// What gathering holds in memory: the part of the storage that the view spans, and the result.
constexpr std::uint64_t max_gathered_bytes = 1u << 30;
constexpr std::size_t max_rank = 64;  // PyTorch's own limit

struct Axis {
  std::uint64_t size;
  std::uint64_t stride;
};

// Arithmetic that stays at the largest number, which no file has bytes for.
constexpr std::uint64_t too_many = std::numeric_limits<std::uint64_t>::max();
std::uint64_t product(std::uint64_t a, std::uint64_t b) { return b != 0 && a > too_many / b ? too_many : a * b; }
std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > too_many - b ? too_many : a + b; }

// The axes with more than one element, neighbours joined where the outer one steps over the whole inner one.
std::vector<Axis> joined_axes(const StridedView& view) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    const Axis axis{static_cast<std::uint64_t>(view.sizes[i]), static_cast<std::uint64_t>(view.strides[i])};
    if (axis.size == 1) continue;
    if (!axes.empty() && product(axis.size, axis.stride) == axes.back().stride)
      axes.back() = {axes.back().size * axis.size, axis.stride};
    else
      axes.push_back(axis);
  }
  return axes;
}

void gather(const std::byte* source, const Axis* axis, const Axis* end, std::uint64_t width, std::byte*& out) {
  if (axis == end) {
    std::memcpy(out, source, width);
    out += width;
    return;
  }
  for (std::uint64_t i = 0; i < axis->size; ++i) gather(source + i * axis->stride * width, axis + 1, end, width, out);
}

}  // namespace

Result<Bytes> strided_bytes(const StridedView& view) {
  const auto malformed = [](std::string message) { return fail(ErrorCode::malformed, std::move(message)); };
  if (view.sizes.size() != view.strides.size() || view.sizes.size() > max_rank)
    return malformed(fmt::format("has {} sizes and {} strides", view.sizes.size(), view.strides.size()));
  std::uint64_t count = 1;
  std::uint64_t last = view.offset;  // the furthest element, where there is any
  for (std::size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] < 0 || view.strides[i] < 0)
      return malformed(fmt::format("has the size {} and stride {}", view.sizes[i], view.strides[i]));
    const auto size = static_cast<std::uint64_t>(view.sizes[i]);
    count = product(count, size);
    if (size > 1) last = sum(last, product(size - 1, static_cast<std::uint64_t>(view.strides[i])));
  }
  if (count == 0) return file_bytes({view.storage.file, view.storage.offset, 0});
  const std::uint64_t stored = view.storage.length / view.width;
  if (last >= stored)
    return malformed(fmt::format("of size [{}], strides [{}] and offset {} leaves its storage of {} elements",
                                 fmt::join(view.sizes, ", "), fmt::join(view.strides, ", "), view.offset, stored));

  const std::vector<Axis> axes = joined_axes(view);
  const std::uint64_t width = view.width;
  const std::uint64_t begin = view.offset * width;
  const std::uint64_t span = (last - view.offset + 1) * width;
  const Bytes bytes = file_bytes({view.storage.file, view.storage.offset + begin, span});
  if (axes.empty() || (axes.size() == 1 && axes[0].stride == 1)) return bytes;

  // [batch, rows, columns] whose rows and columns stand the other way round: a matrix stored transposed, or the
  // channels-last layout of convolutions.
  const std::size_t n = axes.size();
  if ((n == 2 || n == 3) && axes[n - 2].stride == 1 && axes[n - 1].stride == axes[n - 2].size &&
      (n == 2 || axes[0].stride == axes[1].size * axes[2].size))
    return transposed(bytes, n == 3 ? axes[0].size : 1, axes[n - 1].size, axes[n - 2].size, width);

  const std::uint64_t size = product(count, width);
  if (size > max_gathered_bytes || span > max_gathered_bytes)
    return fail(ErrorCode::unsupported,
                fmt::format("is a view of size [{}] and strides [{}], too large to be gathered",
                            fmt::join(view.sizes, ", "), fmt::join(view.strides, ", ")),
                {}, "Make it contiguous (tensor.contiguous()) and save the checkpoint again");
  return computed(size, [bytes, axes, width](std::span<std::byte> out) -> Status {
    MK_TRY(const auto source, read_all(*bytes));
    std::byte* position = out.data();
    gather(source.data(), axes.data(), axes.data() + axes.size(), width, position);
    return {};
  });
}

}  // namespace mk
