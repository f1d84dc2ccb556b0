// Where on a negated condition takes its sides the other way round.

#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  n* = Not(c)
  y = Where(n, a, b)
)"};

Outcome rewrite(const Match& m, Patch& p) {
  p.replace(m["y"], p.op("Where", {m["c"], m["b"], m["a"]}));
  return fired;
}

}  // namespace

extern const Pass not_where_fusion;
const Pass not_where_fusion{.name = "not-where-fusion",
                            .category = "misc",
                            .summary = "Where on a negated condition takes its sides the other way round",
                            .opset = 9,
                            .patterns = patterns,
                            .rewrite = rewrite};

}  // namespace mk
