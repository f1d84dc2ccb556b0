// A factor for each column of a product with a constant matrix goes into the matrix, and into the bias in between
// (ConvNeXt's and CaiT's layer scale, attention's 1/sqrt(d) on a projection).

#include "optimize/channel_affine.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {
    R"(
  p = MatMul(x, w!) | Gemm(x, w!, b?)
  y = Mul(p, k!) | Div(p, k!)
)",
    R"(
  p = MatMul(x, w!)
  s = Add(p, b!)
  y = Mul(s, k!) | Div(s, k!)
)"};

Outcome rewrite(const Match& m, Patch& p) {
  const Node& product = *m.node("p");
  const std::optional<Tensor> weight = m.constant("w");
  const auto layout = channel_layout(product, *weight);
  const int rank = m.rank("p");
  if (!layout || rank < 2) return skip("the weight is not of two dimensions");
  const std::uint64_t columns = layout->total();
  auto factor = per_channel(m["k"], rank, rank - 1, columns);
  if (!factor) return skip("the factor is not one constant for each column");
  if (m.root().op_type == "Div") {
    for (double& value : *factor) value = 1 / value;  // by zero: not finite, which is refused
  }
  if (!m.node("s")) {
    const FoldedLayer folded = fold_affine(p, product, {std::move(*factor), {}});
    if (!folded.node) return skip(folded.reason);
    p.replace(m["y"], *folded.node);
    return fired;
  }
  auto bias = per_channel(m["b"], rank, rank - 1, columns);
  if (!bias) return skip("the bias is not one constant for each column");
  for (std::size_t i = 0; i < bias->size(); ++i) (*bias)[i] *= (*factor)[i];
  const auto summand = vector_of(weight->type, *bias);
  const FoldedLayer folded = fold_affine(p, product, {std::move(*factor), {}});
  if (!folded.node || !summand) return skip(folded.node ? "the folded bias would not be finite" : folded.reason);
  p.replace(m["y"], p.op("Add", {*folded.node, p.constant(*summand)}));
  return fired;
}

}  // namespace

extern const Pass matmul_column_scale;
const Pass matmul_column_scale{.name = "matmul-column-scale",
                               .summary = "A factor for each column of a product goes into its constant matrix",
                               .of = "matmul-scale-fusion",
                               .opset = 7,
                               .patterns = patterns,
                               .rewrite = rewrite};

}  // namespace mk
