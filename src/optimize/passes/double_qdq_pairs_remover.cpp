// Quantized, back, and quantized again by the same scale and zero point: the second pair gives what it gets.

#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  q1 = QuantizeLinear(x, s1!, z1?)
  d1* = DequantizeLinear(q1, s2!, z2?)
  q2 = QuantizeLinear(d1, s3!, z3?)
  y = DequantizeLinear(q2, s4!, z4?)
)"};

bool same_constant(const Value* a, const Value* b) {
  if (a == b) return true;
  const auto x = constant_of(a), y = constant_of(b);
  if (!x || !y || x->type != y->type || x->dims != y->dims) return false;
  const auto left = read_all(*x->data), right = read_all(*y->data);
  return left && right && *left == *right;
}

Outcome rewrite(const Match& m, Patch& p) {
  const Node* nodes[] = {m.node("q1"), m.node("d1"), m.node("q2"), &m.root()};
  for (const Node* node : nodes) {
    if (!same_constant(node->input(1), nodes[0]->input(1))) return skip("the scales differ");
    if (!same_constant(node->input(2), nodes[0]->input(2))) return skip("the zero points differ");
    if (node->integer("axis", 1) != nodes[0]->integer("axis", 1)) return skip("the axes differ");
    if (node->integer("block_size", 0) != 0) return skip("it is quantized in blocks");
  }
  if (m["q1"]->type.element != m["q2"]->type.element) return skip("the types differ");
  const auto scales = number_values(*constant_of(nodes[0]->input(1)));
  for (const double scale : scales ? *scales : std::vector<double>{0}) {
    if (!(scale > 0)) return skip("a scale is not positive");
  }
  p.replace(m["y"], m["d1"]);
  return fired;
}

}  // namespace

extern const Pass double_qdq_pairs_remover;
const Pass double_qdq_pairs_remover{.name = "double-qdq-pairs-remover",
                                    .category = "graph",
                                    .summary = "Quantizing twice by the same scale becomes once",
                                    .opset = 10,
                                    .patterns = patterns,
                                    .rewrite = rewrite};

}  // namespace mk
