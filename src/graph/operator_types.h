#pragma once
// What an operator's schema says of the element types of its inputs and outputs.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "graph/data_type.h"

namespace mk {

// Element types of tensors; and whether sequences, optionals or maps are admitted.
struct TypeSet {
  std::uint64_t tensors = 0;  // bit by number of the DataType
  bool containers = false;

  bool has(DataType type) const { return ((tensors >> static_cast<int>(type)) & 1) != 0; }
  // The one type where there is no other; undefined otherwise.
  DataType only() const;
};

struct OperatorTypes {
  struct Formal {
    int parameter = -1;  // of the type parameter (T), shared by all that have it; -1 where the types are its own
    TypeSet types;
  };
  std::vector<Formal> inputs, outputs;
  bool variadic_inputs = false, variadic_outputs = false;  // the last one stands for all that follow
  int parameters = 0;

  const Formal* input(std::size_t i) const { return at(inputs, variadic_inputs, i); }
  const Formal* output(std::size_t i) const { return at(outputs, variadic_outputs, i); }

 private:
  static const Formal* at(const std::vector<Formal>& formals, bool variadic, std::size_t i) {
    if (i < formals.size()) return &formals[i];
    return variadic && !formals.empty() ? &formals.back() : nullptr;
  }
};

// Those asked for are kept with it.
class OperatorTypesCache {
 public:
  OperatorTypesCache();
  ~OperatorTypesCache();
  // Of the newest version up to `version`; null where the onnx library has none.
  const OperatorTypes* find(std::string_view domain, std::string_view op_type, std::int64_t version);

 private:
  struct Entries;
  std::unique_ptr<Entries> entries_;
};

}  // namespace mk
