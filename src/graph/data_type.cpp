#include "graph/data_type.h"

#include <array>
#include <limits>

namespace mk {
namespace {

enum class Family : std::uint8_t { other, floating, integer };

struct TypeRow {
  DataType type;
  std::string_view name;
  int bits;
  Family family;
};

// In order of the type's number.
constexpr std::array rows{
    TypeRow{DataType::undefined, "undefined", 0, Family::other},
    TypeRow{DataType::float32, "float32", 32, Family::floating},
    TypeRow{DataType::uint8, "uint8", 8, Family::integer},
    TypeRow{DataType::int8, "int8", 8, Family::integer},
    TypeRow{DataType::uint16, "uint16", 16, Family::integer},
    TypeRow{DataType::int16, "int16", 16, Family::integer},
    TypeRow{DataType::int32, "int32", 32, Family::integer},
    TypeRow{DataType::int64, "int64", 64, Family::integer},
    TypeRow{DataType::string, "string", 0, Family::other},
    TypeRow{DataType::boolean, "bool", 8, Family::other},
    TypeRow{DataType::float16, "float16", 16, Family::floating},
    TypeRow{DataType::float64, "float64", 64, Family::floating},
    TypeRow{DataType::uint32, "uint32", 32, Family::integer},
    TypeRow{DataType::uint64, "uint64", 64, Family::integer},
    TypeRow{DataType::complex64, "complex64", 64, Family::other},
    TypeRow{DataType::complex128, "complex128", 128, Family::other},
    TypeRow{DataType::bfloat16, "bfloat16", 16, Family::floating},
    TypeRow{DataType::float8e4m3fn, "float8_e4m3fn", 8, Family::floating},
    TypeRow{DataType::float8e4m3fnuz, "float8_e4m3fnuz", 8, Family::floating},
    TypeRow{DataType::float8e5m2, "float8_e5m2", 8, Family::floating},
    TypeRow{DataType::float8e5m2fnuz, "float8_e5m2fnuz", 8, Family::floating},
    TypeRow{DataType::uint4, "uint4", 4, Family::integer},
    TypeRow{DataType::int4, "int4", 4, Family::integer},
    TypeRow{DataType::float4e2m1, "float4_e2m1fn", 4, Family::floating},
    TypeRow{DataType::float8e8m0, "float8_e8m0fnu", 8, Family::floating},
    TypeRow{DataType::uint2, "uint2", 2, Family::integer},
    TypeRow{DataType::int2, "int2", 2, Family::integer},
    TypeRow{DataType::float6e2m3, "float6_e2m3fn", 6, Family::floating},
    TypeRow{DataType::float6e3m2, "float6_e3m2fn", 6, Family::floating},
};

constexpr bool rows_are_in_order() {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].type != static_cast<DataType>(i)) return false;
  }
  return true;
}
static_assert(rows_are_in_order());

constexpr TypeRow unknown_row{DataType::undefined, "unknown", 0, Family::other};

const TypeRow& row_of(DataType type) {
  const auto number = static_cast<std::uint32_t>(type);
  return number < rows.size() ? rows[number] : unknown_row;
}

}  // namespace

std::string_view name_of(DataType type) { return row_of(type).name; }

std::optional<DataType> data_type_named(std::string_view name) {
  for (const TypeRow& row : rows) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

bool is_known(DataType type) { return type != DataType::undefined && static_cast<std::uint32_t>(type) < rows.size(); }

int bits_of(DataType type) { return row_of(type).bits; }

bool is_float(DataType type) { return row_of(type).family == Family::floating; }

bool is_integer(DataType type) { return row_of(type).family == Family::integer; }

std::optional<std::uint64_t> byte_size(DataType type, std::uint64_t elements) {
  const auto bits = static_cast<std::uint64_t>(bits_of(type));
  if (bits % 8 == 0) {
    const std::uint64_t bytes = bits / 8;
    if (bytes != 0 && elements > std::numeric_limits<std::uint64_t>::max() / bytes) return std::nullopt;
    return elements * bytes;
  }
  if (elements > (std::numeric_limits<std::uint64_t>::max() - 7) / bits) return std::nullopt;
  return (elements * bits + 7) / 8;
}

}  // namespace mk
