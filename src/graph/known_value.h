#pragma once
// What is known of a small tensor's elements before the model runs: integers, or expressions in symbolic dimensions.
// Data propagation computes these for the tensors that shapes are made from. Elements of a float tensor are known where
// they are whole numbers.

#include <cstdint>
#include <optional>
#include <vector>

#include "graph/data_type.h"
#include "graph/symbolic_int.h"

namespace mk {

constexpr std::size_t max_known_elements = 128;

struct KnownValue {
  using Element = std::optional<SymbolicInt>;  // nothing where it is not known

  DataType type = DataType::int64;
  std::vector<std::int64_t> dims;
  std::vector<Element> elements;  // row-major, as many as the dims say, at most max_known_elements

  bool is_constant() const {
    for (const Element& element : elements) {
      if (!element || !element->is_known()) return false;
    }
    return true;
  }
  // The elements of a constant.
  std::vector<std::int64_t> constants() const {
    std::vector<std::int64_t> values;
    for (const Element& element : elements) values.push_back(element->value());
    return values;
  }
};

// Elements of a shape; nothing where they are too many for a KnownValue, or a dim is negative.
std::optional<std::size_t> known_count(const std::vector<std::int64_t>& dims);

}  // namespace mk
