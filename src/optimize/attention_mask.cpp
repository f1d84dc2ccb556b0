#include "optimize/attention_mask.h"

#include <algorithm>
#include <array>

#include "optimize/operands.h"

namespace mk {
namespace {

constexpr int most_steps = 32;
constexpr double least_fill = -1e30;  // a key with this or less added has no weight, whatever its score

bool is_op(const Node* node, std::string_view op_type) {
  return node && node->domain.empty() && node->op_type == op_type;
}

bool is_scalar(const Value* value, double wanted) {
  const auto scalar = scalar_of(value);
  return scalar && *scalar == wanted;
}

// Walks from a tensor of ones and zeros to the mask that it views. The axes of batch and keys are followed from the
// end.
class Walk {
 public:
  explicit Walk(Value* from) : value_(from) {}

  std::optional<PaddingMask> run(bool keeps) {
    keeps_ = keeps;
    for (int step = 0; step < most_steps && value_; ++step) {
      const Node* node = value_->producer();
      if (node && node->graph() == value_->graph() && node->domain.empty()) {
        const Step taken = take(*node);
        if (taken == Step::wrong) return std::nullopt;
        if (taken == Step::on) continue;
      }
      const DataType type = value_->type.element;
      const bool fits = rank_of(value_) == 2 && batch_ == -2 && (is_integer(type) || type == DataType::boolean);
      return fits ? std::optional(PaddingMask{value_, keeps_, 0}) : std::nullopt;
    }
    return std::nullopt;
  }

 private:
  enum class Step { on, end, wrong };

  Step to(Value* next) {
    value_ = next;
    return next ? Step::on : Step::wrong;
  }
  Step inverted(Value* next) {
    keeps_ = !keeps_;
    return to(next);
  }

  Step take(const Node& node) {
    Value* const first = node.input(0);
    if (is_op(&node, "Identity") || is_op(&node, "Cast")) {
      const DataType from = first ? first->type.element : DataType::undefined;
      const bool is_mask = is_integer(from) || is_float(from) || from == DataType::boolean;
      return is_mask ? to(first) : Step::wrong;
    }
    if (is_op(&node, "Not")) return inverted(first);
    if (is_op(&node, "Sub")) return is_scalar(first, 1) ? inverted(node.input(1)) : Step::end;
    if (is_op(&node, "Equal")) return equal(node);
    if (is_op(&node, "Greater")) return is_scalar(node.input(1), 0) ? to(first) : Step::end;
    if (is_op(&node, "Expand")) return expand(node);
    if (is_op(&node, "Unsqueeze")) return unsqueeze(node);
    if (is_op(&node, "Reshape")) return reshape(node);
    return Step::end;
  }

  Step equal(const Node& node) {
    for (std::size_t side = 0; side < 2; ++side) {
      Value* const other = node.input(1 - side);
      if (is_scalar(node.input(side), 0)) return inverted(other);
      const Node* cast = other ? other->producer() : nullptr;  // ids may equal one as well as a mask
      const Value* made_of = cast && is_op(cast, "Cast") ? cast->input(0) : nullptr;
      const bool from_bool = made_of && made_of->type.element == DataType::boolean;
      if (from_bool && is_scalar(node.input(side), 1)) return to(other);
    }
    return Step::end;
  }

  // Axes that were ones before may have become more: those of batch and keys must not.
  Step expand(const Node& node) {
    Value* const from = node.input(0);
    const int rank = rank_of(from);  // -1 of none
    if (!from || rank < 2 || -batch_ > rank) return Step::wrong;
    const bool kept = same_dim(dim_of(from, -1), dim_of(value_, -1)) &&
                      same_dim(dim_of(from, batch_ + rank), dim_of(value_, batch_ + rank_of(value_)));
    return kept ? to(from) : Step::wrong;
  }

  Step unsqueeze(const Node& node) {
    const auto* held = node.integers("axes");
    const auto axes = held ? std::optional(*held) : integers_of(node.input(1));
    const int rank = rank_of(value_);
    if (!axes || rank < 0) return Step::wrong;
    int behind = 0;  // of the axes that go, behind the batch's
    for (const std::int64_t axis : *axes) {
      const auto from_end = static_cast<int>(axis < 0 ? axis : axis - rank);
      if (from_end == batch_ || from_end == -1) return Step::wrong;
      behind += from_end > batch_ ? 1 : 0;
    }
    batch_ += behind;
    return to(node.input(0));
  }

  // From [batch, keys] only, with ones between.
  Step reshape(const Node& node) {
    Value* const from = node.input(0);
    const int rank = rank_of(value_);
    if (rank_of(from) != 2 || batch_ != -rank) return Step::wrong;
    for (int axis = 1; axis + 1 < rank; ++axis) {
      if (!same_dim(dim_of(value_, axis), Dim::known(1))) return Step::wrong;
    }
    if (!same_dim(dim_of(from, 1), dim_of(value_, -1)) && !same_dim(dim_of(from, 0), dim_of(value_, 0))) {
      return Step::wrong;
    }
    batch_ = -2;
    return to(from);
  }

  Value* value_;
  int batch_ = -4;
  bool keeps_ = true;
};

std::optional<PaddingMask> filled(Value* indicator, bool keeps, std::optional<double> fill, double largest) {
  if (!fill || *fill > largest || rank_of(indicator) != 4) return std::nullopt;
  auto found = Walk(indicator).run(keeps);
  if (found) found->fill = *fill;
  return found;
}

}  // namespace

std::optional<PaddingMask> padding_condition(Value* condition, bool keeps_scores, double fill) {
  return filled(condition, keeps_scores, fill, least_fill);
}

std::optional<PaddingMask> padding_mask(Value* added) {
  // In 16 bits what is added swallows part of the score, unless all of it.
  const double largest = added && added->type.element == DataType::float32 ? -1.0 : least_fill;
  for (int step = 0; step < most_steps && added; ++step) {
    const Node* node = added->producer();
    if (!node || node->graph() != added->graph() || !node->domain.empty()) return std::nullopt;
    if (node->op_type == "Mul") {  // (ones where left out) * fill
      for (std::size_t side = 0; side < 2; ++side) {
        const auto fill = scalar_of(node->input(side));
        if (!fill) continue;
        return filled(node->input(1 - side), /*keeps=*/false, fill, largest);
      }
      return std::nullopt;
    }
    if (node->op_type == "Where") {
      const auto then = scalar_of(node->input(1)), otherwise = scalar_of(node->input(2));
      if (then && otherwise == 0.0) return filled(node->input(0), /*keeps=*/false, then, largest);
      if (otherwise && then == 0.0) return filled(node->input(0), /*keeps=*/true, otherwise, largest);
      if (!then) return std::nullopt;
      // Where(dropped, fill, dropped as numbers): zero where it is not the fill.
      const auto left_out = filled(node->input(0), false, then, largest),
                 rest = filled(node->input(2), false, then, largest);
      return left_out && rest && left_out->mask == rest->mask && left_out->keeps == rest->keeps ? left_out
                                                                                                : std::nullopt;
    }
    if (node->op_type != "Identity" && node->op_type != "Cast") return std::nullopt;
    added = node->input(0);
    if (!added || !is_float(added->type.element)) return std::nullopt;
  }
  return std::nullopt;
}

PatchValue key_mask(Patch& patch, const PaddingMask& padding) {
  if (padding.keeps) return as_int32(patch, padding.mask);
  if (padding.mask->type.element == DataType::boolean) {
    const PatchValue kept = patch.op("Not", {padding.mask});
    return patch.op("Cast", {kept}).with("to", static_cast<std::int64_t>(DataType::int32));
  }
  const PatchValue one =
      patch.constant(make_tensor("one", DataType::int32, {}, owned_values(std::vector<std::int32_t>{1})));
  return patch.op("Sub", {one, as_int32(patch, padding.mask)});
}

}  // namespace mk
