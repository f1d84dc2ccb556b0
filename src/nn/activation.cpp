#include "nn/activation.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numbers>

#include "nn/ops.h"

namespace mk::nn {
namespace {

using std::numbers::pi;
using std::numbers::sqrt2;

Value gelu(const Scope& s, Value x) {
  if (s.builder().opset() >= 20) return Op(s, "Gelu", {x}).like(x);
  const Value phi = add(s, unary(s, "Erf", div(s, x, sqrt2)), 1);
  return mul(s, mul(s, x, phi), 0.5);
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Value gelu_tanh(const Scope& s, Value x) {
  if (s.builder().opset() >= 20) return Op(s, "Gelu", {x}).with("approximate", "tanh").like(x);
  const Value cubic = add(s, x, mul(s, pow(s, x, 3), 0.044715));
  const Value phi = add(s, unary(s, "Tanh", mul(s, cubic, std::sqrt(2 / pi))), 1);
  return mul(s, mul(s, x, phi), 0.5);
}

Value clipped_gelu(const Scope& s, Value x) { return clip(s, gelu(s, x), -10, 10); }

Value quick_gelu(const Scope& s, Value x) { return mul(s, x, unary(s, "Sigmoid", mul(s, x, 1.702))); }

Value silu(const Scope& s, Value x) { return mul(s, x, unary(s, "Sigmoid", x)); }

Value mish(const Scope& s, Value x) {
  if (s.builder().opset() >= 18) return unary(s, "Mish", x);
  return mul(s, x, unary(s, "Tanh", unary(s, "Softplus", x)));
}

Value laplace(const Scope& s, Value x) {
  const Value scaled = div(s, sub(s, x, 0.707107), 0.282095 * sqrt2);
  return mul(s, add(s, unary(s, "Erf", scaled), 1), 0.5);
}

Value relu(const Scope& s, Value x) { return unary(s, "Relu", x); }

Value relu2(const Scope& s, Value x) {
  const Value positive = relu(s, x);
  return mul(s, positive, positive);
}

Value relu6(const Scope& s, Value x) { return clip(s, x, 0, 6); }

Value leaky_relu(const Scope& s, Value x) { return Op(s, "LeakyRelu", {x}).with("alpha", 0.01f).like(x); }

Value prelu(const Scope& s, Value x) { return Op(s, "PRelu", {x, s.weight("weight", {1})}).like(x); }

Value sigmoid(const Scope& s, Value x) { return unary(s, "Sigmoid", x); }

Value tanh(const Scope& s, Value x) { return unary(s, "Tanh", x); }

Value linear(const Scope&, Value x) { return x; }

// Huang et al. 2024: a x^2 + b x where positive, a' (exp(x) - 1 - x) + b x elsewhere, with learned a and a'.
// transformers keeps the learned numbers in bfloat16 whatever the model's type, and computes a and a' in it.
Value xielu(const Scope& s, Value x) {
  const auto rounded = [&](Value y) { return cast(s, cast(s, y, DataType::bfloat16), x.type()); };
  const Value beta = s.weight("beta", {}), eps = s.weight("eps", {});
  const Value rising = rounded(unary(s, "Softplus", s.weight("alpha_p", {1})));
  const Value falling = rounded(add(s, rounded(unary(s, "Softplus", s.weight("alpha_n", {1}))), beta));
  const Value straight = mul(s, x, beta);
  const Value positive = add(s, mul(s, mul(s, x, x), rising), straight);
  const Value curve = sub(s, sub(s, unary(s, "Exp", minimum(s, x, eps)), 1), x);
  const Value negative = add(s, mul(s, curve, falling), straight);
  return where(s, greater(s, x, s.builder().scalar(x.type(), 0)), positive, negative);
}

struct Activation {
  std::string_view kind, class_name;
  bool plain;  // a torch.nn layer
  Value (*function)(const Scope&, Value);
};

constexpr std::array activations{
    Activation{"gelu", "GELUActivation", false, gelu},
    Activation{"gelu_10", "ClippedGELUActivation", false, clipped_gelu},
    Activation{"gelu_accurate", "AccurateGELUActivation", false, gelu_tanh},
    Activation{"gelu_fast", "FastGELUActivation", false, gelu_tanh},
    Activation{"gelu_new", "NewGELUActivation", false, gelu_tanh},
    Activation{"gelu_python", "GELUActivation", false, gelu},
    Activation{"gelu_python_tanh", "GELUTanh", false, gelu_tanh},
    Activation{"gelu_pytorch_tanh", "GELUTanh", false, gelu_tanh},
    Activation{"laplace", "LaplaceActivation", false, laplace},
    Activation{"leaky_relu", "LeakyReLU", true, leaky_relu},
    Activation{"linear", "LinearActivation", false, linear},
    Activation{"mish", "MishActivation", false, mish},
    Activation{"prelu", "PReLU", true, prelu},
    Activation{"quick_gelu", "QuickGELUActivation", false, quick_gelu},
    Activation{"relu", "ReLU", true, relu},
    Activation{"relu2", "ReLUSquaredActivation", false, relu2},
    Activation{"relu6", "ReLU6", true, relu6},
    Activation{"sigmoid", "Sigmoid", true, sigmoid},
    Activation{"silu", "SiLUActivation", false, silu},
    Activation{"swish", "SiLU", true, silu},
    Activation{"tanh", "Tanh", true, tanh},
    Activation{"xielu", "XIELUActivation", false, xielu},
};

const Activation* find(const Scope& s, std::string_view kind) {
  std::string known;
  for (const Activation& activation : activations) {
    if (activation.kind == kind) return &activation;
    known += known.empty() ? "" : ", ";
    known += activation.kind;
  }
  s.builder().fail({ErrorCode::malformed, fmt::format("there is no activation function \"{}\"", kind),
                    s.module().path.empty() ? s.module().class_name : s.module().path, "It knows " + known});
  return nullptr;
}

}  // namespace

Value activation(const Scope& parent, std::string_view name, std::string_view kind, Value x) {
  const Activation* found = find(parent, kind);
  if (!found) return {};
  if (!found->plain) return found->function(parent(name, found->class_name), x);
  const Scope s = parent[name];
  s.is_a(found->class_name);
  return found->function(s, x);
}

Value activate(const Scope& s, std::string_view kind, Value x) {
  const Activation* found = find(s, kind);
  return found ? found->function(s, x) : Value();
}

}  // namespace mk::nn
