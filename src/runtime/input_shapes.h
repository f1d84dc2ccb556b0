#pragma once
// Concrete shapes for a model's inputs: what is fixed stays, every dynamic dimension gets a value, and the values
// chosen are told.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/path.h"
#include "base/result.h"
#include "runtime/random_inputs.h"
#include "runtime/session.h"

namespace mk {

// --shape-config: a list under an input's name is its whole shape, a number under a symbol's name its value.
struct ShapeOverrides {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  std::map<std::string, std::int64_t> symbols;
  std::string where;  // the file, for errors
};
// usage, naming the key: a bool, a fraction, an object. "8" is 8.
Result<ShapeOverrides> read_shape_overrides(const Path& path);

struct ChosenShapes {
  std::vector<DrawSpec> inputs;  // in the model's order, without ranges
  // Every symbol of an input and its value, in order of appearance; an unnamed dimension is "input[axis]".
  std::vector<std::pair<std::string, std::int64_t>> dynamic;
};

// Per dimension, the first that applies: the override of the input; a fixed size; the override of the symbol; for a
// symbol that is a sum ("past + sequence") the sum of its parts; the batch for dimension 0; 128 for dimension 1, 224
// for dimensions 2 and 3, 128 beyond. A symbol has one value wherever it occurs. An input of unknown rank is [batch].
// usage for overrides that name neither an input nor a symbol, contradict a fixed size or each other, or leave an input
// without rows. unsupported for an input that is no tensor.
Result<ChosenShapes> choose_shapes(std::span<const Port> inputs, const ShapeOverrides& overrides, std::int64_t batch);

// The leading dimension of the first input that has one; `requested` where none has.
std::int64_t effective_batch(std::span<const HostTensor> inputs, std::int64_t requested);

}  // namespace mk
