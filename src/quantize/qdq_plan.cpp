#include "quantize/qdq_plan.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>

#include "quantize/qdq_constants.h"

namespace mk {
namespace {

bool is_float(const Value& value) { return value.type.is_tensor() && value.type.element == DataType::float32; }
bool is_any_float(const Value& value) { return value.type.is_tensor() && mk::is_float(value.type.element); }

std::size_t output_axis_of_gemm(const Node& node) { return node.integer("transB", 0) != 0 ? 0 : 1; }

class Planner {
 public:
  Planner(Model& model, const QdqRanges& ranges, const QdqOptions& options, QdqReport& report)
      : model_(model), ranges_(ranges), options_(options), report_(report) {}

  Result<QdqPlan> run() {
    first_ = true;
    MK_CHECK(walk(*model_.graph));
    // Operators that move data, or choose, may come before the one that has their input quantized.
    first_ = false;
    MK_CHECK(walk(*model_.graph));
    return std::move(plan_);
  }

 private:
  Status walk(Graph& graph) {
    const std::vector<Node*> nodes(graph.nodes().begin(), graph.nodes().end());
    for (Node* node : nodes) {
      for (Graph* inner : node->subgraphs()) MK_CHECK(walk(*inner));
      MK_CHECK(visit(*node));
    }
    return {};
  }

  Status visit(Node& node) {
    const QdqRuleRow* row = selected_rule(node, options_, model_.opset());
    const bool follows =
        row && (row->rule == QdqRule::movement || row->rule == QdqRule::split || row->rule == QdqRule::pad ||
                row->rule == QdqRule::resize || row->rule == QdqRule::gather || row->rule == QdqRule::select);
    if (!first_) {
      if (!follows || done_.contains(&node) || options_.exclude.matches(node)) return {};
    } else {
      if (!row) {
        count_other(node);
        return {};
      }
      if (options_.exclude.matches(node)) {
        skip(node, "it is excluded");
        return {};
      }
    }
    if (!touches_floats(node)) return {};
    if (first_ && row->rule != QdqRule::removable && is_quantized_already(node)) {
      skip(node, "it is quantized already");
      return {};
    }
    problem_.clear();
    MK_TRY(const bool planned, apply(node, *row));
    if (planned && !done_.contains(&node)) {
      done_.insert(&node);
      ++report_.nodes_quantized;
    }
    if (!planned && !problem_.empty() && first_) skip(node, problem_);
    return {};
  }

  Result<bool> apply(Node& node, const QdqRuleRow& row) {
    switch (row.rule) {
      case QdqRule::convolution:
      case QdqRule::gemm:
        return weighted(node, row.rule == QdqRule::gemm);
      case QdqRule::matmul:
        return matmul(node);
      case QdqRule::normalization:
        return normalization(node);
      case QdqRule::elementwise:
        return elementwise(node, false);
      case QdqRule::softmax:
        return elementwise(node, true);
      case QdqRule::removable:
        return removable(node);
      case QdqRule::movement:
      case QdqRule::split:
        return follow(node, true);
      case QdqRule::pad:
        return follow(node, pads_within_range(node));
      case QdqRule::resize:
        return follow(node, node.string("mode", "nearest") != "cubic");
      case QdqRule::gather:
        return gather(node);
      case QdqRule::select:
        return select(node);
    }
    return false;
  }

  // Marks.

  bool is_marked(const Value& value) const { return plan_.activation_of.contains(&value) || is_dequantized(value); }

  ActivationPlan& activation(Value* value) {
    const auto [entry, added] = plan_.activation_of.try_emplace(value, plan_.activations.size());
    if (added) plan_.activations.push_back({value, nullptr, false, {}});
    return plan_.activations[entry->second];
  }

  // Whether a float input that is no initializer can be quantized; else problem_ says why.
  bool can_quantize(const Value* value) {
    if (value && (is_dequantized(*value) || ranges_.of(*value))) return true;
    if (value) problem_ = ranges_.why_not(*value);
    return false;
  }

  void mark_input(Node& node, std::size_t input) {
    Value* value = node.input(input);
    if (!value || is_dequantized(*value)) return;
    activation(value).uses.push_back({&node, static_cast<std::uint32_t>(input)});
  }

  bool leaves_output_float(const Value& value) const {
    return value.is_graph_output() && !options_.quantize_outputs && value.graph() == model_.graph.get();
  }

  void mark_output(Value* value, Value* shares = nullptr) {
    if (!value || is_quantized(*value)) return;
    if (leaves_output_float(*value) && value->uses().empty()) return;
    ActivationPlan& plan = activation(value);
    plan.everywhere = true;
    plan.shares = shares;
  }

  Result<std::size_t> mark_weight(Node& node, std::size_t input, std::optional<std::size_t> axis, DataType type,
                                  bool symmetric) {
    Value* value = node.input(input);
    const Use use{&node, static_cast<std::uint32_t>(input)};
    std::vector<std::size_t>& known = weights_of_[value];
    for (const std::size_t i : known) {
      WeightPlan& plan = plan_.weights[i];
      if (plan.axis == axis && plan.type == type && plan.symmetric == symmetric) {
        plan.uses.push_back(use);
        return i;
      }
    }
    MK_TRY(auto ranges, weight_ranges(*value->initializer(), axis));
    auto parameters = weight_parameters(ranges, type, symmetric);
    known.push_back(plan_.weights.size());
    plan_.weights.push_back({value, axis, type, symmetric, {use}, std::move(ranges), std::move(parameters)});
    return known.back();
  }

  // Constants.

  // A float32 initializer with elements.
  bool is_weight(const Value* value) {
    const Tensor* tensor = weight_tensor(value);
    return tensor && tensor->type == DataType::float32 && tensor->data && tensor->element_count() > 0;
  }

  bool fits_weight(const Value* value, std::size_t rank) {
    if (!value || !value->initializer()) return true;
    if (!is_weight(value)) {
      problem_ = "the weight '" + value->name() + "' is empty, or is not float32";
      return false;
    }
    if (value->initializer()->dims.size() >= rank) return true;
    problem_ = "the weight '" + value->name() + "' has too few dimensions";
    return false;
  }

  // Rules. Each looks first at all it needs, and only then marks.

  Result<bool> weighted(Node& node, bool is_gemm) {
    const bool constant = is_weight(node.input(1));
    const std::size_t rank = is_gemm ? 2 : 3;
    if (!fits_weight(node.input(1), rank) || !node.input(0) || !node.input(1)) return false;
    if (options_.scope == QdqScope::weighted && !constant) return false;
    if (node.input(0)->initializer() && !is_weight(node.input(0))) return false;
    const bool constant_data = is_weight(node.input(0));
    const bool wants_output = !is_gemm || options_.scope == QdqScope::all;
    if (!constant_data && !can_quantize(node.input(0))) return false;
    if (!constant && !can_quantize(node.input(1))) return false;
    if (wants_output && needs_range(node.output(0)) && !can_quantize(node.output(0))) return false;

    if (constant_data) {
      MK_CHECK(mark_weight(node, 0, std::nullopt, options_.activation_type, options_.activation_symmetric));
    } else {
      mark_input(node, 0);
    }
    if (wants_output) mark_output(node.output(0));
    if (!constant) {
      mark_input(node, 1);
      return true;
    }
    std::optional<std::size_t> axis;
    if (options_.per_channel) axis = is_gemm ? output_axis_of_gemm(node) : node.op_type == "Conv" ? 0 : 1;
    MK_TRY(const std::size_t weight,
           mark_weight(node, 1, axis, options_.weight_type, options_.weight_symmetric || axis.has_value()));
    if (!constant_data && is_weight(node.input(2))) plan_bias(node, weight, is_gemm);
    return true;
  }

  void plan_bias(Node& node, std::size_t weight, bool is_gemm) {
    BiasPlan bias{{&node, 2}, node.input(0), weight, 1, 1};
    if (is_gemm) {
      bias.alpha = node.real("alpha", 1);
      bias.beta = node.real("beta", 1);
      const bool usable = bias.alpha > 0 && bias.alpha <= std::numeric_limits<float>::max();
      if (!usable) return;
      if (bias.beta == 0) {
        node.resize_inputs(2);
        node.erase_attribute("beta");
        return;
      }
    }
    plan_.biases.push_back(bias);
  }

  Result<bool> matmul(Node& node) {
    const std::array<bool, 2> constant{is_weight(node.input(0)), is_weight(node.input(1))};
    if (options_.scope == QdqScope::weighted && !constant[0] && !constant[1]) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!fits_weight(node.input(i), 1)) return false;
      if (!constant[i] && !can_quantize(node.input(i))) return false;
    }
    const bool wants_output = options_.scope == QdqScope::all;
    if (wants_output && needs_range(node.output(0)) && !can_quantize(node.output(0))) return false;
    for (std::size_t i = 0; i < 2; ++i) {
      if (!constant[i]) {
        mark_input(node, i);
        continue;
      }
      std::optional<std::size_t> axis;
      const std::size_t rank = node.input(i)->initializer()->dims.size();
      if (options_.per_channel && i == 1 && rank >= 2) axis = rank - 1;
      MK_CHECK(mark_weight(node, i, axis, options_.weight_type, options_.weight_symmetric || axis.has_value()));
    }
    if (wants_output) mark_output(node.output(0));
    return true;
  }

  Result<bool> normalization(Node& node) {
    if (!fits_weight(node.input(1), 1)) return false;
    if (!can_quantize(node.input(0)) || !is_weight(node.input(1))) return false;
    if (needs_range(node.output(0)) && !can_quantize(node.output(0))) return false;
    mark_input(node, 0);
    mark_output(node.output(0));
    MK_TRY(const std::size_t weight,
           mark_weight(node, 1, std::nullopt, options_.weight_type, options_.weight_symmetric));
    if (is_weight(node.input(2))) plan_.biases.push_back({{&node, 2}, node.input(0), weight, 1, 1});
    return true;
  }

  Result<bool> elementwise(Node& node, bool input_may_stay_float) {
    std::vector<std::size_t> inputs;
    std::vector<std::size_t> constants;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      const Value* value = node.input(i);
      if (!value || !is_any_float(*value)) continue;
      if (value->initializer()) {
        if (value->initializer()->element_count() == 0) continue;
        if (!is_weight(value)) return false;
        constants.push_back(i);
      } else if (is_empty(*value)) {
        continue;
      } else if (can_quantize(value)) {
        inputs.push_back(i);
      } else if (!input_may_stay_float) {
        return false;
      }
    }
    for (const Value* output : node.outputs()) {
      if (output && is_any_float(*output) && needs_range(output) && !can_quantize(output)) return false;
    }
    if (inputs.empty() && !input_may_stay_float) return false;
    for (const std::size_t i : inputs) mark_input(node, i);
    for (const std::size_t i : constants)
      MK_CHECK(mark_weight(node, i, std::nullopt, options_.activation_type, options_.activation_symmetric));
    for (Value* output : node.outputs()) {
      if (output && is_float(*output)) mark_output(output);
    }
    return true;
  }

  Result<bool> removable(Node& node) {
    Value* input = node.input(0);
    Value* output = node.output(0);
    if (!input || !output || !is_marked(*input)) return false;
    if (needs_range(output) && !can_quantize(output)) return false;
    if (can_remove(node)) {
      remove(node);
      return true;
    }
    if (options_.scope == QdqScope::weighted) return false;
    mark_input(node, 0);
    mark_output(output);
    return true;
  }

  bool can_remove(const Node& node) const {
    const Value& input = *node.input(0);
    const auto found = plan_.activation_of.find(&input);
    if (found == plan_.activation_of.end() || !input.producer() || input.uses().size() != 1) return false;
    const ActivationPlan& plan = plan_.activations[found->second];
    if (!plan.everywhere || plan.shares || input.is_graph_output() || input.graph() != node.graph()) return false;
    if (is_quantized(*node.output(0)) || leaves_output_float(*node.output(0))) return false;
    float low = 0;
    float high = std::numeric_limits<float>::infinity();
    if (node.op_type == "Clip" && !clip_limits(node, low, high)) return false;
    const auto range = ranges_.of(*node.output(0));
    if (!range) return false;
    const auto parameters = quantization_parameters(*range, options_.activation_type, options_.activation_symmetric);
    const QuantizedLimits limits = quantized_limits(options_.activation_type, false);
    const double slack = 0.5 * static_cast<double>(parameters.scale);
    const double least = static_cast<double>(parameters.scale) * (limits.low - parameters.zero_point);
    const double most = static_cast<double>(parameters.scale) * (limits.high - parameters.zero_point);
    return least > static_cast<double>(low) - slack && most < static_cast<double>(high) + slack;
  }

  // Attributes before opset 11, constant inputs from then on.
  bool clip_limits(const Node& node, float& low, float& high) const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    if (model_.opset() < 11) {
      low = node.real("min", -infinity);
      high = node.real("max", infinity);
      return true;
    }
    low = -infinity;
    high = infinity;
    const auto read = [&](const Value* value, float& limit) {
      if (!value) return true;
      const Tensor* tensor = weight_tensor(value);
      if (!tensor || tensor->element_count() != 1) return false;
      const auto values = number_values(*tensor);
      if (!values) return false;
      limit = static_cast<float>(values->front());
      return true;
    };
    return read(node.input(1), low) && read(node.input(2), high);
  }

  void remove(Node& node) {
    Value* kept = node.input(0);
    Value* gone = node.output(0);
    const std::string name = gone->name();
    Graph& graph = *node.graph();
    graph.replace_uses(gone, kept, /*outputs=*/true);
    graph.erase(&node);
    graph.rename(kept, name);
    ++report_.activations_removed;
  }

  bool pads_within_range(const Node& node) const {
    if (node.string("mode", "constant") != "constant") return true;
    if (model_.opset() < 11) return node.real("value", 0) == 0;
    const Value* value = node.input(2);
    if (!value) return true;
    const Tensor* tensor = weight_tensor(value);
    if (!tensor) return false;
    const auto values = number_values(*tensor);
    return values && values->size() == 1 && values->front() == 0;
  }

  // Operators that move data: quantized where their input is. `shares`: the output has the input's parameters.
  Result<bool> follow(Node& node, bool shares) {
    Value* input = node.input(0);
    if (!input || !is_marked(*input) || !is_float(*input)) return false;
    if (is_dequantized(*input)) shares = shares && shares_parameters(*input, options_.activation_type);
    if (!shares) {
      if (needs_range(node.output(0)) && !can_quantize(node.output(0))) return false;
      mark_input(node, 0);
      mark_output(node.output(0));
      return true;
    }
    mark_input(node, 0);
    for (Value* output : node.outputs()) {
      if (output && is_float(*output)) mark_output(output, input);
    }
    return true;
  }

  Result<bool> gather(Node& node) {
    if (options_.scope == QdqScope::weighted) return table(node);
    if (!is_weight(node.input(0))) return follow(node, true);
    if (node.output(0) && is_quantized(*node.output(0))) return false;
    MK_CHECK(mark_weight(node, 0, std::nullopt, options_.activation_type, options_.activation_symmetric));
    mark_output(node.output(0), node.input(0));
    return true;
  }

  // Only the weight: nothing is lost of what the model computes.
  Result<bool> table(Node& node) {
    const Value* rows = node.input(0);
    const bool usable = node.op_type == "Gather" && is_weight(rows) && rows->initializer()->dims.size() == 2 &&
                        node.integer("axis", 0) == 0 && node.output(0) && !is_quantized(*node.output(0));
    if (!usable) return false;
    std::optional<std::size_t> axis;
    if (options_.per_channel) axis = 1;
    MK_TRY(const std::size_t weight,
           mark_weight(node, 0, axis, options_.weight_type, options_.weight_symmetric || axis.has_value()));
    plan_.weights[weight].uses.pop_back();
    plan_.tables.push_back({&node, weight});
    return true;
  }

  Result<bool> select(Node& node) {
    for (const std::size_t i : {1, 2}) {
      const Value* value = node.input(i);
      if (!value || !is_float(*value) || !is_marked(*value) || value->initializer()) return false;
    }
    if (needs_range(node.output(0)) && !can_quantize(node.output(0))) return false;
    mark_input(node, 1);
    mark_input(node, 2);
    mark_output(node.output(0));
    return true;
  }

  // Whether a value's Q would need a range of its own.
  bool needs_range(const Value* value) const {
    return value && !is_quantized(*value) && !(leaves_output_float(*value) && value->uses().empty());
  }

  static bool is_empty(const Value& value) {
    return value.type.shape && std::any_of(value.type.shape->begin(), value.type.shape->end(),
                                           [](const Dim& dim) { return dim.value == 0; });
  }

  static bool touches_floats(const Node& node) {
    const auto floats = [](const Value* value) { return value && (!value->type.is_tensor() || is_any_float(*value)); };
    return std::any_of(node.inputs().begin(), node.inputs().end(), floats) ||
           std::any_of(node.outputs().begin(), node.outputs().end(), floats);
  }

  // All float data that it reads is dequantized.
  static bool is_quantized_already(const Node& node) {
    bool any = false;
    for (std::size_t i = 0; i < node.inputs().size(); ++i) {
      const Value* value = node.input(i);
      if (!value || !is_any_float(*value)) continue;
      if (value->initializer() && i != 1) continue;
      if (!is_dequantized(*value)) return false;
      any = true;
    }
    return any;
  }

  void skip(const Node& node, std::string reason) {
    report_.skipped.push_back({node.label(), node.op_type, std::move(reason)});
  }

  void count_other(const Node& node) {
    if (qdq_rule(node.domain, node.op_type) || !touches_floats(node)) return;
    ++report_.others[node.domain.empty() ? node.op_type : node.domain + "." + node.op_type];
  }

  Model& model_;
  const QdqRanges& ranges_;
  const QdqOptions& options_;
  QdqReport& report_;
  QdqPlan plan_;
  std::unordered_map<const Value*, std::vector<std::size_t>> weights_of_;
  std::unordered_set<const Node*> done_;
  std::string problem_;
  bool first_ = true;
};

}  // namespace

Result<QdqPlan> plan_qdq(Model& model, const QdqRanges& ranges, const QdqOptions& options, QdqReport& report) {
  return Planner(model, ranges, options, report).run();
}

}  // namespace mk
