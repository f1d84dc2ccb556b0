// com.microsoft.FusedMatMul: a product that takes its operands transposed in the last two dimensions, and a factor.
// ONNX Runtime's CPU provider has it for float32 only.

#include <numeric>

#include "optimize/pass.h"

namespace mk {
namespace {

bool is_float32(const Value* value) { return value->type.is_tensor() && value->type.element == DataType::float32; }

bool swaps_last_two(const Node& transpose) {
  const std::vector<std::int64_t>* perm = transpose.integers("perm");
  const int rank = rank_of(transpose.input(0));
  if (!perm) return rank == 2;
  if (perm->size() < 2) return false;
  std::vector<std::int64_t> wanted(perm->size());
  std::iota(wanted.begin(), wanted.end(), 0);
  std::swap(wanted[wanted.size() - 1], wanted[wanted.size() - 2]);
  return *perm == wanted;
}

struct Settings {
  bool trans_a = false, trans_b = false;
  double alpha = 1;
};

Settings settings_of(const Node& product) {
  return {product.integer("transA", 0) != 0, product.integer("transB", 0) != 0,
          product.domain.empty() ? 1.0 : static_cast<double>(product.real("alpha", 1))};
}

PatchNode fused(Patch& p, const Node& product, std::vector<PatchValue> inputs, const Settings& settings,
                const Value* like) {
  PatchNode made = p.op("com.microsoft.FusedMatMul", std::move(inputs)).like(like);
  for (const char* name : {"transBatchA", "transBatchB"}) {
    if (const Attribute* attribute = product.attribute(name)) made.with(*attribute);
  }
  made.with("transA", settings.trans_a ? 1 : 0).with("transB", settings.trans_b ? 1 : 0);
  made.with("alpha", static_cast<float>(settings.alpha));
  return made;
}

bool has_batch_transpose(const Node& product) {
  return product.integer("transBatchA", 0) != 0 || product.integer("transBatchB", 0) != 0;
}

constexpr std::string_view transposes[] = {
    R"(
  t* = Transpose(a)
  y = MatMul(t, b) | com.microsoft.FusedMatMul(t, b)
)",
    R"(
  t* = Transpose(b)
  y = MatMul(a, t) | com.microsoft.FusedMatMul(a, t)
)"};

Outcome rewrite_transpose(const Match& m, Patch& p) {
  const Node &product = m.root(), &transpose = *m.node("t");
  if (!is_float32(m["y"])) return skip("it is not of float32");
  if (!swaps_last_two(transpose)) return skip("the Transpose moves other dimensions than the last two");
  if (is_constant(transpose.input(0))) return skip("the operand is constant, and transposed before it is run");
  if (has_batch_transpose(product)) return skip("the product transposes its batch");
  const bool first = transpose.output(0) == product.input(0), second = transpose.output(0) == product.input(1);
  Settings settings = settings_of(product);
  settings.trans_a = settings.trans_a != first;
  settings.trans_b = settings.trans_b != second;
  p.replace(
      m["y"],
      fused(p, product, {first ? transpose.input(0) : product.input(0), second ? transpose.input(0) : product.input(1)},
            settings, m["y"]));
  return fired;
}

constexpr std::string_view scales[] = {
    R"(
  s = MatMul(a, b) | com.microsoft.FusedMatMul(a, b)
  y = Mul(s, k!) | Div(s, k!)
)",
    R"(
  s = Mul(a, k!) | Div(a, k!)
  y = MatMul(s, b) | com.microsoft.FusedMatMul(s, b)
)",
    R"(
  s = Mul(b, k!) | Div(b, k!)
  y = MatMul(a, s) | com.microsoft.FusedMatMul(a, s)
)"};

Outcome rewrite_scale(const Match& m, Patch& p) {
  const bool after = m.root().op_type == "Mul" || m.root().op_type == "Div";
  const Node &scale = after ? m.root() : *m.node("s"), &product = after ? *m.node("s") : m.root();
  if (!is_float32(m["y"])) return skip("it is not of float32");
  const auto factor = m.scalar("k");
  if (!factor) return skip("the factor is no constant of one element");
  if (rank_of(m["k"]) > rank_of(after ? m["s"] : scale.output(0))) return skip("the factor adds dimensions");
  Value* scaled = scale.input(0) == m["k"] ? scale.input(1) : scale.input(0);
  if (!same_shape(scaled, scale.output(0))) return skip("the factor is not known to leave the shape");
  Settings settings = settings_of(product);
  if (scale.op_type == "Div" && *factor == 0) return skip("it divides by zero");
  settings.alpha *= scale.op_type == "Div" ? 1 / *factor : *factor;
  std::vector<PatchValue> inputs{product.input(0), product.input(1)};
  if (!after) {
    for (std::size_t i = 0; i < 2; ++i) {
      if (product.input(i) == scale.output(0)) inputs[i] = scaled;
    }
    if (product.input(0) == product.input(1)) settings.alpha *= scale.op_type == "Div" ? 1 / *factor : *factor;
  }
  p.replace(m["y"], fused(p, product, std::move(inputs), settings, m["y"]));
  return fired;
}

}  // namespace

extern const Pass matmul_transpose_fusion, matmul_scale_fusion;
const Pass matmul_transpose_fusion{.name = "matmul-transpose-fusion",
                                   .category = "matmul",
                                   .summary = "A Transpose of the last two dimensions goes into the MatMul (CPU)",
                                   .patterns = transposes,
                                   .rewrite = rewrite_transpose};
const Pass matmul_scale_fusion{.name = "matmul-scale-fusion",
                               .category = "matmul",
                               .summary = "A factor before or after a MatMul goes into it (CPU)",
                               .patterns = scales,
                               .rewrite = rewrite_scale};

}  // namespace mk
