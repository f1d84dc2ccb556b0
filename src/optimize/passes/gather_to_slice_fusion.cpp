// Gather of indices that count up by the same step is a Slice.

#include <limits>

#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  y = Gather(x, i!)
)"};

Outcome rewrite(const Match& m, Patch& p) {
  const auto indices = m.integers("i");
  const int rank = m.rank("x");
  if (!indices || m.rank("i") != 1 || indices->size() < 2) return skip("the indices are no list");
  if (rank < 1) return skip("the rank is not known");
  const std::int64_t step = (*indices)[1] - (*indices)[0];
  if (step == 0) return skip("an index is repeated");
  for (std::size_t k = 1; k < indices->size(); ++k) {
    if ((*indices)[k] - (*indices)[k - 1] != step) return skip("the indices do not count by one step");
  }
  const std::int64_t first = indices->front(), last = indices->back();
  if ((first < 0) != (last < 0)) return skip("the indices count from both ends");
  // One past the last; for what counts down to the first element that is before all.
  std::int64_t end = last + (step > 0 ? 1 : -1);
  if (step > 0 && end == 0) end = std::numeric_limits<std::int64_t>::max();
  if (step < 0 && end == -1) end = std::numeric_limits<std::int64_t>::min();
  const std::int64_t axis = m.root().integer("axis", 0);
  p.replace(m["y"],
            p.op("Slice", {m["x"], p.integers({first}), p.integers({end}), p.integers({axis}), p.integers({step})}));
  return fired;
}

}  // namespace

extern const Pass gather_to_slice_fusion;
const Pass gather_to_slice_fusion{.name = "gather-to-slice-fusion",
                                  .category = "misc",
                                  .summary = "Gather of evenly spaced indices becomes Slice",
                                  .opset = 10,
                                  .patterns = patterns,
                                  .rewrite = rewrite};

}  // namespace mk
