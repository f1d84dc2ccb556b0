// A product with, or a sum with, one constant for each channel after a convolution goes into its weights.

#include "optimize/channel_affine.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view product[] = {R"(
  c = Conv(x, w, b?) | ConvTranspose(x, w, b?)
  y = Mul(c, k) | Div(c, k)
)"};
constexpr std::string_view sum[] = {R"(
  c = Conv(x, w, b?) | ConvTranspose(x, w, b?)
  y = Add(c, k) | Sub(c, k)
)"};

std::optional<std::vector<double>> constants(const Match& m) {
  const Node& layer = *m.node("c");
  const std::optional<Tensor> weight = m.constant("w");
  const auto layout = weight ? channel_layout(layer, *weight) : std::nullopt;
  if (!layout) return std::nullopt;
  return per_channel(m["k"], static_cast<int>(weight->dims.size()), 1, layout->total());
}

Outcome finish(const Match& m, Patch& p, const ChannelAffine& affine) {
  const FoldedLayer folded = fold_affine(p, *m.node("c"), affine);
  if (!folded.node) return skip(folded.reason);
  p.replace(m["y"], *folded.node);
  return fired;
}

Outcome rewrite_product(const Match& m, Patch& p) {
  auto factor = constants(m);
  if (!factor) return skip("the factor is not one constant for each channel");
  if (m.root().op_type == "Div") {
    for (double& value : *factor) value = 1 / value;  // by zero: not finite, which is refused
  }
  return finish(m, p, {std::move(*factor), {}});
}

Outcome rewrite_sum(const Match& m, Patch& p) {
  auto offset = constants(m);
  if (!offset) return skip("the summand is not one constant for each channel");
  if (m.root().op_type == "Sub") {
    for (double& value : *offset) value = -value;
  }
  return finish(m, p, {{}, std::move(*offset)});
}

}  // namespace

extern const Pass conv_mul_fusion, conv_add_fusion;
const Pass conv_mul_fusion{.name = "conv-mul-fusion",
                           .category = "convolution",
                           .summary = "A factor for each channel after a convolution goes into its weights",
                           .patterns = product,
                           .rewrite = rewrite_product};
const Pass conv_add_fusion{.name = "conv-add-fusion",
                           .category = "convolution",
                           .summary = "A summand for each channel after a convolution goes into its bias",
                           .patterns = sum,
                           .rewrite = rewrite_sum};

}  // namespace mk
