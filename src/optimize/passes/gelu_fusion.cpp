// Gelu (Hendrycks and Gimpel 2016), exact, from its parts: x * 0.5 * (1 + erf(x / sqrt(2))), in every order that
// exporters write the products.

#include "optimize/operands.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  e = Erf((Div(x, 1.41421356) | Mul(x, 0.70710678)))
  f = Add(e, 1)
  y = Mul(Mul(x, f), 0.5) | Mul(Mul(x, 0.5), f) | Mul(x, (Mul(f, 0.5) | Add(Mul(e, 0.5), 0.5)))
)"};

Outcome rewrite(const Match& m, Patch& p) {
  if (m.rank("x") != m.rank("y")) return skip("its constants add a dimension");
  if (!is_kernel_float(m["x"])) return skip("no kernel is of its type");
  p.replace(m["y"], p.opset() >= 20 ? p.op("Gelu", {m["x"]}) : p.op("com.microsoft.Gelu", {m["x"]}).like(m["y"]));
  return fired;
}

}  // namespace

extern const Pass gelu_fusion;
const Pass gelu_fusion{.name = "gelu-fusion",
                       .category = "gelu",
                       .summary = "x * 0.5 * (1 + erf(x / sqrt(2))) becomes Gelu",
                       .patterns = patterns,
                       .rewrite = rewrite};

}  // namespace mk
