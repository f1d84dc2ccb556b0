#include <fmt/format.h>

#include "models/dpt.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;
using nn::Value;

void DptNeck::read(ConfigReader& fields) {
  fusion_hidden_size = fields.size("fusion_hidden_size", fusion_hidden_size);
  hidden_sizes = fields.sizes("neck_hidden_sizes", hidden_sizes);
  if (fields.has("reassemble_factors")) factors = fields.numbers("reassemble_factors");
  for (const double factor : factors)
    if (!(factor >= 1.0 / 64 && factor <= 64))
      fields.fail(ErrorCode::malformed, fmt::format("reassemble_factors has {}, expected 1/64 to 64", factor));
  if (factors.size() < hidden_sizes.size())
    fields.fail(ErrorCode::malformed, fmt::format("reassemble_factors has {} values and neck_hidden_sizes {}",
                                                  factors.size(), hidden_sizes.size()));
  const auto count = static_cast<std::int64_t>(hidden_sizes.size());
  head_in_index = fields.integer("head_in_index", head_in_index);
  if (head_in_index < -count || head_in_index >= count)
    fields.fail(ErrorCode::malformed, fmt::format("head_in_index is {}, and there are {} maps", head_in_index, count));
  else if (head_in_index < 0)
    head_in_index += count;
}

Value resize_aligned(const Scope& s, Value x, std::array<std::int64_t, 2> size) {
  if (!x || (x.dim(2).value == size[0] && x.dim(3).value == size[1])) return x;
  Builder& b = s.builder();
  const std::int64_t channels = x.dim(1).value;
  const Value sizes = x.dim(0).is_known() ? b.integers({x.dim(0).value, channels, size[0], size[1]})
                                          : concat(s, {nn::size(s, x, 0), b.integers({channels, size[0], size[1]})}, 0);
  return Op(s, "Resize", {x})
      .at(3, sizes)
      .with("mode", "linear")
      .with("coordinate_transformation_mode", "align_corners")
      .out(x.type(), {x.dim(0), x.dim(1), Dim::known(size[0]), Dim::known(size[1])});
}

namespace {

std::array<std::int64_t, 2> size_of(Value x) { return {x.dim(2).value, x.dim(3).value}; }

Value reassembled(const Scope& s, const DptNeck& c, std::size_t i, Value tokens, std::array<std::int64_t, 2> grid) {
  if (!tokens) return {};
  const std::int64_t width = tokens.dim(-1).value;
  Value x = slice(s, tokens, 1, 1, to_the_end);
  const Value first = slice(s, tokens, 1, 0, 1);
  if (c.project) {
    const std::string at = fmt::format("readout_projects.{}", i);
    Builder& b = s.builder();
    const Value shape = x.dim(0).is_known() ? b.integers({x.dim(0).value, grid[0] * grid[1], width})
                                            : concat(s, {nn::size(s, x, 0), b.integers({grid[0] * grid[1], width})}, 0);
    const Value readout = Op(s, "Expand", {first, shape}).like(x);
    x = linear(s[at + ".0"], concat(s, {x, readout}, -1), width);
    x = activation(s, at + ".1", c.hidden_act, x);
  } else if (c.add) {
    x = nn::add(s, x, first);
  }
  x = reshape(s, transpose(s, x, {0, 2, 1}), {keep, keep, grid[0], grid[1]});
  const Scope layer = s("layers", static_cast<std::int64_t>(i), c.name("ReassembleLayer"));
  const std::int64_t channels = c.hidden_sizes[i];
  x = conv2d(layer["projection"], x, {.channels = channels, .kernel = {1, 1}});
  const double factor = c.factors[i];
  if (factor > 1) return upscaling_conv2d(layer["resize"], x, channels, static_cast<std::int64_t>(factor));
  if (factor == 1) return x;
  const auto stride = static_cast<std::int64_t>(1 / factor);
  return conv2d(layer["resize"], x,
                {.channels = channels, .kernel = {3, 3}, .stride = {stride, stride}, .padding = {1, 1}});
}

Value residual_unit(const Scope& s, const DptNeck& c, Value x) {
  Value y = x;
  for (const std::string part : {"1", "2"}) {
    y = unary(s["activation" + part], "Relu", y);
    y = conv2d(s["convolution" + part], y,
               {.channels = c.fusion_hidden_size, .kernel = {3, 3}, .padding = {1, 1}, .bias = c.bias});
    if (c.batch_norm) y = batch_norm(s["batch_norm" + part], y);
  }
  return nn::add(s, y, x);
}

}  // namespace

Value dpt_neck(const Scope& root, const DptNeck& c, std::vector<Value> states, std::array<std::int64_t, 2> grid) {
  if (!root.builder().ok()) return {};
  if (states.size() != c.hidden_sizes.size()) {
    root.builder().fail({ErrorCode::malformed,
                         fmt::format("the backbone gives {} maps, and neck_hidden_sizes has {} values", states.size(),
                                     c.hidden_sizes.size()),
                         "", ""});
    return {};
  }
  const Scope s = root("neck", c.name("Neck"));
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (c.reassemble) states[i] = reassembled(s("reassemble_stage", c.name("ReassembleStage")), c, i, states[i], grid);
    states[i] = conv2d(s[fmt::format("convs.{}", i)], states[i],
                       {.channels = c.fusion_hidden_size, .kernel = {3, 3}, .padding = {1, 1}, .bias = false});
  }
  const Scope fusion = s("fusion_stage", c.name("FeatureFusionStage"));
  const std::string unit = c.name("PreActResidualLayer");
  Value x;
  for (std::int64_t i = 0; i <= c.head_in_index; ++i) {
    const Scope layer = fusion("layers", i, c.name("FeatureFusionLayer"));
    const std::size_t at = states.size() - 1 - static_cast<std::size_t>(i);
    Value state = states[at];
    if (!state) return {};
    if (i > 0) {
      state = resize(layer, state, size_of(x), Interpolation::bilinear);
      state = nn::add(layer, x, residual_unit(layer("residual_layer1", unit), c, state));
    }
    x = residual_unit(layer("residual_layer2", unit), c, state);
    if (!x) return {};
    const auto [height, width] = size_of(x);
    const bool next = c.to_next && at > 0;
    if (next && !states[at - 1]) return {};
    x = resize_aligned(layer, x, next ? size_of(states[at - 1]) : std::array{2 * height, 2 * width});
    x = conv2d(layer["projection"], x, {.channels = c.fusion_hidden_size, .kernel = {1, 1}});
    if (!x) return {};
  }
  return x;
}

}  // namespace mk::models
