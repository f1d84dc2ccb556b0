#pragma once
// Single elements of packed tensor data, by type. Sub-byte integers stand in the low bits first.

#include <cstddef>
#include <cstdint>

#include "graph/data_type.h"

namespace mk {

// Integer types and bool (any non-zero byte is 1). A uint64 past int64 wraps.
std::int64_t load_integer(DataType type, const std::byte* data, std::size_t index);
// Of 8 bits and more, and bool (non-zero is 1). Takes the low bits of `value`.
void store_integer(DataType type, std::byte* data, std::size_t index, std::int64_t value);

// Float types of any width.
double load_float(DataType type, const std::byte* data, std::size_t index);

}  // namespace mk
