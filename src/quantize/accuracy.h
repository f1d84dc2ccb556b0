#pragma once
// How near a quantized model's values are to those of the model it was made from, on the same samples.
//
// Cosine: of the flattened values of a sample, mean over the samples. Where a sample has an attention_mask of [batch,
// length] and the tensor is [batch, length, ...], each row of the batch is a sample of its own and only the positions
// that are attended to count. SNR: 10 log10(sum r^2 / sum (r - t)^2) over the same values of all samples.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "graph/ir.h"
#include "runtime/library.h"
#include "runtime/sample_source.h"

namespace mk {

struct TensorAccuracy {
  std::string name;
  double cosine = 0;        // these figures are NaN where there is no finite value to compare
  double least_cosine = 0;  // of the worst sample
  double snr_db = 0;        // +inf where there is no difference
  double max_abs_diff = 0;
  std::size_t not_finite = 0;  // values that are so in both, the same infinities aside: they do not count
  std::string problem;         // another shape, or values that are not finite where the original's are: what and where
};

struct JudgeOptions {
  std::size_t first = 0;  // the samples first ... first + count - 1 of the source
  std::size_t count = 0;
  bool tensors = false;  // every float tensor that both models have, too
  int threads = 0;       // of the runtime; 0 leaves it to it
};

struct Accuracy {
  std::size_t samples = 0;
  std::vector<TensorAccuracy> outputs;  // float ones, in the model's order
  std::vector<TensorAccuracy> tensors;  // in topological order
  // The first problem of an output, with its name; empty where there is none.
  std::string problem() const;
};

// Outputs are compared as the runtime gives them with its own optimizations, inner tensors (whose types are known)
// without.
Result<Accuracy> judge(const std::shared_ptr<Runtime>& runtime, const Model& original, const Model& quantized,
                       const SampleSource& samples, const JudgeOptions& options, Progress& progress);

}  // namespace mk
