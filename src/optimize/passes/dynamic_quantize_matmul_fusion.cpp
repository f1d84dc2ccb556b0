// A product of integers that were quantized while the model runs, scaled back to float: com.microsoft's
// DynamicQuantizeMatMul, or MatMulIntegerToFloat where several products share the quantized value. A bias behind it
// goes along.

#include "optimize/pass.h"

namespace mk {
namespace {

constexpr std::string_view patterns[] = {
    R"(
  q*, qs*, qz* = DynamicQuantizeLinear(x)
  i = MatMulInteger(q, w!, qz, wz?)
  f = Cast(i)
  s = Mul(qs, ws!)
  m = Mul(f, s)
  y = Add(m, b!)
)",
    R"(
  q*, qs*, qz* = DynamicQuantizeLinear(x)
  i = MatMulInteger(q, w!, qz, wz?)
  f = Cast(i)
  s = Mul(qs, ws!)
  y = Mul(f, s)
)"};

bool is_for_each_column(const Value* value, const Dim& columns) {
  const int rank = rank_of(value);
  if (rank == 0) return true;
  const Dim dim = dim_of(value, 0);
  return rank == 1 && dim.is_known() && (dim.value == 1 || (columns.is_known() && dim.value == columns.value));
}

bool has_one_use(const Value* value) { return value->uses().size() == 1 && !value->is_graph_output(); }

Outcome rewrite(const Match& m, Patch& p) {
  const Dim columns = m.dim("w", -1);
  if (m.rank("w") != 2 || !columns.is_known()) return skip("the weight is not of two dimensions");
  if (!m["y"]->type.is_tensor() || m["y"]->type.element != DataType::float32) return skip("it is not of float32");
  if (!is_for_each_column(m["ws"], columns)) return skip("the weight's scale is not one or one for each column");
  if (m["wz"] && (!is_constant(m["wz"]) || m.dims("wz") != m.dims("ws"))) {
    return skip("the weight's zero point is not constant, or not as its scale is");
  }
  Value* bias = m["b"];
  if (bias && (m.rank("b") != 1 || dim_of(bias, 0).value != columns.value)) {
    return skip("the bias is not one for each column");
  }
  const Node& quantize = *m.node("q");
  bool is_alone = true;
  for (const Value* output : quantize.outputs()) is_alone &= output && has_one_use(output);
  if (is_alone) {
    p.replace(m["y"],
              p.op("com.microsoft.DynamicQuantizeMatMul", {m["x"], m["w"], m["ws"], m["wz"], bias}).like(m["y"]));
  } else {
    p.replace(m["y"],
              p.op("com.microsoft.MatMulIntegerToFloat", {m["q"], m["w"], m["qs"], m["ws"], m["qz"], m["wz"], bias})
                  .like(m["y"]));
  }
  return fired;
}

}  // namespace

extern const Pass dynamic_quantize_matmul_fusion;
const Pass dynamic_quantize_matmul_fusion{.name = "dynamic-quantize-matmul-fusion",
                                          .category = "matmul",
                                          .summary = "Dynamically quantized products become one operator",
                                          .opset = 11,
                                          .patterns = patterns,
                                          .rewrite = rewrite};

}  // namespace mk
