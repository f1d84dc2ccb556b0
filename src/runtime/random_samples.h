#pragma once
// Samples drawn at random within the ranges of a model's inputs: what there is to calibrate and judge with where the
// user gives no data. Sample after sample from one generator, as `winml eval --mode compare` draws them.

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "graph/ir.h"
#include "runtime/input_shapes.h"
#include "runtime/sample_source.h"

namespace mk {

// Dynamic dimensions get the values that choose_shapes() gives them at batch 1. unsupported for inputs that are no
// tensors.
Result<std::unique_ptr<SampleSource>> random_samples(const Model& model, std::size_t count, std::uint64_t seed,
                                                     const ShapeOverrides& shapes);

// The inputs that a caller gives, as a session of the model would declare them.
std::vector<Port> input_ports(const Model& model);

}  // namespace mk
