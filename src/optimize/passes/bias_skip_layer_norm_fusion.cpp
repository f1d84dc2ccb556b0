// SkipLayerNormalization adds the bias of the linear layer before it, too.

#include "optimize/operands.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {
    "y = com.microsoft.SkipLayerNormalization(Add(a, bias), skip, gamma, beta?)",
    "y = com.microsoft.SkipLayerNormalization(skip, Add(a, bias), gamma, beta?)",
    "y = com.microsoft.SkipSimplifiedLayerNormalization(Add(a, bias), skip, gamma)",
    "y = com.microsoft.SkipSimplifiedLayerNormalization(skip, Add(a, bias), gamma)"};

Outcome rewrite(const Match& m, Patch& p) {
  Value *a = m["a"], *bias = m["bias"];
  if (!is_row_constant(bias, m["skip"])) std::swap(a, bias);
  if (!is_row_constant(bias, m["skip"])) return skip("what is added is no constant vector of the last axis");
  if (rank_of(a) != m.rank("skip") || !same_dim(dim_of(a, -1), m.dim("skip", -1))) {
    return skip("the bias is not all that is broadcast");
  }
  Node& norm = m.root();
  const bool second = norm.input(1) != m["skip"];
  p.set_input(&norm, second ? 1 : 0, a);
  p.set_input(&norm, norm.op_type == "SkipLayerNormalization" ? 4 : 3, bias);
  return fired;
}

}  // namespace

extern const Pass bias_skip_layer_norm_fusion;
const Pass bias_skip_layer_norm_fusion{.name = "bias-skip-layer-norm-fusion",
                                       .category = "layer_norm",
                                       .summary = "The bias before SkipLayerNormalization becomes its input",
                                       .depends = "skip-layer-norm-fusion",
                                       .patterns = patterns,
                                       .rewrite = rewrite};

}  // namespace mk
