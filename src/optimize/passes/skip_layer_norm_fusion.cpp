// A residual sum and the normalization after it become one node. A sum that others use, too, is a capability of its
// own: ONNX Runtime's kernel for CPUs then takes longer than the parts do.

#include "optimize/operands.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  s* = Add(a, b)
  y  = LayerNormalization(s, gamma, beta?, axis=-1)
)",
                                         R"(
  s* = Add(a, b)
  y  = RMSNormalization(s, gamma, axis=-1)
)"};

Outcome rewrite(const Match& m, Patch& p, bool shared) {
  const bool is_shared = m["s"]->uses().size() > 1 || m["s"]->is_graph_output();
  if (is_shared != shared) return skip(shared ? "" : "the sum is used further on (residual-skip-layer-norm-fusion)");
  const Node& norm = m.root();
  const Value* y = m["y"];
  // Kernels that add and take the mean in 16 bits lose what float32 statistics keep.
  if (y->type.element != DataType::float32) return skip("only float32 sums are proven to keep their precision");
  if (m.rank("s") != 3 && m.rank("s") != 2) return skip("the sum is not of two or three dimensions");
  if (!same_shape(m["a"], m["s"]) || !same_shape(m["b"], m["s"])) return skip("one operand of the sum is broadcast");
  for (const Value* operand : {m["gamma"], m["beta"]}) {
    if (!operand) continue;
    if (!has_shape_from(operand, m["s"], m.rank("s") - 1)) return skip("scale or bias is no vector of the last axis");
    if (shared && !is_constant(operand)) return skip("scale or bias is not constant and may follow from the sum");
  }
  for (std::size_t i = 1; i < norm.outputs().size(); ++i) {
    if (norm.output(i) && !norm.output(i)->is_unused()) return skip("its statistics are used");
  }
  const bool simple = norm.op_type == "RMSNormalization";
  PatchNode fused = simple ? p.op("com.microsoft.SkipSimplifiedLayerNormalization", {m["a"], m["b"], m["gamma"]})
                           : p.op("com.microsoft.SkipLayerNormalization", {m["a"], m["b"], m["gamma"], m["beta"]});
  fused.with("epsilon", norm.real("epsilon", 1e-5F)).like(y);
  p.replace(m["y"], fused);
  if (shared) p.replace(m["s"], fused.like(m["s"], 3)[3]);
  return fired;
}

Outcome rewrite_alone(const Match& m, Patch& p) { return rewrite(m, p, /*shared=*/false); }
Outcome rewrite_shared(const Match& m, Patch& p) { return rewrite(m, p, /*shared=*/true); }

}  // namespace

extern const Pass skip_layer_norm_fusion, residual_skip_layer_norm_fusion;
const Pass skip_layer_norm_fusion{.name = "skip-layer-norm-fusion",
                                  .category = "layer_norm",
                                  .summary = "A residual sum and LayerNormalization become SkipLayerNormalization",
                                  .depends = "layer-norm-fusion",
                                  .patterns = patterns,
                                  .rewrite = rewrite_alone};
const Pass residual_skip_layer_norm_fusion{
    .name = "residual-skip-layer-norm-fusion",
    .category = "layer_norm",
    .summary = "The same where the sum is used further on, as in layers that normalize first",
    .depends = "skip-layer-norm-fusion",
    .patterns = patterns,
    .rewrite = rewrite_shared};

}  // namespace mk
