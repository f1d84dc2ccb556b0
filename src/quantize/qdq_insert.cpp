// Carries a plan out: parameters, quantized weights and biases, and the nodes between.

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "quantize/qdq_constants.h"
#include "quantize/qdq_plan.h"

namespace mk {
namespace {

constexpr double largest_int32 = std::numeric_limits<std::int32_t>::max();
// The largest |bias| / scale, a little inside int32 so that rounding of the scale does not leave it.
constexpr double largest_bias = largest_int32 / 1.0001;

// Scale and zero point as values of the graph.
struct Parameters {
  Value* scale = nullptr;
  Value* zero_point = nullptr;
};

class Inserter {
 public:
  Inserter(Model& model, QdqPlan& plan, const QdqRanges& ranges, const QdqOptions& options, QdqReport& report)
      : model_(model), plan_(plan), ranges_(ranges), options_(options), report_(report) {}

  Status run() {
    choose_domain();
    remember_order(*model_.graph);
    compute_parameters();
    MK_CHECK(read_biases());
    for (std::size_t i = 0; i < plan_.weights.size(); ++i) insert_weight(i);
    for (const TablePlan& table : plan_.tables) insert_table(table);
    for (const ActivationPlan& activation : plan_.activations) insert_activation(activation);
    for (std::size_t i = 0; i < plan_.biases.size(); ++i) insert_bias(plan_.biases[i], biases_[i]);
    for (const WeightPlan& weight : plan_.weights) drop_.push_back(weight.value);
    std::sort(drop_.begin(), drop_.end());
    drop_.erase(std::unique(drop_.begin(), drop_.end()), drop_.end());
    for (Value* value : drop_) {
      if (value->is_unused()) value->graph()->erase_unused(value);
    }
    return {};
  }

 private:
  // Types and attributes that ai.onnx does not have at this opset are in com.microsoft's operators.
  void choose_domain() {
    const std::int64_t opset = model_.opset();
    const auto is_wide = [](DataType type) { return bits_of(type) == 16; };
    bool wide = is_wide(options_.activation_type) && !plan_.activations.empty();
    bool channels = false;
    for (const WeightPlan& weight : plan_.weights) {
      wide |= is_wide(weight.type);
      channels |= weight.parameters.size() > 1;
    }
    const char* reason = nullptr;
    if (channels && opset < 13) reason = "it has no axis before opset 13";
    if (wide && opset < 21) reason = "it has no 16-bit types before opset 21";
    if (!reason || (plan_.weights.empty() && plan_.activations.empty())) return;
    report_.domain = "com.microsoft";
    report_.warnings.push_back("QuantizeLinear and DequantizeLinear are those of com.microsoft: in ai.onnx " +
                               std::string(reason) + ", and the model has opset " + std::to_string(opset));
    if (model_.opset("com.microsoft") == 0) model_.set_opset("com.microsoft", 1);
  }

  // New nodes stand right after what makes their input.
  void remember_order(Graph& graph) {
    Node* before = nullptr;
    first_[&graph] = graph.nodes().empty() ? nullptr : graph.nodes().front();
    for (Node* node : graph.nodes()) {
      names_.insert(node->name);
      if (before) next_[before] = node;
      before = node;
      for (Graph* inner : node->subgraphs()) remember_order(*inner);
    }
  }

  Node* place_after(const Value& value) const {
    if (!value.producer()) return first_.at(value.graph());
    const auto found = next_.find(value.producer());
    return found == next_.end() ? nullptr : found->second;
  }

  Value* add_node(const char* op_type, const std::string& stem, std::vector<Value*> inputs, Type type,
                  const Metadata& metadata, Node* before, std::optional<std::size_t> axis = std::nullopt) {
    Graph& graph = *graph_;
    Value* output = graph.add_value(graph.unique_name(stem + "_" + op_type + "_Output"), std::move(type));
    Node* node = graph.add_node(op_type, std::move(inputs), {output}, before);
    node->name = unique_node_name(stem + "_" + op_type);
    node->domain = report_.domain;
    node->metadata = metadata;
    if (axis) node->set_attribute({"axis", static_cast<std::int64_t>(*axis)});
    ++(node->op_type == "QuantizeLinear" ? report_.quantize_linear : report_.dequantize_linear);
    return output;
  }

  std::string unique_node_name(const std::string& stem) {
    std::string name = stem;
    for (int i = 1; !names_.insert(name).second; ++i) name = stem + "_" + std::to_string(i);
    return name;
  }

  Parameters add_parameters(const std::string& stem, std::span<const QuantizationParameters> parameters, DataType type,
                            bool scalar) {
    Graph& graph = *graph_;
    Parameters made;
    made.scale = graph.add_initializer(scale_tensor(graph.unique_name(stem + "_scale"), parameters, scalar));
    made.zero_point =
        graph.add_initializer(zero_point_tensor(graph.unique_name(stem + "_zero_point"), parameters, type, scalar));
    for (Value* value : {made.scale, made.zero_point}) {
      const Tensor& tensor = *value->initializer();
      value->type = Type::tensor(tensor.type, static_shape(tensor.dims));
    }
    return made;
  }

  // Weights.

  void insert_weight(std::size_t index) {
    const WeightPlan& weight = plan_.weights[index];
    graph_ = weight.value->graph();
    const Tensor& tensor = *weight.value->initializer();
    const std::string& name = weight.value->name();
    const bool scalar = !weight.axis.has_value();
    const Parameters made = add_parameters(name, weight.parameters, weight.type, scalar);
    Value* quantized =
        graph_->add_initializer(make_tensor(graph_->unique_name(name + "_quantized"), weight.type, tensor.dims,
                                            quantized_weight(tensor, weight.type, weight.parameters, weight.axis)));
    quantized->type = Type::tensor(weight.type, static_shape(tensor.dims));
    quantized_[index] = {quantized, made};
    ++report_.weights;
    // Whose parameters a Gather's output shares: see QdqRule::gather.
    if (scalar && weight.type == options_.activation_type && weight.symmetric == options_.activation_symmetric)
      parameters_[weight.value] = made;
    if (weight.uses.empty()) return;
    Value* back = add_node("DequantizeLinear", name, {quantized, made.scale, made.zero_point},
                           Type::tensor(DataType::float32, static_shape(tensor.dims)),
                           weight.uses.front().node->metadata, first_.at(graph_), weight.axis);
    for (const Use& use : weight.uses) use.node->set_input(use.input, back);
  }

  void insert_table(const TablePlan& table) {
    const WeightPlan& weight = plan_.weights[table.weight];
    const auto& [quantized, made] = quantized_.at(table.weight);
    Value* rows = table.node->output(0);
    graph_ = rows->graph();
    const std::string name = rows->name();
    table.node->set_input(0, quantized);
    const Type type = rows->type;
    Node* before = place_after(*rows);
    Value* back = add_node("DequantizeLinear", name, {}, type, table.node->metadata, before);
    next_[back->producer()] = before;
    graph_->replace_uses(rows, back, /*outputs=*/true);
    Node* node = back->producer();
    for (Value* input : {rows, made.scale, made.zero_point}) node->set_input(node->inputs().size(), input);
    if (weight.axis) node->set_attribute({"axis", -1});
    rows->type = Type::tensor(weight.type, type.shape);
    graph_->rename(rows, graph_->unique_name(name + "_quantized"));
    graph_->rename(back, name);
    moved_[rows] = back;
  }

  // Activations.

  Parameters parameters_of(Value* value) {
    if (const auto found = parameters_.find(value); found != parameters_.end()) return found->second;
    Parameters made;
    if (is_dequantized(*value)) {
      made = {value->producer()->input(1), value->producer()->input(2)};
    } else if (Value* shared = shared_by(*value)) {
      made = parameters_of(shared);
    } else {
      graph_ = value->graph();
      const QuantizationParameters own = own_parameters(*value);
      made = add_parameters(value->name(), std::span(&own, 1), options_.activation_type, true);
    }
    parameters_[value] = made;
    return made;
  }

  Value* shared_by(const Value& value) const {
    const auto found = plan_.activation_of.find(&value);
    return found == plan_.activation_of.end() ? nullptr : plan_.activations[found->second].shares;
  }

  // Before anything is inserted: ranges depend on the neighbours of a value.
  void compute_parameters() {
    for (const ActivationPlan& activation : plan_.activations) {
      own_[activation.value] = quantization_parameters(ranges_.of(*activation.value).value_or(TensorRange{}),
                                                       options_.activation_type, options_.activation_symmetric);
    }
  }

  const QuantizationParameters& own_parameters(const Value& value) const { return own_.at(&value); }

  void insert_activation(const ActivationPlan& activation) {
    const Parameters made = parameters_of(activation.value);
    Value* value = activation.value;
    if (const auto moved = moved_.find(value); moved != moved_.end()) value = moved->second;
    graph_ = value->graph();
    Node* before = place_after(*value);
    const Metadata& metadata =
        value->producer() || value->uses().empty() ? producer_metadata(*value) : value->uses().front().node->metadata;
    const std::string name = value->name();
    std::vector<Use> uses = activation.everywhere ? value->uses() : activation.uses;
    const bool takes_output = activation.everywhere && value->is_graph_output() &&
                              (options_.quantize_outputs || graph_ != model_.graph.get());

    Value* quantized = add_node("QuantizeLinear", name, {value, made.scale, made.zero_point},
                                Type::tensor(options_.activation_type, value->type.shape), metadata, before);
    Value* back =
        add_node("DequantizeLinear", name, {quantized, made.scale, made.zero_point}, value->type, metadata, before);
    for (const Use& use : uses) use.node->set_input(use.input, back);
    if (!takes_output) return;
    for (std::size_t i = 0; i < graph_->outputs().size(); ++i) {
      if (graph_->outputs()[i] == value) graph_->set_output(i, back);
    }
    graph_->rename(value, graph_->unique_name(name + "_QuantizeLinear_Input"));
    graph_->rename(back, name);
  }

  static const Metadata& producer_metadata(const Value& value) {
    static const Metadata none;
    return value.producer() ? value.producer()->metadata : none;
  }

  // Biases.

  struct Bias {
    std::vector<double> values;  // beta included
    bool stays_float = false;
  };

  std::optional<double> input_scale(Value& value) const {
    if (is_dequantized(value)) {
      const auto found = dequantized_parameters(value);
      return found ? std::optional<double>(found->scale) : std::nullopt;
    }
    if (Value* shared = shared_by(value)) {
      for (const WeightPlan& weight : plan_.weights) {
        if (weight.value == shared && !weight.axis) return weight.parameters.front().scale;
      }
      return input_scale(*shared);
    }
    if (!plan_.activation_of.contains(&value)) return std::nullopt;
    return own_parameters(value).scale;
  }

  // Reads them, and makes the scales of weights so large that biases fit into int32.
  Status read_biases() {
    for (const BiasPlan& plan : plan_.biases) {
      Bias bias;
      MK_TRY(bias.values, number_values(*plan.use.node->input(plan.use.input)->initializer()));
      for (double& value : bias.values) value *= static_cast<double>(plan.beta);
      const auto scale = input_scale(*plan.input);
      bias.stays_float = !scale || !std::all_of(bias.values.begin(), bias.values.end(),
                                                [](double value) { return std::isfinite(value); });
      bias.stays_float |= !fits_channels(plan);
      if (!bias.stays_float) make_room(plan, *scale, bias);
      biases_.push_back(std::move(bias));
    }
    if (!enlarged_.empty()) {
      report_.warnings.push_back("the scales of " + std::to_string(enlarged_.size()) +
                                 " weights are larger than their values need, so that biases fit into int32: '" +
                                 enlarged_.front() + (enlarged_.size() > 1 ? "' and others" : "'"));
    }
    return {};
  }

  // Per channel the last dimension of the bias has to be the channels, or be broadcast to them.
  bool fits_channels(const BiasPlan& plan) const {
    const std::size_t channels = plan_.weights[plan.weight].parameters.size();
    const Tensor& bias = *plan.use.node->input(plan.use.input)->initializer();
    if (channels == 1 || bias.element_count() == 1) return true;
    return !bias.dims.empty() && static_cast<std::size_t>(bias.dims.back()) % channels == 0;
  }

  void make_room(const BiasPlan& plan, double scale, const Bias& bias) {
    WeightPlan& weight = plan_.weights[plan.weight];
    const std::size_t channels = weight.parameters.size();
    std::vector<double> largest(channels, 0.0);
    for (std::size_t i = 0; i < bias.values.size(); ++i) {
      const double size = std::abs(bias.values[i]);
      if (bias.values.size() == 1) {
        std::fill(largest.begin(), largest.end(), size);
      } else {
        largest[i % channels] = std::max(largest[i % channels], size);
      }
    }
    std::vector<double> growth(channels, 1.0);
    for (std::size_t c = 0; c < channels; ++c) {
      const double product = scale * static_cast<double>(weight.parameters[c].scale) * static_cast<double>(plan.alpha);
      // A product that is no normal float32 cannot be the scale.
      const double least = std::max(largest[c] / largest_bias, static_cast<double>(std::numeric_limits<float>::min()));
      if (product < least) growth[c] = least / product;
    }
    const double most = *std::max_element(growth.begin(), growth.end());
    if (most <= 1) return;
    for (std::size_t c = 0; c < channels; ++c) {
      if (growth[c] > 1) enlarge(weight, c, growth[c]);
    }
    enlarged_.push_back(weight.value->name());
  }

  static void enlarge(WeightPlan& weight, std::size_t channel, double growth) {
    QuantizationParameters& parameters = weight.parameters[channel];
    const double scale = static_cast<double>(parameters.scale) * growth;
    parameters.scale = std::nextafter(static_cast<float>(scale), std::numeric_limits<float>::infinity());
    if (weight.symmetric) return;
    const QuantizedLimits limits = quantized_limits(weight.type, false);
    const double low = std::min(weight.ranges[channel].low, 0.0f);
    parameters.zero_point =
        static_cast<std::int32_t>(std::nearbyint(limits.low - low / static_cast<double>(parameters.scale)));
  }

  void insert_bias(const BiasPlan& plan, const Bias& bias) {
    if (bias.stays_float) return;
    Node& node = *plan.use.node;
    Value* old = node.input(plan.use.input);
    const Tensor& tensor = *old->initializer();
    const WeightPlan& weight = plan_.weights[plan.weight];
    const auto scale = static_cast<float>(*input_scale(*plan.input));
    const std::size_t channels = weight.parameters.size();

    std::vector<std::int64_t> dims = tensor.dims;
    std::vector<double> values = bias.values;
    const bool scalar = channels == 1;
    if (!scalar && values.size() == 1) {
      values.assign(channels, values.front());
      dims = {static_cast<std::int64_t>(channels)};
    }
    std::vector<QuantizationParameters> parameters(scalar ? 1 : static_cast<std::size_t>(dims.back()));
    for (std::size_t i = 0; i < parameters.size(); ++i)
      parameters[i] = {scale * weight.parameters[i % channels].scale * plan.alpha, 0};
    std::vector<std::int32_t> integers(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double steps = std::nearbyint(values[i] / static_cast<double>(parameters[i % parameters.size()].scale));
      integers[i] = static_cast<std::int32_t>(std::clamp(steps, -largest_int32 - 1, largest_int32));
    }

    graph_ = node.graph();
    const std::string name = old->name();
    const Parameters made = add_parameters(name + "_quantized", parameters, DataType::int32, scalar);
    Value* quantized = graph_->add_initializer(
        make_tensor(graph_->unique_name(name + "_quantized"), DataType::int32, dims, owned_values(integers)));
    quantized->type = Type::tensor(DataType::int32, static_shape(dims));
    Value* back = add_node("DequantizeLinear", name, {quantized, made.scale, made.zero_point},
                           Type::tensor(DataType::float32, static_shape(dims)), node.metadata, first_.at(graph_),
                           scalar ? std::nullopt : std::optional<std::size_t>(dims.size() - 1));
    node.set_input(plan.use.input, back);
    if (plan.beta != 1) node.erase_attribute("beta");
    drop_.push_back(old);
    ++report_.biases;
  }

  Model& model_;
  QdqPlan& plan_;
  const QdqRanges& ranges_;
  const QdqOptions& options_;
  QdqReport& report_;
  Graph* graph_ = nullptr;                 // where the nodes at hand go
  std::unordered_set<std::string> names_;  // of nodes
  std::unordered_map<const Node*, Node*> next_;
  std::unordered_map<const Graph*, Node*> first_;
  std::unordered_map<const Value*, QuantizationParameters> own_;  // of activations
  std::unordered_map<const Value*, Parameters> parameters_;
  std::unordered_map<std::size_t, std::pair<Value*, Parameters>> quantized_;  // of weights
  std::unordered_map<const Value*, Value*> moved_;                            // rows of tables: to where they are float
  std::vector<Bias> biases_;
  std::vector<std::string> enlarged_;  // weights
  std::vector<Value*> drop_;
};

}  // namespace

Status apply_qdq(Model& model, QdqPlan& plan, const QdqRanges& ranges, const QdqOptions& options, QdqReport& report) {
  return Inserter(model, plan, ranges, options, report).run();
}

}  // namespace mk
