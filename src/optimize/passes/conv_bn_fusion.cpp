// BatchNormalization (Ioffe and Szegedy 2015) after a convolution or a linear layer: its factor and offset go into the
// weights. Outside training only.

#include <cmath>

#include "optimize/channel_affine.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view after_convolution[] = {R"(
  c = Conv(x, w, b?) | ConvTranspose(x, w, b?)
  y = BatchNormalization(c, gamma, beta, mean, var, training_mode=0)
)"};
constexpr std::string_view after_linear[] = {R"(
  c = MatMul(x, w) | Gemm(x, w, b?)
  y = BatchNormalization(c, gamma, beta, mean, var, training_mode=0)
)"};

Outcome rewrite(const Match& m, Patch& p) {
  const Node& layer = *m.node("c");
  const Node& norm = m.root();
  for (std::size_t i = 1; i < norm.outputs().size(); ++i) {
    if (norm.output(i) && !norm.output(i)->is_unused()) return skip("its running statistics are used");
  }
  const bool is_linear = layer.op_type == "MatMul" || layer.op_type == "Gemm";
  if (is_linear && (m.rank("x") != 2 || m.rank("w") != 2)) return skip("the product is not of two dimensions");
  const auto vector = [&](std::string_view name) -> std::optional<std::vector<double>> {
    const Dim channels = m.dim(name, 0);
    if (m.rank(name) != 1 || !channels.is_known()) return std::nullopt;
    return per_channel(m[name], 1, 0, static_cast<std::uint64_t>(channels.value));
  };
  auto factor = vector("gamma"), offset = vector("beta"), mean = vector("mean"), variance = vector("var");
  if (!factor || !offset || !mean || !variance) return skip("its scale, bias, mean or variance is no constant");
  if (offset->size() != factor->size() || mean->size() != factor->size() || variance->size() != factor->size()) {
    return skip("its vectors have different lengths");
  }
  const auto epsilon = static_cast<double>(norm.real("epsilon", 1e-5F));
  for (std::size_t i = 0; i < factor->size(); ++i) {
    if ((*variance)[i] + epsilon <= 0) return skip("a variance is not positive");
    (*factor)[i] /= std::sqrt((*variance)[i] + epsilon);
    (*offset)[i] -= (*mean)[i] * (*factor)[i];
  }
  const FoldedLayer folded = fold_affine(p, layer, {std::move(*factor), std::move(*offset)});
  if (!folded.node) return skip(folded.reason);
  p.replace(m["y"], *folded.node);
  return fired;
}

}  // namespace

extern const Pass conv_bn_fusion, matmul_bn_fusion;
const Pass conv_bn_fusion{.name = "conv-bn-fusion",
                          .category = "convolution",
                          .summary = "BatchNormalization after a convolution goes into its weights",
                          .patterns = after_convolution,
                          .rewrite = rewrite};
const Pass matmul_bn_fusion{.name = "matmul-bn-fusion",
                            .category = "matmul",
                            .summary = "BatchNormalization after a product of matrices goes into its weights",
                            .patterns = after_linear,
                            .rewrite = rewrite};

}  // namespace mk
