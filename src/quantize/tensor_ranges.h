#pragma once
// What calibration saw of the float tensors of a graph.

#include <string>
#include <unordered_map>

namespace mk {

// Finite, low <= high.
struct TensorRange {
  float low = 0;
  float high = 0;
  bool operator==(const TensorRange&) const = default;
};

using TensorRanges = std::unordered_map<std::string, TensorRange>;  // by the value's name

}  // namespace mk
