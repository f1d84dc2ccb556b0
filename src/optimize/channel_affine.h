#pragma once
// y * factor + offset, one number for each output channel, folded into the weights of the convolution or linear layer
// that makes y. Weights are scaled when they are read, in float64 for float64 and in float32 with float64 factors
// otherwise; nothing is loaded here but the vectors.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "optimize/patch.h"

namespace mk {

struct ChannelAffine {
  std::vector<double> factor;  // empty: 1
  std::vector<double> offset;  // empty: 0
};

// Where a weight has its output channels: element i belongs to channel (i / inner) % channels of the group that the row
// i / (inner * channels) is in.
struct ChannelLayout {
  std::uint64_t inner = 1;
  std::uint64_t channels = 1;                 // of one group
  std::uint64_t rows_per_group = UINT64_MAX;  // input channels of a group
  std::uint64_t groups = 1;
  std::uint64_t total() const { return channels * groups; }
};

// The layout of the weight of a Conv, ConvTranspose, Gemm or MatMul; nothing where its dims are not of that operator.
std::optional<ChannelLayout> channel_layout(const Node& layer, const Tensor& weight);

// The numbers of a constant float tensor that varies along `axis` of a value of that rank only, one for each of
// `channels`; nothing where it is none, or would make the value larger.
std::optional<std::vector<double>> per_channel(const Value* constant, int rank, int axis, std::uint64_t channels);

// The numbers as a tensor of one dimension; nothing where one of them is not finite in the type.
std::optional<Tensor> vector_of(DataType type, const std::vector<double>& values);

// The layer with the affine folded in, as a new node of the patch. `layer` is a Conv, ConvTranspose, Gemm or MatMul (a
// MatMul with an offset becomes a Gemm, so it must be of two dimensions) whose weight is constant, and so is its bias,
// if there is one.
struct FoldedLayer {
  std::optional<PatchNode> node;
  std::string reason;  // why it cannot be done
};
FoldedLayer fold_affine(Patch& patch, const Node& layer, const ChannelAffine& affine);

}  // namespace mk
