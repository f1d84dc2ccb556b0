// Convolution and activation in one: com.microsoft.FusedConv of ONNX Runtime's CPU provider, which knows float32 only.
// With a sum in between (a residual block), the other summand is its fourth input.

#include "optimize/fused_activation.h"
#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view plain[] = {R"(
  c = Conv(x, w, b?)
  y = Relu(c) | LeakyRelu(c) | Sigmoid(c) | Tanh(c) | HardSigmoid(c) | Clip(c, _, _)
)"};
constexpr std::string_view residual[] = {R"(
  c = Conv(x, w, b?)
  s = Add(c, z)
  y = Relu(s) | LeakyRelu(s) | Sigmoid(s) | Tanh(s) | HardSigmoid(s) | Clip(s, _, _)
)"};

Outcome fuse(const Match& m, Patch& p, Value* summand) {
  if (!m["y"]->type.is_tensor() || m["y"]->type.element != DataType::float32) return skip("it is not of float32");
  const auto activation = fused_activation(m.root());
  if (!activation) return skip("the activation's limits are not constant");
  PatchNode fused = p.op("com.microsoft.FusedConv", {m["x"], m["w"], m["b"], summand}).like(m["y"]);
  for (const Attribute& attribute : m.node("c")->attributes()) fused.with(attribute);
  fused.with("activation", activation->name);
  if (!activation->parameters.empty()) fused.with("activation_params", activation->parameters);
  p.replace(m["y"], fused);
  return fired;
}

Outcome rewrite_plain(const Match& m, Patch& p) { return fuse(m, p, nullptr); }

Outcome rewrite_residual(const Match& m, Patch& p) {
  if (!same_shape(m["z"], m["c"])) return skip("the other summand is not known to have the convolution's shape");
  return fuse(m, p, m["z"]);
}

}  // namespace

extern const Pass conv_activation_fusion, conv_add_activation_fusion;
const Pass conv_activation_fusion{.name = "conv-activation-fusion",
                                  .category = "convolution",
                                  .summary = "Conv and the activation after it become FusedConv (CPU)",
                                  .patterns = plain,
                                  .rewrite = rewrite_plain};
const Pass conv_add_activation_fusion{.name = "conv-add-activation-fusion",
                                      .category = "layout",
                                      .summary = "Conv, a sum and an activation become FusedConv (CPU)",
                                      .patterns = residual,
                                      .rewrite = rewrite_residual};

}  // namespace mk
