// Exact Gelu becomes its approximation by tanh, which some accelerators run faster. It changes numbers by up to 1e-3.

#include "optimize/operands.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {"y = Gelu(x) | com.microsoft.Gelu(x) | com.microsoft.BiasGelu(x, bias)"};

Outcome rewrite(const Match& m, Patch& p) {
  if (m.root().string("approximate", "none") != "none") return skip("it is approximated already");
  if (!is_kernel_float(m["x"])) return skip("no kernel is of its type");
  p.replace(m["y"], p.op("com.microsoft.FastGelu", {m["x"], m["bias"]}).like(m["y"]));
  return fired;
}

}  // namespace

extern const Pass gelu_approximation;
const Pass gelu_approximation{.name = "gelu-approximation",
                              .category = "gelu",
                              .summary = "Gelu becomes FastGelu, which approximates it by tanh",
                              .depends = "gelu-fusion",
                              .patterns = patterns,
                              .rewrite = rewrite};

}  // namespace mk
