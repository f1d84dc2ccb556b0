// What goes into a Gemm: transposes of its operands and of its result, a sum after it, an activation after it.

#include "optimize/fused_activation.h"
#include "optimize/pass.h"

namespace mk {
namespace {

// Transposes.

constexpr std::string_view transposes[] = {
    R"(
  t* = Transpose(a, perm=[1, 0])
  y = Gemm(t, b, c?)
)",
    R"(
  t* = Transpose(b, perm=[1, 0])
  y = Gemm(a, t, c?)
)",
    R"(
  g = Gemm(a, b, c?)
  y = Transpose(g, perm=[1, 0])
)"};

PatchNode like_gemm(Patch& p, const Node& gemm, std::vector<PatchValue> inputs, bool trans_a, bool trans_b) {
  PatchNode made = p.op("Gemm", std::move(inputs));
  for (const Attribute& attribute : gemm.attributes()) {
    if (attribute.name != "transA" && attribute.name != "transB") made.with(attribute);
  }
  if (trans_a) made.with("transA", 1);
  if (trans_b) made.with("transB", 1);
  return made;
}

Outcome rewrite_transpose(const Match& m, Patch& p) {
  const Node& gemm = m.node("g") ? *m.node("g") : m.root();
  const bool trans_a = gemm.integer("transA", 0) != 0, trans_b = gemm.integer("transB", 0) != 0;
  if (!m.node("g")) {
    const bool first = m.node("t")->output(0) == gemm.input(0), second = m.node("t")->output(0) == gemm.input(1);
    p.replace(m["y"], like_gemm(p, gemm,
                                {first ? m.node("t")->input(0) : gemm.input(0),
                                 second ? m.node("t")->input(0) : gemm.input(1), m["c"]},
                                trans_a != first, trans_b != second));
    return fired;
  }
  if (const Value* c = m["c"]) {  // it would have to be transposed, too
    const auto dims = static_dims(c);
    const bool is_scalar =
        dims && (dims->empty() || *dims == std::vector<std::int64_t>{1} || *dims == std::vector<std::int64_t>{1, 1});
    if (!is_scalar) return skip("its summand would have to be transposed");
  }
  p.replace(m["y"], like_gemm(p, gemm, {m["b"], m["a"], m["c"]}, !trans_b, !trans_a));
  return fired;
}

// A sum.

constexpr std::string_view sums[] = {R"(
  g = Gemm(a, b)
  y = Add(g, c) | Sum(g, c)
)"};

Outcome rewrite_sum(const Match& m, Patch& p) {
  const Value* c = m["c"];
  const int rank = rank_of(c);
  bool fits = rank >= 0 && rank <= 2;
  for (int i = 1; fits && i <= rank; ++i) {
    const Dim dim = dim_of(c, -i), whole = dim_of(m["g"], -i);
    const bool is_one = dim.is_known() && dim.value == 1;
    fits = is_one || (dim.is_known() ? dim.value == whole.value : dim.is_symbolic() && dim.symbol == whole.symbol);
  }
  if (!fits) return skip("the summand is not known to broadcast to the product's shape");
  PatchNode made = p.op("Gemm", {m["a"], m["b"], m["c"]});
  for (const Attribute& attribute : m.node("g")->attributes()) {
    if (attribute.name != "beta") made.with(attribute);
  }
  p.replace(m["y"], made);
  return fired;
}

// An activation: com.microsoft.FusedGemm, whose activation has parameters of other names than the product's.

constexpr std::string_view activations[] = {R"(
  g = Gemm(a, b, c?)
  y = Relu(g) | LeakyRelu(g) | Sigmoid(g) | Tanh(g) | HardSigmoid(g)
)"};

Outcome rewrite_activation(const Match& m, Patch& p) {
  if (!m["y"]->type.is_tensor() || m["y"]->type.element != DataType::float32) return skip("it is not of float32");
  const auto activation = fused_activation(m.root());
  if (!activation) return skip("the activation has no fused form");
  PatchNode made = p.op("com.microsoft.FusedGemm", {m["a"], m["b"], m["c"]}).like(m["y"]);
  for (const Attribute& attribute : m.node("g")->attributes()) made.with(attribute);
  made.with("activation", activation->name);
  const char* names[] = {"activation_alpha", "activation_beta"};
  for (std::size_t i = 0; i < activation->parameters.size(); ++i) made.with(names[i], activation->parameters[i]);
  p.replace(m["y"], made);
  return fired;
}

}  // namespace

extern const Pass gemm_transpose_fusion, gemm_sum_fusion, gemm_activation_fusion;
const Pass gemm_transpose_fusion{.name = "gemm-transpose-fusion",
                                 .category = "gemm",
                                 .summary = "Transposes before and after a Gemm become its attributes",
                                 .patterns = transposes,
                                 .rewrite = rewrite_transpose};
const Pass gemm_sum_fusion{.name = "gemm-sum-fusion",
                           .category = "gemm",
                           .summary = "A sum after a Gemm without summand becomes its summand",
                           .opset = 11,
                           .patterns = sums,
                           .rewrite = rewrite_sum};
const Pass gemm_activation_fusion{.name = "gemm-activation-fusion",
                                  .category = "gemm",
                                  .summary = "Gemm and the activation after it become FusedGemm (CPU)",
                                  .patterns = activations,
                                  .rewrite = rewrite_activation};

}  // namespace mk
