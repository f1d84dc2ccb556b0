// A product of two matrices and a sum become Gemm. With more dimensions ONNX Runtime's MatMul would need a Reshape on
// either side, so it stays.

#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {R"(
  p = MatMul(a, b)
  y = Add(p, c)
)"};

// Whether `c` broadcasts to [rows, columns] and makes it no larger.
bool broadcasts_to(const Value* c, const Value* product) {
  const int rank = rank_of(c);
  if (rank < 0 || rank > 2) return false;
  for (int i = 1; i <= rank; ++i) {
    const Dim dim = dim_of(c, -i), whole = dim_of(product, -i);
    const bool is_one = dim.is_known() && dim.value == 1;
    const bool is_equal = dim.is_known() ? dim.value == whole.value : dim.is_symbolic() && dim.symbol == whole.symbol;
    if (!is_one && !is_equal) return false;
  }
  return true;
}

Outcome rewrite(const Match& m, Patch& p) {
  if (m.rank("a") != 2 || m.rank("b") != 2) return skip("its operands are not of two dimensions");
  if (!m["a"]->type.is_tensor() || !is_float(m["a"]->type.element)) return skip("it is not of floats");
  if (!broadcasts_to(m["c"], m["p"])) return skip("the summand is not known to broadcast to the product's shape");
  p.replace(m["y"], p.op("Gemm", {m["a"], m["b"], m["c"]}));
  return fired;
}

}  // namespace

extern const Pass matmul_add_fusion;
const Pass matmul_add_fusion{.name = "matmul-add-fusion",
                             .category = "matmul",
                             .summary = "MatMul and Add of two dimensions become Gemm",
                             .opset = 11,
                             .patterns = patterns,
                             .rewrite = rewrite};

}  // namespace mk
