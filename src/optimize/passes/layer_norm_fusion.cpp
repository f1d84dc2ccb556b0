// Layer normalization (Ba et al. 2016) from its parts, as exporters before opset 17 write it. What the statistics are
// taken of may be cast to float32 and the result back: LayerNormalization computes them in float32 itself.

#include "optimize/operands.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  xf*  = Cast?(x)
  mean = ReduceMean(xf, keepdims=1, ...)
  d    = Sub(xf, mean)
  e    = Sub(xf, mean)
  var  = ReduceMean((Pow(d, 2) | Mul(d, d)), keepdims=1, ...)
  v    = Add?(var, eps)
  std  = Sqrt(v)
  n    = Div(e, std) | Mul(e, (Reciprocal(std) | Div(1, std) | Pow(v, -0.5)))
)"};

Outcome rewrite(const Match& m, Patch& p) {
  const auto axis = trailing_axis(*m.node("mean"));
  if (!axis || axis != trailing_axis(*m.node("var"))) return skip("the means are not over the same last axes");
  const auto eps = m["eps"] ? m.scalar("eps") : 0;
  if (!eps) return skip("epsilon is not a constant");
  Value* const normalized = m.root().output(0);
  const Affine affine = affine_after(p, normalized, m["xf"], *axis, /*with_bias=*/true);
  Value* const x = m["x"]->type.element == affine.result->type.element ? m["x"] : m["xf"];
  if (x->type.element != affine.result->type.element) return skip("it is computed and given in different types");
  PatchValue scale = affine.scale;
  if (!affine.has_scale) {
    const auto made = ones(p, x, *axis);
    if (!made) return skip("no scale of the normalized shape is proven, and the shape is not static");
    scale = *made;
  }
  p.replace(affine.result, p.op("LayerNormalization", {x, scale, affine.bias})
                               .with("axis", *axis - m.rank("xf"))
                               .with("epsilon", static_cast<float>(*eps)));
  return fired;
}

}  // namespace

extern const Pass layer_norm_fusion;
const Pass layer_norm_fusion{.name = "layer-norm-fusion",
                             .category = "layer_norm",
                             .summary = "Mean, variance, scale and bias become LayerNormalization",
                             .opset = 17,
                             .patterns = patterns,
                             .rewrite = rewrite};

}  // namespace mk
