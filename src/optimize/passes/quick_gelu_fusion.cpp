// x * sigmoid(alpha * x) becomes QuickGelu: CLIP's activation with 1.702, and SiLU with 1.

#include "optimize/operands.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  y = Mul(x, Sigmoid(Mul?(x, alpha)))
)"};

Outcome rewrite(const Match& m, Patch& p) {
  const auto alpha = m["alpha"] ? m.scalar("alpha") : 1;
  if (!alpha) return skip("the factor inside is not a constant");
  if (m.rank("x") != m.rank("y")) return skip("the factor inside adds a dimension");
  if (!is_kernel_float(m["x"])) return skip("no kernel is of its type");
  p.replace(m["y"], p.op("com.microsoft.QuickGelu", {m["x"]}).with("alpha", static_cast<float>(*alpha)).like(m["y"]));
  return fired;
}

}  // namespace

extern const Pass quick_gelu_fusion;
const Pass quick_gelu_fusion{.name = "quick-gelu-fusion",
                             .category = "gelu",
                             .summary = "x * sigmoid(alpha * x) becomes QuickGelu",
                             .patterns = patterns,
                             .rewrite = rewrite};

}  // namespace mk
