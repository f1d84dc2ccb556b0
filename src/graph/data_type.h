#pragma once
// Element types, with the numbers of onnx.TensorProto.DataType.

#include <cstdint>
#include <optional>
#include <string_view>

namespace mk {

enum class DataType : std::int32_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
  float6e2m3 = 27,
  float6e3m2 = 28,
};

// "float32", "int64", "bool", "bfloat16", "float8_e4m3fn": the names of numpy and of its ml_dtypes; "string" and
// "undefined" are ours. "unknown" for a number that no type has.
std::string_view name_of(DataType type);
std::optional<DataType> data_type_named(std::string_view name);
bool is_known(DataType type);  // one of the above, undefined not among them
// Bits of one element: 32 for float32, 4 for int4; 0 for string and undefined.
int bits_of(DataType type);
bool is_float(DataType type);    // 64 down to 4 bits; not complex
bool is_integer(DataType type);  // signed and unsigned; not bool

// Bytes that `elements` of a type take; sub-byte types are packed and the last byte padded. Null on overflow.
std::optional<std::uint64_t> byte_size(DataType type, std::uint64_t elements);

}  // namespace mk
