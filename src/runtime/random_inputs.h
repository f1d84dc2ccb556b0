#pragma once
// Inputs drawn for measuring, comparing and checking a model.
//
// The generator is base/random.h, one per set of inputs, the inputs in the model's order, so
// numpy.random.default_rng(seed) draws the same values: floats low + (high - low) * random(), integers
// integers(low, high), bools integers(0, 2). Without a range floats are in [0, 1); integers are 0 or 1, but 1 where the
// name says that it is a mask (a mask of zeros leaves nothing to compute). Text is empty.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/result.h"
#include "graph/value_range.h"
#include "runtime/host_tensor.h"

namespace mk {

struct DrawSpec {
  std::string name;
  DataType type = DataType::float32;
  std::vector<std::int64_t> dims;
  std::optional<ValueRange> range;
};

// Boxes (`bbox`, four to a row) have their corners in order. usage for more values than this machine has memory for.
Result<HostTensor> random_tensor(const DrawSpec& spec, Random& random);
Result<std::vector<HostTensor>> random_inputs(std::span<const DrawSpec> specs, Random& random);
Result<std::vector<HostTensor>> random_inputs(std::span<const DrawSpec> specs, std::uint64_t seed = 42);

}  // namespace mk
