// A Pad of nothing but what a convolution or a pooling pads with itself becomes its pads.

#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  p = Pad(x, ...)
  y = Conv(p, ...) | AveragePool(p) | MaxPool(p)
)"};

// What the Pad writes; nothing where it is not known.
std::optional<double> padded_with(const Node& pad) {
  if (pad.inputs().size() < 2) return static_cast<double>(pad.real("value", 0));
  return pad.input(2) ? scalar_of(pad.input(2)) : std::optional(0.0);
}

Outcome rewrite(const Match& m, Patch& p) {
  const Node &pad = *m.node("p"), &window = m.root();
  if (pad.string("mode", "constant") != "constant") return skip("the Pad does not write a constant");
  if (pad.input(3)) return skip("the Pad names its axes");
  const auto* attribute = pad.integers("pads");
  const auto pads = attribute ? std::optional(*attribute) : integers_of(pad.input(1));
  const int rank = m.rank("x");
  if (!pads || rank < 3 || pads->size() != 2 * static_cast<std::size_t>(rank)) return skip("the pads are not known");
  const std::string automatic = window.string("auto_pad", "NOTSET");
  if (automatic != "NOTSET" && automatic != "VALID") return skip("the window's pads are automatic");
  if (window.outputs().size() > 1) return skip("the positions of the maxima are used");
  const auto value = padded_with(pad);
  const bool is_max = window.op_type == "MaxPool", is_mean = window.op_type == "AveragePool";
  if (is_max) {
    if (!value || *value > -3.4e38) return skip("the Pad does not write the smallest number");
  } else if (!value || *value != 0) {
    return skip("the Pad does not write zeros");
  }
  const auto spatial = static_cast<std::size_t>(rank) - 2;
  std::vector<std::int64_t> sum(2 * spatial, 0);
  bool had_pads = false;
  if (const auto* own = window.integers("pads")) {
    if (own->size() != sum.size()) return skip("the window's pads are of another rank");
    sum = *own;
    for (const std::int64_t pad_of_window : sum) had_pads |= pad_of_window != 0;
  }
  if (is_mean && had_pads && window.integer("count_include_pad", 0) == 0) {
    return skip("the window does not count what it pads, but what the Pad wrote");
  }
  if (is_mean && window.integer("ceil_mode", 0) != 0) return skip("the last window is not whole");
  for (std::size_t i = 0; i < pads->size(); ++i) {
    const std::size_t axis = i % static_cast<std::size_t>(rank);
    const bool at_end = i >= static_cast<std::size_t>(rank);
    if ((*pads)[i] < 0) return skip("the Pad cuts");
    if (axis < 2) {
      if ((*pads)[i] != 0) return skip("the Pad adds to the batch or the channels");
      continue;
    }
    sum[axis - 2 + (at_end ? spatial : 0)] += (*pads)[i];
  }
  if (is_max || is_mean) {
    const auto* kernel = window.integers("kernel_shape");
    for (std::size_t i = 0; kernel && i < sum.size(); ++i) {
      if (sum[i] >= (*kernel)[i % spatial]) return skip("the pads would be as large as the window");
    }
  }
  std::vector<PatchValue> inputs(window.inputs().begin(), window.inputs().end());
  inputs[0] = m["x"];
  PatchNode made = p.copy(window, std::move(inputs)).with("pads", sum);
  if (window.attribute("auto_pad")) made.with("auto_pad", "NOTSET");
  if (is_mean) made.with("count_include_pad", 1);
  p.replace(m["y"], made);
  return fired;
}

}  // namespace

extern const Pass pad_fusion;
const Pass pad_fusion{.name = "pad-fusion",
                      .category = "misc",
                      .summary = "A Pad before a convolution or a pooling becomes its pads",
                      .patterns = patterns,
                      .rewrite = rewrite};

}  // namespace mk
