#pragma once
// A tensor in memory, as sessions take and give them: name, element type, dims, and its values row-major.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "graph/data_type.h"

namespace mk {

struct HostTensor {
  std::string name;
  DataType type = DataType::undefined;
  std::vector<std::int64_t> dims;    // all >= 0; empty is a scalar
  std::vector<std::byte> data;       // byte_size(type, elements) bytes; sub-byte types are packed
  std::vector<std::string> strings;  // elements of a string tensor, UTF-8

  std::uint64_t element_count() const;

  // The values as T, whose size must be the element's: tensor.values<float>().
  template <typename T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(data.data()), data.size() / sizeof(T)};
  }
  template <typename T>
  std::span<T> values() {
    return {reinterpret_cast<T*>(data.data()), data.size() / sizeof(T)};
  }
};

// The same without owning its values. No strings.
struct TensorView {
  std::string_view name;
  DataType type = DataType::undefined;
  std::vector<std::int64_t> dims;
  std::span<const std::byte> data;

  std::uint64_t element_count() const;
};
TensorView view_of(const HostTensor& tensor);

template <typename T>
HostTensor host_tensor(std::string name, DataType type, std::vector<std::int64_t> dims, std::span<const T> values) {
  const auto raw = std::as_bytes(values);
  return {std::move(name), type, std::move(dims), {raw.begin(), raw.end()}, {}};
}

// A tensor of zero bytes; failed where the dims overflow or the type has no fixed width (strings are empty ones).
Result<HostTensor> zero_tensor(std::string name, DataType type, std::vector<std::int64_t> dims);

// The values in another element type: any of the float, integer and bool types to any other of at least 8 bits
// (float16, bfloat16 included, round to nearest even). Floats become integers by truncation; a value that the type
// cannot hold (NaN, out of range) is failed and named.
Result<HostTensor> converted(const HostTensor& tensor, DataType type);

// Values of a float tensor as float32: where they are if they are that, else in `scratch`. unsupported for other types.
Result<std::span<const float>> float32_values(const TensorView& tensor, std::vector<float>& scratch);

// All values as float64, and as int64. unsupported for string and complex types.
Result<std::vector<double>> float64_values(const HostTensor& tensor);
Result<std::vector<double>> float64_values(const TensorView& tensor);
Result<std::vector<std::int64_t>> int64_values(const HostTensor& tensor);

}  // namespace mk
