#include "graph/element_access.h"

#include <cstring>

#include "graph/float_formats.h"

namespace mk {
namespace {

template <typename T>
T load(const std::byte* data, std::size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void store(std::byte* data, std::size_t index, std::int64_t value) {
  const auto narrowed = static_cast<T>(value);
  std::memcpy(data + index * sizeof(T), &narrowed, sizeof(T));
}

// `bits` is 2, 4 or 6; an element of 6 bits may cross a byte.
std::uint32_t load_bits(const std::byte* data, std::size_t index, int bits) {
  const std::size_t position = index * static_cast<std::size_t>(bits);
  const std::size_t shift = position % 8;
  std::uint32_t word = std::to_integer<std::uint32_t>(data[position / 8]) >> shift;
  if (shift + static_cast<std::size_t>(bits) > 8) {
    word |= std::to_integer<std::uint32_t>(data[position / 8 + 1]) << (8 - shift);
  }
  return word & ((1u << bits) - 1);
}

std::int64_t sign_extended(std::uint32_t value, int bits) {
  const std::uint32_t sign = 1u << (bits - 1);
  return static_cast<std::int64_t>(value ^ sign) - static_cast<std::int64_t>(sign);
}

}  // namespace

std::int64_t load_integer(DataType type, const std::byte* data, std::size_t index) {
  switch (type) {
    case DataType::boolean:
      return load<std::uint8_t>(data, index) != 0 ? 1 : 0;
    case DataType::uint8:
      return load<std::uint8_t>(data, index);
    case DataType::int8:
      return load<std::int8_t>(data, index);
    case DataType::uint16:
      return load<std::uint16_t>(data, index);
    case DataType::int16:
      return load<std::int16_t>(data, index);
    case DataType::uint32:
      return load<std::uint32_t>(data, index);
    case DataType::int32:
      return load<std::int32_t>(data, index);
    case DataType::uint64:
    case DataType::int64:
      return load<std::int64_t>(data, index);
    case DataType::uint4:
    case DataType::uint2:
      return load_bits(data, index, bits_of(type));
    case DataType::int4:
    case DataType::int2:
      return sign_extended(load_bits(data, index, bits_of(type)), bits_of(type));
    default:
      return 0;
  }
}

void store_integer(DataType type, std::byte* data, std::size_t index, std::int64_t value) {
  switch (type) {
    case DataType::boolean:
      return store<std::uint8_t>(data, index, value != 0 ? 1 : 0);
    case DataType::uint8:
    case DataType::int8:
      return store<std::uint8_t>(data, index, value);
    case DataType::uint16:
    case DataType::int16:
      return store<std::uint16_t>(data, index, value);
    case DataType::uint32:
    case DataType::int32:
      return store<std::uint32_t>(data, index, value);
    case DataType::uint64:
    case DataType::int64:
      return store<std::uint64_t>(data, index, value);
    default:
      return;
  }
}

double load_float(DataType type, const std::byte* data, std::size_t index) {
  switch (bits_of(type)) {
    case 64:
      return load<double>(data, index);
    case 32:
      return static_cast<double>(load<float>(data, index));
    case 16:
      return decode_float(type, load<std::uint16_t>(data, index));
    case 8:
      return decode_float(type, load<std::uint8_t>(data, index));
    default:
      return decode_float(type, load_bits(data, index, bits_of(type)));
  }
}

}  // namespace mk
