#include "optimize/operands.h"

#include <algorithm>
#include <array>

namespace mk {

Node* only_user(const Value* value, std::string_view op_type) {
  if (!value || value->is_graph_output() || value->uses().size() != 1) return nullptr;
  Node* node = value->uses().front().node;
  const bool standard = node->domain.empty() || node->domain == "ai.onnx";
  return standard && node->op_type == op_type && node->graph() == value->graph() ? node : nullptr;
}

bool same_dim(const Dim& a, const Dim& b) {
  if (a.is_known() || b.is_known()) return a.is_known() && b.is_known() && a.value == b.value;
  return a.is_symbolic() && b.is_symbolic() && a.symbol == b.symbol;
}

Dim dimension_read(const Value* value) {
  constexpr std::array<std::string_view, 5> views{"Unsqueeze", "Squeeze", "Reshape", "Cast", "Identity"};
  constexpr int most_views = 8;
  std::optional<std::int64_t> index;
  for (int step = 0; step < most_views && value; ++step) {
    const Node* node = value->producer();
    if (!node || !node->domain.empty()) return {};
    if (std::find(views.begin(), views.end(), node->op_type) != views.end()) {
      value = node->input(0);
    } else if (node->op_type == "Gather" && !index) {
      const auto picked = integers_of(node->input(1));
      if (!picked || picked->size() != 1) return {};
      index = picked->front();
      value = node->input(0);
    } else if (node->op_type == "Shape") {
      const std::int64_t start = node->integer("start", 0);
      if (!index && node->integer("end", start) != start + 1 && !same_dim(dim_of(value, 0), Dim::known(1))) return {};
      const std::int64_t axis = start + index.value_or(0);
      return start < 0 || (index && *index < 0) ? Dim{} : dim_of(node->input(0), static_cast<int>(axis));
    } else {
      return {};
    }
  }
  return {};
}

bool has_shape_from(const Value* value, const Value* x, int axis) {
  const int rank = rank_of(x);
  if (rank < 0 || axis < 0 || axis > rank || rank_of(value) != rank - axis) return false;
  for (int i = axis; i < rank; ++i) {
    if (!same_dim(dim_of(value, i - axis), dim_of(x, i))) return false;
  }
  return true;
}

std::optional<PatchValue> trailing_operand(Patch& patch, Value* value, const Value* x, int axis) {
  if (has_shape_from(value, x, axis)) return value;
  const auto dims = static_dims(value);
  const auto excess = dims ? static_cast<int>(dims->size()) - (rank_of(x) - axis) : 0;
  if (excess <= 0 || static_cast<int>(dims->size()) > rank_of(x)) return std::nullopt;
  for (std::size_t i = 0; i < dims->size(); ++i) {
    const Dim dim = Dim::known((*dims)[i]);
    const int at = static_cast<int>(i) - excess;
    if (at < 0 ? dim.value != 1 : !same_dim(dim, dim_of(x, axis + at))) return std::nullopt;
  }
  std::optional<Tensor> tensor = constant_of(value);
  if (!tensor) return std::nullopt;
  tensor->name = value->name();
  tensor->dims.erase(tensor->dims.begin(), tensor->dims.begin() + excess);
  return patch.constant(std::move(*tensor));
}

bool is_row_constant(const Value* value, const Value* x) {
  return rank_of(value) == 1 && rank_of(x) > 0 && has_shape_from(value, x, rank_of(x) - 1) && is_constant(value);
}

bool is_kernel_float(const Value* value) {
  constexpr std::array types{DataType::float32, DataType::float16, DataType::bfloat16};
  return std::find(types.begin(), types.end(), value->type.element) != types.end();
}

PatchValue as_int32(Patch& patch, Value* value) {
  constexpr auto int32 = static_cast<std::int64_t>(DataType::int32);
  if (value->type.element == DataType::int32) return value;
  for (const Use& use : value->uses()) {
    const Node& node = *use.node;
    if (node.op_type != "Cast" || !node.domain.empty() || node.graph() != value->graph()) continue;
    if (node.integer("to", 0) == int32) return node.output(0);
  }
  return patch.op("Cast", {value}).with("to", int32);
}

std::optional<int> trailing_axis(const Node& reduction) {
  const int rank = rank_of(reduction.input(0));
  std::optional<std::vector<std::int64_t>> axes;
  if (const auto* held = reduction.integers("axes")) axes = *held;
  if (!axes) axes = integers_of(reduction.input(1));
  if (!axes || axes->empty() || rank <= 0) return std::nullopt;
  for (std::int64_t& axis : *axes) axis += axis < 0 ? rank : 0;
  std::sort(axes->begin(), axes->end());
  for (std::size_t i = 0; i < axes->size(); ++i) {
    if ((*axes)[i] != rank - static_cast<std::int64_t>(axes->size() - i)) return std::nullopt;
  }
  return static_cast<int>(axes->front());
}

namespace {

// The other operand of a node that uses `value` once.
Value* other_operand(const Node& node, const Value* value) {
  return node.input(0) == value ? node.input(1) : node.input(0);
}

}  // namespace

Affine affine_after(Patch& patch, Value* normalized, const Value* x, int axis, bool with_bias) {
  Affine affine{.result = normalized};
  const Node* cast = only_user(normalized, "Cast");
  Value* plain = cast ? cast->output(0) : normalized;
  const Node* scaling = only_user(plain, "Mul");
  if (!scaling) return affine;
  Value* scale = other_operand(*scaling, plain);
  if (!scale || scale->type.element != plain->type.element) return affine;
  auto fitting = trailing_operand(patch, scale, x, axis);
  if (!fitting) return affine;
  affine = {.result = scaling->output(0), .scale = *fitting, .has_scale = true};
  const Node* shift = with_bias ? only_user(affine.result, "Add") : nullptr;
  Value* bias = shift ? other_operand(*shift, affine.result) : nullptr;
  if (!bias || bias->type.element != plain->type.element) return affine;
  fitting = trailing_operand(patch, bias, x, axis);
  if (!fitting) return affine;
  affine.result = shift->output(0);
  affine.bias = *fitting;
  affine.has_bias = true;
  return affine;
}

std::optional<PatchValue> ones(Patch& patch, const Value* x, int axis) {
  const auto shape = x->type.shape;
  if (!shape) return std::nullopt;
  std::vector<std::int64_t> dims;
  std::uint64_t count = 1;
  for (std::size_t i = static_cast<std::size_t>(axis); i < shape->size(); ++i) {
    if (!(*shape)[i].is_known() || (*shape)[i].value <= 0) return std::nullopt;
    dims.push_back((*shape)[i].value);
    count *= static_cast<std::uint64_t>(dims.back());
  }
  constexpr std::uint64_t most = 1u << 20;
  if (count > most) return std::nullopt;
  Bytes values = owned_values(std::vector<float>(static_cast<std::size_t>(count), 1.0F));
  if (x->type.element != DataType::float32) values = cast(values, DataType::float32, x->type.element);
  return patch.constant(make_tensor("ones", x->type.element, std::move(dims), std::move(values)));
}

}  // namespace mk
