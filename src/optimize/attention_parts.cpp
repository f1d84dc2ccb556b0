#include "optimize/attention_parts.h"

#include <algorithm>

#include "optimize/operands.h"

namespace mk {
namespace {

using Integers = std::vector<std::int64_t>;

Node* made_by(const Value* value, std::string_view op_type) {
  Node* node = value ? value->producer() : nullptr;
  return node && node->domain.empty() && node->op_type == op_type && node->graph() == value->graph() ? node : nullptr;
}

Node* transpose_of(const Value* value, const Integers& order) {
  Node* node = made_by(value, "Transpose");
  const Integers* found = node ? node->integers("perm") : nullptr;
  return found && *found == order ? node : nullptr;
}

std::string what_makes(const Value* value) {
  return value->producer() ? value->producer()->op_type + " (node " + value->producer()->label() + ")"
                           : "the value " + value->name();
}

std::int64_t known(const Dim& dim) { return dim.is_known() ? dim.value : 0; }

// Whether a constant of one element broadcasts nothing.
bool keeps_shape(const Value* value, const Value* factor) { return rank_of(value) >= rank_of(factor); }

// The place of a part along the first axis of `stacked`, which it is alone in: by Gather of a scalar, or Squeeze of one
// of a Split in three or of a Slice of one.
struct Part {
  Value* stacked = nullptr;
  std::int64_t place = 0;
};
std::optional<Part> part_of(Value* value) {
  if (const Node* gather = made_by(value, "Gather")) {
    const auto index = integers_of(gather->input(1));
    if (gather->integer("axis", 0) != 0 || !index || index->size() != 1 || rank_of(gather->input(1)) != 0) {
      return std::nullopt;
    }
    return Part{gather->input(0), index->front() + (index->front() < 0 ? 3 : 0)};
  }
  const Node* squeeze = made_by(value, "Squeeze");
  if (!squeeze) return std::nullopt;
  const auto* held = squeeze->integers("axes");
  const auto axes = held ? std::optional(*held) : integers_of(squeeze->input(1));
  if (axes != Integers{0}) return std::nullopt;
  Value* const one = squeeze->input(0);
  if (const Node* split = made_by(one, "Split"); split && split->integer("axis", 0) == 0) {
    if (split->outputs().size() != 3) return std::nullopt;
    return Part{split->input(0), static_cast<std::int64_t>(one->output_index())};
  }
  if (const Node* slice = made_by(one, "Slice")) {
    const auto starts = integers_of(slice->input(1)), slice_axes = integers_of(slice->input(3));
    const bool fits = starts && starts->size() == 1 && slice_axes == Integers{0} && known(dim_of(one, 0)) == 1;
    if (fits && starts->front() >= 0) return Part{slice->input(0), starts->front()};
  }
  return std::nullopt;
}

// Of a joint tensor [3, batch, heads, tokens, size].
std::optional<Heads> part_of_joint(Value* value) {
  const auto part = part_of(value);
  if (!part) return std::nullopt;
  Value* const stacked = part->stacked;
  Heads heads;
  heads.part = part->place;
  const Node* transpose = transpose_of(stacked, {2, 0, 3, 1, 4});
  const Node* reshape = transpose ? made_by(transpose->input(0), "Reshape") : nullptr;
  if (!reshape || rank_of(transpose->input(0)) != 5) return std::nullopt;
  const Value *split = transpose->input(0), *joint = reshape->input(0);
  heads.count = known(dim_of(split, 3));
  heads.size = known(dim_of(split, 4));
  const bool fits = rank_of(joint) == 3 && known(dim_of(split, 2)) == 3 && heads.count > 0 && heads.size > 0 &&
                    known(dim_of(joint, 2)) == 3 * heads.count * heads.size &&
                    (same_dim(dim_of(joint, 0), dim_of(split, 0)) || same_dim(dim_of(joint, 1), dim_of(split, 1)));
  if (!fits) return std::nullopt;
  heads.joint = reshape->input(0);
  return heads;
}

// Of [batch, tokens, heads, size].
Result<Heads> split_heads(Value* split) {
  const Node* reshape = made_by(split, "Reshape");
  if (!reshape) return fail(ErrorCode::usage, "no Reshape to heads but " + what_makes(split));
  Heads heads{.count = known(dim_of(split, 2)), .size = known(dim_of(split, 3))};
  if (heads.count <= 0 || heads.size <= 0) {
    return fail(ErrorCode::usage, "the number of heads or their size is not known at " + split->name());
  }
  if (!joins_heads(split, reshape->input(0))) {
    return fail(ErrorCode::usage, "it is not proven that " + split->name() + " only splits the last axis of " +
                                      reshape->input(0)->name() + " (" + to_string(reshape->input(0)->type) + " to " +
                                      to_string(split->type) + ")");
  }
  const Scaled flat = without_factor(reshape->input(0));
  heads.flat = flat.value;
  heads.factor = flat.factor;
  const Node* shared = made_by(heads.flat, "Split");
  const bool in_three = shared && shared->outputs().size() == 3 && heads.factor == 1 &&
                        (shared->integer("axis", 0) == -1 || shared->integer("axis", 0) == 2) &&
                        rank_of(shared->input(0)) == 3 &&
                        known(dim_of(shared->input(0), 2)) == 3 * heads.count * heads.size;
  if (in_three) {
    heads.joint = shared->input(0);
    heads.part = heads.flat->output_index();
  }
  return heads;
}

}  // namespace

Scaled without_factor(Value* value) {
  Scaled scaled{value};
  if (const Node* mul = made_by(value, "Mul")) {
    for (std::size_t side = 0; side < 2; ++side) {
      const auto factor = scalar_of(mul->input(side));
      if (!factor || !keeps_shape(mul->input(1 - side), mul->input(side))) continue;
      return {mul->input(1 - side), *factor};
    }
  } else if (const Node* div = made_by(value, "Div")) {
    const auto divisor = scalar_of(div->input(1));
    if (divisor && *divisor != 0 && keeps_shape(div->input(0), div->input(1))) return {div->input(0), 1 / *divisor};
  }
  return scaled;
}

bool joins_heads(const Value* split, const Value* flat) {
  if (rank_of(split) != 4 || rank_of(flat) != 3) return false;
  const std::int64_t count = known(dim_of(split, 2)), size = known(dim_of(split, 3));
  if (count <= 0 || size <= 0 || known(dim_of(flat, 2)) != count * size) return false;
  return same_dim(dim_of(flat, 0), dim_of(split, 0)) || same_dim(dim_of(flat, 1), dim_of(split, 1));
}

Result<Heads> heads_of(Value* value) {
  const Scaled scaled = without_factor(value);
  if (auto joint = part_of_joint(scaled.value)) {
    joint->factor = scaled.factor;
    return *joint;
  }
  const Node* transpose = transpose_of(scaled.value, {0, 2, 1, 3});
  if (!transpose) return fail(ErrorCode::usage, "no Transpose [0, 2, 1, 3] but " + what_makes(scaled.value));
  MK_TRY(Heads heads, split_heads(transpose->input(0)));
  heads.factor *= scaled.factor;
  return heads;
}

Result<Heads> transposed_heads_of(Value* value) {
  const Scaled scaled = without_factor(value);
  if (const Node* transpose = transpose_of(scaled.value, {0, 2, 3, 1})) {
    MK_TRY(Heads heads, split_heads(transpose->input(0)));
    heads.factor *= scaled.factor;
    return heads;
  }
  Value* upright = nullptr;
  if (const Node* transpose = transpose_of(scaled.value, {0, 1, 3, 2})) {
    upright = transpose->input(0);
  } else if (const Node* last = made_by(scaled.value, "Reshape")) {
    // [batch, heads, tokens, size] -> [batch * heads, tokens, size] -> transposed -> [batch, heads, size, tokens]
    const Node* middle = transpose_of(last->input(0), {0, 2, 1});
    const Node* first = middle ? made_by(middle->input(0), "Reshape") : nullptr;
    Value* whole = first ? first->input(0) : nullptr;
    const bool fits =
        whole && rank_of(whole) == 4 && rank_of(scaled.value) == 4 &&
        same_dim(dim_of(whole, 1), dim_of(scaled.value, 1)) && same_dim(dim_of(whole, 3), dim_of(scaled.value, 2)) &&
        same_dim(dim_of(whole, 3), dim_of(middle->input(0), 2)) &&
        same_dim(dim_of(whole, 2), dim_of(middle->input(0), 1)) && same_dim(dim_of(whole, 2), dim_of(scaled.value, 3));
    if (fits) upright = whole;
  }
  if (!upright) return fail(ErrorCode::usage, "no transposed heads but " + what_makes(scaled.value));
  MK_TRY(Heads heads, heads_of(upright));
  heads.factor *= scaled.factor;
  return heads;
}

std::optional<Linear> biased(Value* value) {
  const Node* add = made_by(value, "Add");
  if (!add || value->is_graph_output() || value->uses().size() != 1) return std::nullopt;
  for (std::size_t side = 0; side < 2; ++side) {
    Value *bias = add->input(side), *input = add->input(1 - side);
    if (is_row_constant(bias, value) && same_shape(input, value)) return Linear{.x = input, .bias = bias};
  }
  return std::nullopt;
}

std::optional<Linear> linear_of(Value* value, std::size_t uses) {
  if (!value || value->is_graph_output() || value->uses().size() != uses) return std::nullopt;
  Linear linear;
  const Value* product = value;
  if (const Node* add = made_by(value, "Add")) {
    const std::size_t side = is_row_constant(add->input(0), value) ? 0 : 1;
    linear.bias = add->input(side);
    product = add->input(1 - side);
    if (!is_row_constant(linear.bias, value) || product->is_graph_output() || product->uses().size() != 1) {
      return std::nullopt;
    }
  }
  const Node* matmul = made_by(product, "MatMul");
  if (!matmul || rank_of(matmul->input(0)) != 3 || rank_of(matmul->input(1)) != 2 || !static_dims(matmul->input(1)) ||
      !is_constant(matmul->input(1))) {
    return std::nullopt;
  }
  linear.x = matmul->input(0);
  linear.weight = matmul->input(1);
  return linear;
}

std::optional<Tensor> joined_columns(const std::vector<Value*>& matrices) {
  std::vector<Bytes> parts;
  std::vector<std::uint64_t> widths;
  std::optional<Tensor> joined;
  for (const Value* matrix : matrices) {
    const std::optional<Tensor> part = constant_of(matrix);
    if (!part || part->dims.size() != 2 || part->dims[0] <= 0 || bits_of(part->type) % 8 != 0) return std::nullopt;
    if (!joined) joined = make_tensor(matrix->name() + ".qkv", part->type, {part->dims[0], 0}, nullptr);
    if (part->type != joined->type || part->dims[0] != joined->dims[0]) return std::nullopt;
    joined->dims[1] += part->dims[1];
    parts.push_back(part->data);
    widths.push_back(static_cast<std::uint64_t>(part->dims[1]) * bits_of(part->type) / 8);
  }
  if (joined) joined->data = side_by_side(std::move(parts), std::move(widths));
  return joined;
}

std::optional<Tensor> joined_vectors(const std::vector<Value*>& vectors, const std::vector<std::int64_t>& sizes,
                                     DataType type) {
  std::vector<Bytes> parts;
  std::int64_t total = 0;
  std::string name = "bias.qkv";
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    total += sizes[i];
    if (!vectors[i]) {
      const std::uint64_t bytes = static_cast<std::uint64_t>(sizes[i]) * bits_of(type) / 8;
      parts.push_back(owned_bytes(std::vector<std::byte>(static_cast<std::size_t>(bytes))));
      continue;
    }
    const std::optional<Tensor> part = constant_of(vectors[i]);
    if (!part || part->type != type || part->dims != Integers{sizes[i]}) return std::nullopt;
    name = vectors[i]->name() + ".qkv";
    parts.push_back(part->data);
  }
  return make_tensor(std::move(name), type, {total}, concatenated(std::move(parts)));
}

}  // namespace mk
