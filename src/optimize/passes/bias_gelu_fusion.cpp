// The bias before a Gelu becomes its input: BiasGelu, or FastGelu where it is approximated.

#include "optimize/operands.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {
    "y = Gelu(Add(a, bias)) | com.microsoft.Gelu(Add(a, bias)) | com.microsoft.FastGelu(Add(a, bias))"};

Outcome rewrite(const Match& m, Patch& p) {
  Value *a = m["a"], *bias = m["bias"];
  if (!is_constant(a) && !is_constant(bias)) return skip("");  // a residual sum
  if (!is_row_constant(bias, m["y"])) std::swap(a, bias);
  if (!is_row_constant(bias, m["y"])) return skip("what is added is no constant vector of the last axis");
  if (!is_kernel_float(a)) return skip("no kernel is of its type");
  if (rank_of(a) != m.rank("y") || !same_dim(dim_of(a, -1), m.dim("y", -1)))
    return skip("the bias is not all that is broadcast");
  const Node& gelu = m.root();
  const bool approximate = gelu.op_type == "FastGelu" || gelu.string("approximate", "none") == "tanh";
  p.replace(m["y"], p.op(approximate ? "com.microsoft.FastGelu" : "com.microsoft.BiasGelu", {a, bias}).like(m["y"]));
  return fired;
}

}  // namespace

extern const Pass bias_gelu_fusion;
const Pass bias_gelu_fusion{.name = "bias-gelu-fusion",
                            .category = "gelu",
                            .summary = "A bias and Gelu become BiasGelu",
                            .depends = "gelu-fusion",
                            .patterns = patterns,
                            .rewrite = rewrite};

}  // namespace mk
