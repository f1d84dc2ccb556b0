#include "checkpoint/gguf_blocks.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "graph/float16_kernels.h"

namespace mk {
namespace {

constexpr int group = 32;         // elements of a small block
constexpr int super_block = 256;  // of one of the K types

std::uint8_t byte(const std::byte* at, int index) { return std::to_integer<std::uint8_t>(at[index]); }

float half(const std::byte* at) {
  float value = 0;
  float16_to_float32(at, reinterpret_cast<std::byte*>(&value), 1);
  return value;
}

// The low halves of 16 bytes, then the high ones; of the fifth bits too where `high` has them.
template <typename Value>
void nibbles(const std::byte* packed, Value value) {
  for (int i = 0; i < group / 2; ++i) {
    value(i, byte(packed, i) & 0xF);
    value(i + group / 2, byte(packed, i) >> 4);
  }
}

std::uint32_t fifth_bits(const std::byte* at) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return bits;
}

void q4_0(const std::byte* block, float* out) {
  const float scale = half(block);
  nibbles(block + 2, [&](int i, int q) { out[i] = static_cast<float>(q - 8) * scale; });
}

void q4_1(const std::byte* block, float* out) {
  const float scale = half(block), low = half(block + 2);
  nibbles(block + 4, [&](int i, int q) { out[i] = static_cast<float>(q) * scale + low; });
}

void q5_0(const std::byte* block, float* out) {
  const float scale = half(block);
  const std::uint32_t high = fifth_bits(block + 2);
  nibbles(block + 6,
          [&](int i, int q) { out[i] = static_cast<float>((q | static_cast<int>(high >> i & 1) << 4) - 16) * scale; });
}

void q5_1(const std::byte* block, float* out) {
  const float scale = half(block), low = half(block + 2);
  const std::uint32_t high = fifth_bits(block + 4);
  nibbles(block + 8,
          [&](int i, int q) { out[i] = static_cast<float>(q | static_cast<int>(high >> i & 1) << 4) * scale + low; });
}

void q8_0(const std::byte* block, float* out) {
  const float scale = half(block);
  for (int i = 0; i < group; ++i) out[i] = static_cast<float>(static_cast<std::int8_t>(byte(block, 2 + i))) * scale;
}

struct ScaleAndLow {
  float scale, low;
};
// Six bits each for eight groups, packed in twelve bytes.
ScaleAndLow of_group(const std::byte* block, const std::byte* packed, int i) {
  const float scale = half(block), low = half(block + 2);
  const auto at = [&](int index) { return byte(packed, index); };
  const int q = i < 4 ? at(i) & 63 : (at(i + 4) & 0xF) | (at(i - 4) >> 6) << 4;
  const int m = i < 4 ? at(i + 4) & 63 : at(i + 4) >> 4 | (at(i) >> 6) << 4;
  return {scale * static_cast<float>(q), low * static_cast<float>(m)};
}

// `bit` gives the fifth bit of element l of group i.
template <typename Bit>
void four_bit_groups(const std::byte* block, const std::byte* packed, float* out, Bit bit) {
  for (int pair = 0; pair < super_block / (2 * group); ++pair) {
    const std::byte* const bytes = packed + pair * group;
    for (int side = 0; side < 2; ++side) {
      const int i = 2 * pair + side;
      const auto [scale, low] = of_group(block, block + 4, i);
      for (int l = 0; l < group; ++l) {
        const int q = (side == 0 ? byte(bytes, l) & 0xF : byte(bytes, l) >> 4) + bit(i, l);
        *out++ = scale * static_cast<float>(q) - low;
      }
    }
  }
}

void q4_k(const std::byte* block, float* out) {
  four_bit_groups(block, block + 16, out, [](int, int) { return 0; });
}

void q5_k(const std::byte* block, float* out) {
  const std::byte* const high = block + 16;
  four_bit_groups(block, block + 48, out, [&](int i, int l) { return (byte(high, l) >> i & 1) << 4; });
}

void q6_k(const std::byte* block, float* out) {
  const float scale = half(block + 208);
  for (int part = 0; part < 2; ++part) {
    const std::byte *const low = block + 64 * part, *const high = block + 128 + 32 * part,
                           *const scales = block + 192 + 8 * part;
    for (int row = 0; row < 4; ++row)
      for (int l = 0; l < group; ++l) {
        const int bits = byte(low, l + group * (row % 2));
        const int q = (row < 2 ? bits & 0xF : bits >> 4) | (byte(high, l) >> (2 * row) & 3) << 4;
        const auto own = static_cast<std::int8_t>(byte(scales, l / 16 + 2 * row));
        *out++ = scale * static_cast<float>(own) * static_cast<float>(q - 32);
      }
  }
}

constexpr std::array types{
    GgufType{0, "F32", 1, 4, DataType::float32, nullptr},
    GgufType{1, "F16", 1, 2, DataType::float16, nullptr},
    GgufType{30, "BF16", 1, 2, DataType::bfloat16, nullptr},
    GgufType{2, "Q4_0", 32, 18, DataType::undefined, q4_0},
    GgufType{3, "Q4_1", 32, 20, DataType::undefined, q4_1},
    GgufType{6, "Q5_0", 32, 22, DataType::undefined, q5_0},
    GgufType{7, "Q5_1", 32, 24, DataType::undefined, q5_1},
    GgufType{8, "Q8_0", 32, 34, DataType::undefined, q8_0},
    GgufType{12, "Q4_K", 256, 144, DataType::undefined, q4_k},
    GgufType{13, "Q5_K", 256, 176, DataType::undefined, q5_k},
    GgufType{14, "Q6_K", 256, 210, DataType::undefined, q6_k},
};

class Dequantized : public ByteSource {
 public:
  Dequantized(Bytes blocks, const GgufType& type) : blocks_(std::move(blocks)), type_(type) {}

  std::uint64_t size() const override { return blocks_->size() / type_.bytes * type_.elements * sizeof(float); }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t width = type_.elements * sizeof(float), most = std::max<std::uint64_t>(1, (1u << 18) / width);
    std::vector<std::byte> raw;
    std::vector<float> values(type_.elements);
    while (!out.empty()) {
      const std::uint64_t first = offset / width, last = (offset + out.size() + width - 1) / width;
      const std::uint64_t count = std::min(most, last - first);
      raw.resize(static_cast<std::size_t>(count * type_.bytes));
      MK_CHECK(blocks_->read(first * type_.bytes, raw));
      for (std::uint64_t i = 0; i < count; ++i) {
        type_.values(raw.data() + i * type_.bytes, values.data());
        const auto from = static_cast<std::size_t>(offset - (first + i) * width);
        const std::size_t part = std::min(out.size(), static_cast<std::size_t>(width) - from);
        std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values.data()) + from, part);
        out = out.subspan(part);
        offset += part;
      }
    }
    return {};
  }

 private:
  Bytes blocks_;
  const GgufType& type_;
};

}  // namespace

const GgufType* find_gguf_type(std::uint32_t number) {
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const GgufType& type) { return type.number == number; });
  return found == types.end() ? nullptr : &*found;
}

std::string gguf_type_names() {
  std::string names;
  for (const GgufType& type : types) names.append(names.empty() ? "" : ", ").append(type.name);
  return names;
}

Bytes dequantized(Bytes blocks, const GgufType& type) {
  return std::make_shared<const Dequantized>(std::move(blocks), type);
}

}  // namespace mk
