#include "quantize/dynamic.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include "graph/permuted.h"
#include "graph/shape_inference.h"
#include "quantize/qdq_constants.h"
#include "quantize/quantization_parameters.h"

namespace mk {
namespace {

struct Activation {
  Value* quantized = nullptr;
  Value* scale = nullptr;
  Value* zero_point = nullptr;
};

// `scale`: a scalar, or one for each channel in a shape that broadcasts against the product.
struct Weight {
  Value* quantized = nullptr;
  Value* scale = nullptr;
  Value* zero_point = nullptr;
};

// How a weight is wanted.
struct WeightForm {
  bool transposed = false;          // Gemm's
  std::optional<std::size_t> axis;  // of the channels, in the stored layout
  std::size_t trailing = 0;         // dims of 1 that follow the channels in the shape of the scales
  float factor = 1;                 // of the scales
  bool operator==(const WeightForm&) const = default;
};

class DynamicQuantizer {
 public:
  DynamicQuantizer(Model& model, const DynamicOptions& options) : model_(model), options_(options) {}

  Result<DynamicReport> run() {
    MK_CHECK(choose_type());
    MK_CHECK(walk(*model_.graph));
    for (Value* value : sources_)
      if (value->is_unused()) value->graph()->erase_unused(value);
    if (report_.nodes_quantized == 0) report_.warnings.push_back("no node was quantized");
    return std::move(report_);
  }

 private:
  Status choose_type() {
    if (!is_quantized_type(options_.weight_type))
      return fail(ErrorCode::usage, "cannot quantize to " + std::string(name_of(options_.weight_type)), {},
                  "use int8 or uint8");
    if (model_.opset() < 11)
      return fail(ErrorCode::unsupported, "opset " + std::to_string(model_.opset()) + " has no DynamicQuantizeLinear",
                  {}, "convert the model to opset 11 or later, or quantize statically");
    type_ = options_.weight_type;
    if (bits_of(type_) == 8) return {};
    type_ = DataType::int8;
    report_.warnings.push_back("dynamic quantization has 8-bit weights only: int8 instead of " +
                               std::string(name_of(options_.weight_type)));
    return {};
  }

  bool is_wanted(const Node& node) const {
    constexpr std::array known{"Conv", "Gather", "Gemm", "MatMul"};
    if (!node.domain.empty() || std::find(known.begin(), known.end(), node.op_type) == known.end()) return false;
    const auto& types = options_.op_types;
    return types.empty() || std::find(types.begin(), types.end(), node.op_type) != types.end();
  }

  Status walk(Graph& graph) {
    const std::vector<Node*> nodes(graph.nodes().begin(), graph.nodes().end());
    for (Node* node : nodes) {
      for (Graph* inner : node->subgraphs()) MK_CHECK(walk(*inner));
      if (!is_wanted(*node)) continue;
      const bool gathers = node->op_type == "Gather";
      const Tensor* weight = weight_tensor(node->input(gathers ? 0 : 1));
      if (!weight || !is_float(weight->type)) continue;
      if (options_.exclude.matches(*node)) {
        skip(*node, "it is excluded");
      } else if (const std::string problem = problem_of(*node, *weight); !problem.empty()) {
        skip(*node, problem);
      } else {
        MK_CHECK(gathers ? gather(*node) : product(*node));
        ++report_.nodes_quantized;
      }
    }
    return {};
  }

  void skip(const Node& node, std::string reason) {
    report_.skipped.push_back({node.label(), node.op_type, std::move(reason)});
  }

  static std::string problem_of(const Node& node, const Tensor& weight) {
    if (weight.type != DataType::float32)
      return "the weight '" + weight.name + "' is " + std::string(name_of(weight.type));
    if (weight.element_count() == 0 || !weight.data) return "the weight '" + weight.name + "' is empty";
    if (node.op_type == "Gather") return {};
    const std::size_t rank = node.op_type == "Conv" ? 3 : 2;
    if (weight.dims.size() < rank) return "the weight '" + weight.name + "' has too few dimensions";
    if (node.op_type != "Gemm") return {};
    if (node.integer("transA", 0) != 0) return "its left operand is transposed";
    if (!std::isfinite(node.real("alpha", 1))) return "its alpha is not finite";
    return {};
  }

  // The node of a value's graph before which what a node needs of the value has to stand.
  static Node* anchor(const Value& value, Node* node) {
    while (node->graph() != value.graph()) node = node->graph()->parent();
    return node;
  }

  Activation activation(Value* value, Node& consumer) {
    if (const auto found = activations_.find(value); found != activations_.end()) return found->second;
    Graph& graph = *value->graph();
    const std::string& name = value->name();
    Activation made;
    made.quantized =
        graph.add_value(graph.unique_name(name + "_quantized"), Type::tensor(DataType::uint8, value->type.shape));
    made.scale = graph.add_value(graph.unique_name(name + "_scale"), Type::tensor(DataType::float32, Shape{}));
    made.zero_point = graph.add_value(graph.unique_name(name + "_zero_point"), Type::tensor(DataType::uint8, Shape{}));
    Node* node = graph.add_node("DynamicQuantizeLinear", {value}, {made.quantized, made.scale, made.zero_point},
                                anchor(*value, &consumer));
    node->name = name + "_QuantizeLinear";
    node->metadata = value->producer() ? value->producer()->metadata : consumer.metadata;
    ++report_.dynamic_quantize_linear;
    return activations_[value] = made;
  }

  Result<Weight> weight(Value* value, const WeightForm& form, bool reduced) {
    for (const auto& [known, made] : weights_[value])
      if (known == form) return made;
    const Tensor& tensor = *value->initializer();
    const bool symmetric = options_.weight_symmetric || form.axis.has_value();
    MK_TRY(const auto ranges, weight_ranges(tensor, form.axis));
    const auto parameters = weight_parameters(ranges, type_, symmetric, reduced);
    Graph& graph = *value->graph();
    const std::string name = value->name();
    const auto add = [&](Tensor made) {
      const Type type = Type::tensor(made.type, static_shape(made.dims));
      Value* added = graph.add_initializer(std::move(made));
      added->type = type;
      return added;
    };

    Tensor quantized = make_tensor({}, type_, tensor.dims, quantized_weight(tensor, type_, parameters, form.axis));
    if (form.transposed) quantized = permuted(quantized, {1, 0});
    quantized.name = graph.unique_name(name + "_quantized");
    Tensor scales = scale_tensor({}, parameters, !form.axis);
    if (form.factor != 1) {
      std::vector<float> products;
      products.reserve(parameters.size());
      for (const QuantizationParameters& channel : parameters) products.push_back(channel.scale * form.factor);
      scales.data = owned_values(products);
    }
    if (form.axis) scales.dims.insert(scales.dims.end(), form.trailing, 1);
    scales.name = graph.unique_name(name + "_scale");
    Weight made;
    made.quantized = add(std::move(quantized));
    made.scale = add(std::move(scales));
    // Channels are symmetric: they have one zero point.
    made.zero_point =
        add(zero_point_tensor(graph.unique_name(name + "_zero_point"), std::span(parameters).first(1), type_, true));
    if (weights_[value].empty()) {
      sources_.push_back(value);
      ++report_.weights;
    }
    weights_[value].emplace_back(form, made);
    return made;
  }

  WeightForm form_of(const Node& node) const {
    WeightForm form;
    const std::size_t rank = node.input(1)->initializer()->dims.size();
    if (node.op_type == "Gemm") {
      form.transposed = node.integer("transB", 0) != 0;
      form.factor = node.real("alpha", 1);
    }
    if (!options_.per_channel) return form;
    const bool convolves = node.op_type == "Conv";
    form.axis = convolves || form.transposed ? 0 : rank - 1;
    form.trailing = convolves ? rank - 2 : 0;
    return form;
  }

  Value* op(Node& before, const char* op_type, std::vector<Value*> inputs, const std::string& suffix, DataType type) {
    Graph& graph = *before.graph();
    const std::string& name = before.output(0)->name();
    Value* output = graph.add_op(op_type, std::move(inputs), name + suffix, &before);
    output->type = Type::tensor(type, before.output(0)->type.shape);
    output->producer()->name = name + suffix;
    output->producer()->metadata = before.metadata;
    return output;
  }

  Status product(Node& node) {
    const bool convolves = node.op_type == "Conv";
    MK_TRY(const Weight b, weight(node.input(1), form_of(node), options_.reduce_range));
    const Activation a = activation(node.input(0), node);
    const char* type = convolves ? "ConvInteger" : "MatMulInteger";
    Value* integers =
        op(node, type, {a.quantized, b.quantized, a.zero_point, b.zero_point}, "_output_quantized", DataType::int32);
    if (convolves) {
      for (const Attribute& attribute : node.attributes()) integers->producer()->set_attribute(attribute.clone());
    }
    ++(convolves ? report_.conv_integer : report_.matmul_integer);
    Value* real = op(node, "Cast", {integers}, "_cast", DataType::float32);
    real->producer()->set_attribute({"to", static_cast<std::int64_t>(DataType::float32)});
    Value* scale = op(node, "Mul", {a.scale, b.scale}, "_scales_mul", DataType::float32);
    scale->type.shape.reset();
    Value* result = op(node, "Mul", {real, scale}, "_output_scale_mul", DataType::float32);
    if (Value* bias = bias_of(node)) result = op(node, "Add", {result, bias}, "_bias_add", DataType::float32);
    replace(node, result);
    return {};
  }

  // What is added to the product, in a shape that broadcasts against it; null where there is nothing.
  Value* bias_of(Node& node) {
    Value* bias = node.op_type == "MatMul" ? nullptr : node.input(2);
    if (!bias) return nullptr;
    Graph& graph = *node.graph();
    if (node.op_type == "Gemm") {
      const float beta = node.real("beta", 1);
      if (beta == 0) return nullptr;
      if (beta == 1) return bias;
      Value* factor = graph.add_initializer(scalar_tensor(graph.unique_name(bias->name() + "_beta"), beta));
      Value* scaled = op(node, "Mul", {bias, factor}, "_bias_mul", DataType::float32);
      scaled->type.shape.reset();
      return scaled;
    }
    std::vector<std::int64_t> dims(node.input(1)->initializer()->dims.size(), 1);
    dims[1] = -1;
    if (const Tensor* constant = weight_tensor(bias)) {
      dims[1] = static_cast<std::int64_t>(constant->element_count());
      Value* shaped = graph.add_initializer(
          make_tensor(graph.unique_name(bias->name() + "_reshaped"), constant->type, dims, constant->data));
      drop_later(bias);
      return shaped;
    }
    Value* shape = graph.add_initializer(int64_tensor(graph.unique_name(bias->name() + "_shape"), dims));
    Value* shaped = op(node, "Reshape", {bias, shape}, "_bias_reshape", DataType::float32);
    shaped->type.shape.reset();
    return shaped;
  }

  void drop_later(Value* value) {
    if (std::find(sources_.begin(), sources_.end(), value) == sources_.end()) sources_.push_back(value);
  }

  // The table as integers; the rows that were taken become float.
  Status gather(Node& node) {
    MK_TRY(const Weight table, weight(node.input(0), {}, false));
    Value* rows = op(node, "Gather", {table.quantized, node.input(1)}, "_quantized", type_);
    if (const Attribute* axis = node.attribute("axis")) rows->producer()->set_attribute(axis->clone());
    Value* result =
        op(node, "DequantizeLinear", {rows, table.scale, table.zero_point}, "_DequantizeLinear", DataType::float32);
    ++report_.dequantize_linear;
    replace(node, result);
    return {};
  }

  static void replace(Node& node, Value* result) {
    Graph& graph = *node.graph();
    Value* output = node.output(0);
    const std::string name = output->name();
    result->type = output->type;
    graph.replace_uses(output, result, /*outputs=*/true);
    graph.erase(&node);
    graph.rename(result, name);
  }

  Model& model_;
  const DynamicOptions& options_;
  DynamicReport report_;
  DataType type_ = DataType::uint8;
  std::unordered_map<const Value*, Activation> activations_;
  std::unordered_map<const Value*, std::vector<std::pair<WeightForm, Weight>>> weights_;
  std::vector<Value*> sources_;
};

}  // namespace

Result<DynamicReport> quantize_dynamic(Model& model, const DynamicOptions& options) {
  MK_CHECK(check_not_compiled(model));
  MK_CHECK(infer_shapes(model));
  MK_CHECK(fold_weight_constants(model));
  return DynamicQuantizer(model, options).run();
}

}  // namespace mk
