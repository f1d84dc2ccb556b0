#pragma once
// Types of values: onnx.TypeProto, with dimensions that are a number, a symbol or unknown.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/data_type.h"

namespace mk {

struct Dim {
  std::int64_t value = -1;  // -1 where it is not a known number
  std::string symbol;       // dim_param, where it is a symbol
  std::string denotation;

  static Dim known(std::int64_t v) { return {v, {}, {}}; }
  static Dim symbolic(std::string name) { return {-1, std::move(name), {}}; }
  bool is_known() const { return value >= 0; }
  bool is_symbolic() const { return value < 0 && !symbol.empty(); }
  bool operator==(const Dim&) const = default;
};

using Shape = std::vector<Dim>;

Shape static_shape(const std::vector<std::int64_t>& dims);
std::string to_string(const Dim& dim);      // "8", "batch", "?"
std::string to_string(const Shape& shape);  // "[8, batch, ?]"

struct Type {
  enum class Kind { none, tensor, sparse_tensor, sequence, optional, map, opaque };
  Kind kind = Kind::none;
  DataType element = DataType::undefined;  // of a tensor; the key type of a map
  std::optional<Shape> shape;              // of a tensor; absent means unknown rank
  std::shared_ptr<const Type> inner;       // of a sequence, an optional, a map's values
  std::string denotation;
  std::string raw;  // wire bytes of an opaque type, and of unknown fields

  static Type tensor(DataType element, std::optional<Shape> shape = std::nullopt);
  bool is_tensor() const { return kind == Kind::tensor; }
  bool operator==(const Type& other) const;
};

// "float32[1, 3, 224, 224]"; "float32[...]" where the rank is not known; "sequence(int64[])"; "?" for none.
std::string to_string(const Type& type);

}  // namespace mk
