// Root mean square normalization (Zhang and Sennrich 2019) from its parts: RMSNormalization from opset 23 on. Before,
// no operator of ONNX has it; with a residual sum in front it becomes com.microsoft.SkipSimplifiedLayerNormalization.

#include <algorithm>

#include "optimize/operands.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  xf* = Cast?(x)
  ms  = ReduceMean((Pow(xf, 2) | Mul(xf, xf)), keepdims=1, ...)
  v   = Add(ms, eps)
  rms = Sqrt(v)
  n   = Div(xf, rms) | Mul(xf, (Reciprocal(rms) | Div(1, rms) | Pow(v, -0.5)))
)"};
constexpr std::int64_t rms_opset = 23;

bool used_outside(const Match& m, const Value* value) {
  const auto outside = [&](const Use& use) {
    return std::find(m.nodes().begin(), m.nodes().end(), use.node) == m.nodes().end();
  };
  return value->is_graph_output() || std::any_of(value->uses().begin(), value->uses().end(), outside);
}

Outcome with_sum(const Match& m, const Value* x, int axis, float eps, const Affine& affine, Patch& p) {
  const Node* sum = x->producer();
  if (!sum || sum->op_type != "Add" || !sum->domain.empty() || sum->graph() != affine.result->graph()) {
    return skip("RMSNormalization needs opset 23, and no residual sum stands before it");
  }
  const int rank = rank_of(x);
  const bool fits = axis == rank - 1 && (rank == 2 || rank == 3) && x->type.element == DataType::float32 &&
                    affine.has_scale && same_shape(sum->input(0), x) && same_shape(sum->input(1), x);
  if (!fits) return skip("RMSNormalization needs opset 23, and its residual sum does not fit");
  const bool shared = used_outside(m, x);
  const Value* const scale = affine.scale.existing();
  if (shared && scale && !is_constant(scale)) return skip("the scale is not constant and may follow from the sum");
  PatchNode fused =
      p.op("com.microsoft.SkipSimplifiedLayerNormalization", {sum->input(0), sum->input(1), affine.scale});
  fused.with("epsilon", eps).like(affine.result);
  p.replace(affine.result, fused);
  if (shared) p.replace(sum->output(0), fused.like(x, 3)[3]);
  return fired;
}

Outcome rewrite(const Match& m, Patch& p) {
  // A difference from the mean: layer normalization, which is another pass's.
  if (m["xf"]->producer() && m["xf"]->producer()->op_type == "Sub") return skip("");
  const auto axis = trailing_axis(*m.node("ms"));
  if (!axis) return skip("the mean is not over the last axes");
  const auto eps = m.scalar("eps");
  if (!eps) return skip("epsilon is not a constant");
  const Affine affine = affine_after(p, m.root().output(0), m["xf"], *axis, /*with_bias=*/false);
  Value* const x = m["x"]->type.element == affine.result->type.element ? m["x"] : m["xf"];
  if (x->type.element != affine.result->type.element) return skip("it is computed and given in different types");
  if (p.opset() < rms_opset) return with_sum(m, x, *axis, static_cast<float>(*eps), affine, p);
  PatchValue scale = affine.scale;
  if (!affine.has_scale) {
    const auto made = ones(p, x, *axis);
    if (!made) return skip("no scale of the normalized shape is proven, and the shape is not static");
    scale = *made;
  }
  p.replace(affine.result, p.op("RMSNormalization", {x, scale})
                               .with("axis", *axis - m.rank("xf"))
                               .with("epsilon", static_cast<float>(*eps)));
  return fired;
}

}  // namespace

extern const Pass simplified_layer_norm_fusion;
const Pass simplified_layer_norm_fusion{
    .name = "simplified-layer-norm-fusion",
    .category = "layer_norm",
    .summary = "Root mean square normalization becomes RMSNormalization, or SkipSimplifiedLayerNormalization",
    .patterns = patterns,
    .rewrite = rewrite};

}  // namespace mk
