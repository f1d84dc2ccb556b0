// cast(): elements converted while they are read, in pieces that stay in the processor's cache.

#include <algorithm>
#include <array>
#include <cstring>

#include "graph/element_access.h"
#include "graph/float_formats.h"
#include "graph/tensor.h"

namespace mk {
namespace {

class CastBytes final : public ByteSource {
 public:
  CastBytes(Bytes source, DataType from, DataType to)
      : source_(std::move(source)),
        from_(from),
        to_(to),
        from_width_(static_cast<std::uint64_t>(bits_of(from) / 8)),
        to_width_(static_cast<std::uint64_t>(bits_of(to) / 8)) {}

  std::uint64_t size() const override { return from_width_ == 0 ? 0 : source_->size() / from_width_ * to_width_; }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return {};
    if (!convertible()) {
      return fail(ErrorCode::unsupported,
                  "cannot cast " + std::string(name_of(from_)) + " to " + std::string(name_of(to_)));
    }
    constexpr std::uint64_t elements_at_once = 16384;
    std::vector<std::byte> converted;
    while (!out.empty()) {
      const std::uint64_t first = offset / to_width_;
      const std::uint64_t skip = offset % to_width_;
      const std::uint64_t wanted = (skip + out.size() + to_width_ - 1) / to_width_;
      const std::uint64_t count = std::min(wanted, elements_at_once);
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(count * to_width_ - skip, out.size()));
      if (skip == 0 && length == count * to_width_) {
        MK_CHECK(convert(first, count, out.data()));
      } else {
        converted.resize(static_cast<std::size_t>(count * to_width_));
        MK_CHECK(convert(first, count, converted.data()));
        std::memcpy(out.data(), converted.data() + skip, length);
      }
      out = out.subspan(length);
      offset += length;
    }
    return {};
  }

 private:
  static bool is_whole(DataType type) { return (is_integer(type) && bits_of(type) >= 8) || type == DataType::boolean; }

  bool convertible() const { return (is_whole(from_) && is_whole(to_)) || float_conversion(from_, to_) != nullptr; }

  Status convert(std::uint64_t first, std::uint64_t count, std::byte* to) const {
    const auto elements = static_cast<std::size_t>(count);
    std::array<std::byte, 8192> near;
    std::vector<std::byte> far;
    const std::size_t bytes = elements * static_cast<std::size_t>(from_width_);
    const std::byte* from = nullptr;
    if (const auto memory = source_->in_memory()) {
      from = memory->data() + first * from_width_;
    } else {
      std::span<std::byte> buffer = near;
      if (bytes > near.size()) {
        far.resize(bytes);
        buffer = far;
      }
      MK_CHECK(source_->read(first * from_width_, buffer.first(bytes)));
      from = buffer.data();
    }
    if (const FloatConversion floats = float_conversion(from_, to_)) {
      floats(from, to, elements);
    } else {
      for (std::size_t i = 0; i < elements; ++i) store_integer(to_, to, i, load_integer(from_, from, i));
    }
    return {};
  }

  Bytes source_;
  DataType from_;
  DataType to_;
  std::uint64_t from_width_;
  std::uint64_t to_width_;
};

}  // namespace

Bytes cast(Bytes source, DataType from, DataType to) {
  if (from == to) return source;
  return std::make_shared<CastBytes>(std::move(source), from, to);
}

}  // namespace mk
