// A Slice that takes out of a Concat just what one of its inputs was.

#include <algorithm>

#include "optimize/pass.h"

namespace mk {
namespace {

struct Range {
  std::int64_t start, end;
};

std::optional<std::vector<Range>> ranges_of(const Node& concat, int axis) {
  std::vector<Range> ranges;
  std::int64_t at = 0;
  for (const Value* input : concat.inputs()) {
    const Dim dim = dim_of(input, axis);
    if (!dim.is_known()) return std::nullopt;
    ranges.push_back({at, at + dim.value});
    at += dim.value;
  }
  return ranges;
}

constexpr std::string_view slices[] = {R"(
  c* = Concat(...)
  y = Slice(c, ...)
)"};

// What the one axis of a Slice by steps of 1 is and takes, of a value of that length.
std::optional<std::pair<std::int64_t, Range>> slice_range(const Node& slice, int rank, const Value* whole) {
  const auto list = [&](const char* name, std::size_t input) {
    const auto* given = slice.integers(name);
    return given ? std::optional(*given) : integers_of(slice.input(input));
  };
  const auto starts = list("starts", 1), ends = list("ends", 2), axes = list("axes", 3);
  if (!starts || !ends || !axes || starts->size() != 1 || ends->size() != 1 || axes->size() != 1) return std::nullopt;
  if (slice.input(4) && integers_of(slice.input(4)) != std::vector<std::int64_t>{1}) return std::nullopt;
  const std::int64_t axis = axes->front() < 0 ? axes->front() + rank : axes->front();
  const Dim length = dim_of(whole, static_cast<int>(axis));
  if (!length.is_known()) return std::nullopt;
  const auto bound = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + length.value : at, 0, length.value);
  };
  return std::pair{axis, Range{bound(starts->front()), bound(ends->front())}};
}

Outcome rewrite(const Match& m, Patch& p) {
  const Node& concat = *m.node("c");
  const int rank = m.rank("c");
  if (rank < 1) return skip("the rank is not known");
  const std::int64_t given = concat.integer("axis", 0), axis = given < 0 ? given + rank : given;
  const auto taken = slice_range(m.root(), rank, m["c"]);
  if (!taken || taken->first != axis) return skip("the Slice does not take from the Concat's axis alone");
  const auto ranges = ranges_of(concat, static_cast<int>(axis));
  if (!ranges) return skip("the lengths of the Concat's inputs are not known");
  for (std::size_t i = 0; i < ranges->size(); ++i) {
    if ((*ranges)[i].start != taken->second.start || (*ranges)[i].end != taken->second.end) continue;
    p.replace(m["y"], concat.input(i));
    return fired;
  }
  return skip("the Slice takes a part of an input, or of several");
}

}  // namespace

extern const Pass concat_slice_elimination;
const Pass concat_slice_elimination{.name = "concat-slice-elimination",
                                    .category = "graph",
                                    .summary = "A Slice that takes an input of a Concat out of it goes",
                                    .patterns = slices,
                                    .rewrite = rewrite};

}  // namespace mk
