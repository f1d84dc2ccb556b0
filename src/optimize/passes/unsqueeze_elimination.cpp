// Unsqueeze of an initializer: the same bytes with more dimensions.

#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {"y = Unsqueeze(x!, ...)"};

Outcome rewrite(const Match& m, Patch& p) {
  std::optional<Tensor> tensor = m.constant("x");
  const auto dims = m.dims("y");
  if (!tensor || !dims) return skip("the dimensions of the result are not known");
  tensor->dims = *dims;
  tensor->name = m["y"]->name();
  p.replace(m["y"], p.constant(std::move(*tensor)));
  return fired;
}

}  // namespace

extern const Pass unsqueeze_elimination;
const Pass unsqueeze_elimination{.name = "unsqueeze-elimination",
                                 .category = "elimination",
                                 .summary = "Unsqueeze of an initializer becomes an initializer",
                                 .patterns = patterns,
                                 .rewrite = rewrite};

}  // namespace mk
