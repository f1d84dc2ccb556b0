#include "checkpoint/gguf_codes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "graph/float16_kernels.h"

namespace mk {
namespace {

// One group of a block: its codes, one to a byte, and what they mean.
struct Group {
  std::array<std::uint8_t, 32> codes{};
  float scale = 0, zero = 0;
};

std::uint8_t byte(const std::byte* at, int index) { return std::to_integer<std::uint8_t>(at[index]); }

float half(const std::byte* at) {
  float value = 0;
  float16_to_float32(at, reinterpret_cast<std::byte*>(&value), 1);
  return value;
}

// scale * code + low as scale * (code - zero): a group of one value has no scale to divide by.
void set_low(Group& group, float scale, float low) {
  group.scale = scale;
  if (scale != 0) {
    group.zero = -low / scale;
    return;
  }
  group.codes.fill(0);
  group.scale = low;
  group.zero = low == 0 ? 0.0F : -1.0F;
}

void nibbles(const std::byte* packed, Group& group) {
  for (std::size_t i = 0; i < 16; ++i) {
    group.codes[i] = byte(packed, static_cast<int>(i)) & 0xF;
    group.codes[i + 16] = byte(packed, static_cast<int>(i)) >> 4;
  }
}

void q4_0(const std::byte* block, int, Group& group) {
  nibbles(block + 2, group);
  group.scale = half(block);
}

void q4_1(const std::byte* block, int, Group& group) {
  nibbles(block + 4, group);
  set_low(group, half(block), half(block + 2));
}

void q8_0(const std::byte* block, int, Group& group) {
  for (std::size_t i = 0; i < group.codes.size(); ++i)
    group.codes[i] = static_cast<std::uint8_t>(byte(block, static_cast<int>(i) + 2) ^ 0x80);  // + 128
  group.scale = half(block);
}

void q4_k(const std::byte* block, int index, Group& group) {
  const std::byte *const packed = block + 4, *const bytes = block + 16 + 32 * (index / 2);
  const auto at = [&](int i) { return byte(packed, i); };
  const int i = index;
  const int q = i < 4 ? at(i) & 63 : (at(i + 4) & 0xF) | (at(i - 4) >> 6) << 4;
  const int m = i < 4 ? at(i + 4) & 63 : at(i + 4) >> 4 | (at(i) >> 6) << 4;
  for (std::size_t l = 0; l < group.codes.size(); ++l) {
    const std::uint8_t both = byte(bytes, static_cast<int>(l));
    group.codes[l] = index % 2 == 0 ? both & 0xF : both >> 4;
  }
  set_low(group, half(block) * static_cast<float>(q), -half(block + 2) * static_cast<float>(m));
}

struct Coding {
  std::uint32_t type;
  int bits;
  bool has_zeros;
  void (*group)(const std::byte* block, int index, Group& group);
};
constexpr std::array codings{Coding{2, 4, false, q4_0}, Coding{3, 4, true, q4_1}, Coding{8, 8, false, q8_0},
                             Coding{12, 4, true, q4_k}};

enum class Part { codes, scales, zeros };

class Repacked : public ByteSource {
 public:
  Repacked(Bytes blocks, const GgufType& type, const Coding& coding, Part part)
      : blocks_(std::move(blocks)), type_(type), coding_(coding), part_(part) {
    groups_ = static_cast<int>(type.elements) / 32;
    width_ = part == Part::codes ? type.elements * static_cast<std::uint64_t>(coding.bits) / 8
                                 : static_cast<std::uint64_t>(groups_) * sizeof(float);
  }
  std::uint64_t size() const override { return blocks_->size() / type_.bytes * width_; }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    constexpr std::uint64_t most = 4096;
    std::vector<std::byte> raw, made(static_cast<std::size_t>(width_));
    while (!out.empty()) {
      const std::uint64_t first = offset / width_, last = (offset + out.size() + width_ - 1) / width_;
      const std::uint64_t count = std::min(most, last - first);
      raw.resize(static_cast<std::size_t>(count * type_.bytes));
      MK_CHECK(blocks_->read(first * type_.bytes, raw));
      for (std::uint64_t i = 0; i < count; ++i) {
        make(raw.data() + i * type_.bytes, made.data());
        const auto from = static_cast<std::size_t>(offset - (first + i) * width_);
        const std::size_t part = std::min(out.size(), made.size() - from);
        std::memcpy(out.data(), made.data() + from, part);
        out = out.subspan(part);
        offset += part;
      }
    }
    return {};
  }

 private:
  void make(const std::byte* block, std::byte* out) const {
    for (int index = 0; index < groups_; ++index) {
      Group group;
      coding_.group(block, index, group);
      if (part_ != Part::codes) {
        const float value = part_ == Part::scales ? group.scale : group.zero;
        std::memcpy(out, &value, sizeof value);
        out += sizeof value;
      } else if (coding_.bits == 8) {
        std::memcpy(out, group.codes.data(), group.codes.size());
        out += group.codes.size();
      } else {
        for (std::size_t i = 0; i < group.codes.size(); i += 2)
          *out++ = static_cast<std::byte>(group.codes[i] | group.codes[i + 1] << 4);
      }
    }
  }

  Bytes blocks_;
  const GgufType& type_;
  const Coding& coding_;
  Part part_;
  int groups_ = 1;
  std::uint64_t width_ = 1;
};

}  // namespace

std::optional<QuantizedMatrix> kept_codes(const Bytes& blocks, const GgufType& type, std::int64_t rows,
                                          std::int64_t columns) {
  const auto coding =
      std::find_if(codings.begin(), codings.end(), [&](const Coding& one) { return one.type == type.number; });
  if (coding == codings.end()) return std::nullopt;
  const auto part = [&](Part which) -> Bytes { return std::make_shared<const Repacked>(blocks, type, *coding, which); };
  return QuantizedMatrix{.rows = rows,
                         .columns = columns,
                         .bits = coding->bits,
                         .group = 32,
                         .codes = part(Part::codes),
                         .scales = part(Part::scales),
                         .zero_points = coding->has_zeros ? part(Part::zeros) : nullptr};
}

}  // namespace mk
