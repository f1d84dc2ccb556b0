#include "quantize/float16_bytes.h"

#include <algorithm>
#include <cstring>

namespace mk {
namespace {

constexpr std::uint64_t elements_at_once = 32768;  // 128 KiB of float32: within the second-level cache
constexpr std::uint64_t small_size = 4096;

}  // namespace

Float16Bytes::Float16Bytes(Bytes float32, bool keep_infinity)
    : source_(std::move(float32)), keep_infinity_(keep_infinity) {
  const auto memory = source_->in_memory();
  if (!memory || memory->size() > small_size) return;
  const std::size_t elements = memory->size() / 4;
  small_.resize(elements * 2);
  losses_ = clip_to_float16(memory->data(), small_.data(), elements, keep_infinity_);
  counted_ = elements;
}

std::optional<std::span<const std::byte>> Float16Bytes::in_memory() const {
  if (small_.size() != size()) return std::nullopt;
  return small_;
}

Status Float16Bytes::read(std::uint64_t offset, std::span<std::byte> out) const {
  if (const auto memory = in_memory()) {
    if (!out.empty()) std::memcpy(out.data(), memory->data() + offset, out.size());
    return {};
  }
  std::byte edge[2];
  std::unique_ptr<std::byte[]> buffer;
  while (!out.empty()) {
    const std::uint64_t first = offset / 2;
    const bool whole = offset % 2 == 0 && out.size() >= 2;
    const std::uint64_t elements = whole ? std::min<std::uint64_t>(out.size() / 2, elements_at_once) : 1;
    MK_TRY(const Float16Losses here, convert(first, elements, whole ? out.data() : edge, buffer));
    count(first, elements, here);
    if (!whole) out[0] = edge[offset % 2];
    const auto length = whole ? static_cast<std::size_t>(elements * 2) : 1;
    out = out.subspan(length);
    offset += length;
  }
  return {};
}

Result<Float16Losses> Float16Bytes::convert(std::uint64_t first, std::uint64_t elements, std::byte* to,
                                            std::unique_ptr<std::byte[]>& buffer) const {
  if (const auto memory = source_->in_memory()) {
    return clip_to_float16(memory->data() + first * 4, to, static_cast<std::size_t>(elements), keep_infinity_);
  }
  if (!buffer) buffer = std::make_unique_for_overwrite<std::byte[]>(elements_at_once * 4);
  const std::span<std::byte> part(buffer.get(), static_cast<std::size_t>(elements * 4));
  MK_CHECK(source_->read(first * 4, part));
  return clip_to_float16(part.data(), to, static_cast<std::size_t>(elements), keep_infinity_);
}

void Float16Bytes::count(std::uint64_t first, std::uint64_t elements, const Float16Losses& here) const {
  const std::scoped_lock lock(mutex_);
  if (first != counted_) return;
  counted_ += elements;
  losses_.clipped += here.clipped;
  losses_.infinite += here.infinite;
  losses_.raised += here.raised;
}

Result<Float16Losses> Float16Bytes::losses() const {
  std::uint64_t next = 0;
  {
    const std::scoped_lock lock(mutex_);
    next = counted_;
  }
  std::unique_ptr<std::byte[]> buffer;
  std::vector<std::byte> ignored(static_cast<std::size_t>(std::min(size() - next * 2, elements_at_once * 2)));
  for (const std::uint64_t all = size() / 2; next < all;) {
    const std::uint64_t elements = std::min(all - next, elements_at_once);
    MK_TRY(const Float16Losses here, convert(next, elements, ignored.data(), buffer));
    count(next, elements, here);
    next += elements;
  }
  const std::scoped_lock lock(mutex_);
  return losses_;
}

}  // namespace mk
