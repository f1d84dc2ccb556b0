#pragma once
// Outliers of activations moved into weights before 8-bit quantization, after SmoothQuant (Xiao et al., 2022,
// arXiv:2211.10438): x W = (x / s) (s W) with a factor for each input channel. The model computes the same in float32.
//
// Done to what LayerNormalization makes: its channels have outliers, while the values of a channel are of one size.
// (Those of Gelu and Relu are mostly near 0: their rare peaks, moved into a weight, cost more there.) The division goes
// into the norm's scale and bias where only these products read it, else it is a Mul. Factors are chosen per tensor, by
// the noise that quantization is expected to leave; where a tensor would gain little it stays as it is.

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir.h"
#include "quantize/calibrate.h"
#include "quantize/qdq.h"

namespace mk {

struct SmoothReport {
  std::size_t tensors = 0;  // smoothed
  std::size_t added = 0;    // of those, with a Mul
  double worst_gain = 1;    // noise before / noise after, of the smoothed ones
  double best_gain = 1;
};

// The values whose channels smooth_activations() looks at: normed data of MatMul and Gemm with constant weights, where
// the options quantize these alone and to 8 bits. For CalibrationOptions::channels.
Result<std::vector<std::string>> tensors_to_smooth(Model& model, const QdqOptions& options);

// `ranges` are those of the model before and become those of the smoothed one. A value without channels stays.
Result<SmoothReport> smooth_activations(Model& model, const ChannelRanges& channels, TensorRanges& ranges,
                                        const QdqOptions& options);

}  // namespace mk
