#pragma once
// Small pieces of protobuf's wire format, appended to a string.

#include <cstdint>
#include <string>
#include <string_view>

namespace mk {

enum class Wire : std::uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

inline std::uint64_t wire_tag(std::uint32_t field, Wire wire) {
  return (static_cast<std::uint64_t>(field) << 3) | static_cast<std::uint64_t>(wire);
}

inline void append_varint(std::string& into, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) into.push_back(static_cast<char>(0x80 | (value & 0x7f)));
  into.push_back(static_cast<char>(value));
}

// A length-delimited field: a message or a string.
inline void append_bytes(std::string& into, std::uint32_t field, std::string_view bytes) {
  append_varint(into, wire_tag(field, Wire::bytes));
  append_varint(into, bytes.size());
  into += bytes;
}

}  // namespace mk
