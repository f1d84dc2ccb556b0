#pragma once
// Tensors are views. Their bytes are a range of a file, an owned buffer, or a lazy transform of other bytes, made only
// when read; so a checkpoint of any size is exported in a few tens of MiB.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "graph/data_type.h"

namespace mk {

struct FileRange {
  std::shared_ptr<const File> file;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

// Little-endian, row-major bytes that can be read at any offset. Immutable; reading is thread-safe.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `out` from `offset`; offset + out.size() <= size(). Any range works, large blocks in order are fastest.
  virtual Status read(std::uint64_t offset, std::span<std::byte> out) const = 0;
  // The range of a file that these bytes are, where they are one.
  virtual std::optional<FileRange> file_range() const { return std::nullopt; }
  // The bytes themselves where they are in memory (no copy).
  virtual std::optional<std::span<const std::byte>> in_memory() const { return std::nullopt; }
};
using Bytes = std::shared_ptr<const ByteSource>;

Bytes file_bytes(FileRange range);
Bytes owned_bytes(std::vector<std::byte> bytes);
template <typename T, std::size_t extent>
Bytes owned_values(std::span<T, extent> values) {
  const auto raw = std::as_bytes(values);
  return owned_bytes({raw.begin(), raw.end()});
}
template <typename T>
Bytes owned_values(const std::vector<T>& values) {
  return owned_values(std::span<const T>(values));
}

// Lazy transforms. `width` is the bytes of one element: 1, 2, 4, 8 or 16.
// [batch, rows, columns] -> [batch, columns, rows]. Memory while reading: the block asked for and one band of the
// source.
Bytes transposed(Bytes source, std::uint64_t batch, std::uint64_t rows, std::uint64_t columns, std::uint64_t width);
Bytes concatenated(std::vector<Bytes> parts);
// Matrices with the same number of rows, next to each other: `row_bytes` of each.
Bytes side_by_side(std::vector<Bytes> matrices, std::vector<std::uint64_t> row_bytes);
Bytes sliced(Bytes source, std::uint64_t offset, std::uint64_t length);
// Between float64, float32, float16 and bfloat16 (round to nearest even; overflow of float16 gives infinity), and
// between integer types and bool where the caller knows that values fit. unsupported for other pairs, when read.
Bytes cast(Bytes source, DataType from, DataType to);
// `size` bytes that `fill` computes when they are read (a folded BatchNorm, sinusoids). They are kept from the first
// read to the one that takes the last byte, so that reading block after block computes once and nothing stays after.
Bytes computed(std::uint64_t size, std::function<Status(std::span<std::byte>)> fill);

// All of a source in memory.
Result<std::vector<std::byte>> read_all(const ByteSource& source);

struct Tensor {
  std::string name;
  DataType type = DataType::undefined;
  std::vector<std::int64_t> dims;    // all >= 0; empty is a scalar
  Bytes data;                        // null for string tensors and for tensors whose data is not there
  std::vector<std::string> strings;  // elements of a string tensor
  // Where it is a sparse tensor, its SparseTensorProto on the wire without dims and the name; then data is null.
  std::string sparse;
  // external_data entries (location, offset, length, checksum ...) that it was read by.
  std::vector<std::pair<std::string, std::string>> external;
  std::string doc_string;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::string unknown_fields;  // wire bytes of fields we do not know, kept

  // Products that pass 64 bits are the largest number.
  std::uint64_t element_count() const;
  std::uint64_t byte_count() const;  // of the data; 0 for strings
};

// `data` is of the size that type and dims say, or null.
Tensor make_tensor(std::string name, DataType type, std::vector<std::int64_t> dims, Bytes data);
Tensor scalar_tensor(std::string name, float value);
Tensor scalar_tensor(std::string name, std::int64_t value);
Tensor int64_tensor(std::string name, std::span<const std::int64_t> values);  // one dimension

// Values as int64 / double: any integer type or bool (a uint64 past int64 is malformed); any float or integer type or
// bool. unsupported otherwise, failed where the tensor has no data.
Result<std::vector<std::int64_t>> integer_values(const Tensor& tensor);
Result<std::vector<double>> number_values(const Tensor& tensor);

}  // namespace mk
