// Gelu approximated by tanh (Hendrycks and Gimpel 2016) from its parts: 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x +
// 0.044715
// * x^3))), in the orders that exporters write it.

#include "optimize/operands.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  square = Mul(x, x) | Pow(x, 2)
  cube   = Pow(x, 3) | Mul(x, square)
  series = Mul(Add(x, Mul(cube, 0.044715)), 0.79788456) | Mul(x, Add(Mul(square, 0.0356774081), 0.79788456)) | Mul(Mul(x, 0.79788456), Add(Mul(square, 0.044715), 1)) | Mul(Mul(x, Add(Mul(square, 0.044715), 1)), 0.79788456)
  f      = Add(Tanh(series), 1)
  y      = Mul(Mul(x, f), 0.5) | Mul(Mul(x, 0.5), f) | Mul(x, Mul(f, 0.5))
)",
                                         R"(
  inner  = Mul(Mul(x, 0.044715), x)
  series = Mul(Mul(x, 0.79788456), Add(inner, 1)) | Mul(Mul(x, Add(inner, 1)), 0.79788456) | Mul(Add(x, Mul(inner, x)), 0.79788456)
  f      = Add(Tanh(series), 1)
  y      = Mul(Mul(x, f), 0.5) | Mul(Mul(x, 0.5), f) | Mul(x, Mul(f, 0.5))
)"};

Outcome rewrite(const Match& m, Patch& p) {
  if (m.rank("x") != m.rank("y")) return skip("its constants add a dimension");
  if (!is_kernel_float(m["x"])) return skip("no kernel is of its type");
  p.replace(m["y"], p.opset() >= 20 ? p.op("Gelu", {m["x"]}).with("approximate", "tanh")
                                    : p.op("com.microsoft.FastGelu", {m["x"]}).like(m["y"]));
  return fired;
}

}  // namespace

extern const Pass fast_gelu_fusion;
const Pass fast_gelu_fusion{.name = "fast-gelu-fusion",
                            .category = "gelu",
                            .summary = "Gelu that is approximated by tanh becomes one node",
                            .patterns = patterns,
                            .rewrite = rewrite};

}  // namespace mk
