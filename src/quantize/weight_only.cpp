#include "quantize/weight_only.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "graph/shape_inference.h"
#include "quantize/block_weights.h"
#include "quantize/qdq_constants.h"

namespace mk {
namespace {

Status check(const WeightOnlyOptions& options) {
  if (options.bits != 4 && options.bits != 8)
    return fail(ErrorCode::usage, std::to_string(options.bits) + " bits for weights", {}, "use 4 or 8");
  const std::int64_t size = options.block_size;
  if (size < 16 || size > (1 << 20) || (size & (size - 1)) != 0)
    return fail(ErrorCode::usage, "a block size of " + std::to_string(size), {}, "use 16, 32, 64, 128 or 256");
  if (options.accuracy_level < 0 || options.accuracy_level > 4)
    return fail(ErrorCode::usage, "an accuracy level of " + std::to_string(options.accuracy_level), {},
                "use 0 (unset), 1 (float32), 2 (float16), 3 (bfloat16) or 4 (int8)");
  return {};
}

// A packed weight, in the graph of the initializer that it comes from.
struct Packed {
  Value* packed = nullptr;
  Value* scales = nullptr;
  Value* zero_points = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

class WeightQuantizer {
 public:
  WeightQuantizer(Model& model, const WeightOnlyOptions& options) : model_(model), options_(options) {}

  Result<WeightOnlyReport> run() {
    MK_CHECK(walk(*model_.graph));
    for (Value* value : weights_) {
      if (value->is_unused()) {
        value->graph()->erase_unused(value);
      } else {
        report_.warnings.push_back("'" + value->name() + "' stays as it is too: other nodes read it");
        report_.bytes_after += value->initializer()->byte_count();
      }
    }
    if (report_.nodes_quantized > 0 && model_.opset("com.microsoft") == 0) model_.set_opset("com.microsoft", 1);
    if (report_.nodes_quantized == 0) report_.warnings.push_back("no node was quantized");
    return std::move(report_);
  }

 private:
  Status walk(Graph& graph) {
    const std::vector<Node*> nodes(graph.nodes().begin(), graph.nodes().end());
    for (Node* node : nodes) {
      for (Graph* inner : node->subgraphs()) MK_CHECK(walk(*inner));
      if (!node->domain.empty()) continue;
      const bool is_gemm = node->op_type == "Gemm";
      if (!is_gemm && node->op_type != "MatMul") continue;
      if (options_.exclude.matches(*node)) {
        skip(*node, "it is excluded");
        continue;
      }
      if (const std::string problem = problem_of(*node, is_gemm); !problem.empty()) {
        if (problem != "-") skip(*node, problem);
        continue;
      }
      MK_CHECK(quantize(*node, is_gemm));
    }
    return {};
  }

  void skip(const Node& node, std::string reason) {
    report_.skipped.push_back({node.label(), node.op_type, std::move(reason)});
  }

  // Why a node cannot be quantized: "" where it can be, "-" where there is nothing to say.
  std::string problem_of(const Node& node, bool is_gemm) const {
    const Tensor* weight = weight_tensor(node.input(1));
    if (!weight) return weight_tensor(node.input(0)) ? "its constant is the left operand" : "-";
    const std::string& name = weight->name;
    if (weight->type != DataType::float32 && weight->type != DataType::float16)
      return "the weight '" + name + "' is " + std::string(name_of(weight->type));
    if (weight->element_count() == 0 || !weight->data) return "the weight '" + name + "' is empty";
    if (weight->dims.size() < 2) return "the weight '" + name + "' is no matrix";
    if (is_gemm && node.integer("transA", 0) != 0) return "its left operand is transposed";
    if (is_gemm && !std::isfinite(node.real("alpha", 1))) return "its alpha is not finite";
    const std::size_t leading = weight->dims.size() - 2;
    for (std::size_t i = 0; i < leading; ++i)
      if (weight->dims[i] != 1) return "the weight '" + name + "' is a batch of matrices";
    const Type& type = node.input(0)->type;
    const bool known = type.is_tensor() && type.shape && type.shape->size() >= weight->dims.size();
    if (leading > 0 && !known) return "the weight '" + name + "' has more dimensions than the data may have";
    if (type.is_tensor() && type.shape && type.shape->size() == 1) return "its data is a vector";
    return {};
  }

  Status quantize(Node& node, bool is_gemm) {
    Graph& graph = *node.graph();
    const bool is_transposed = is_gemm && node.integer("transB", 0) != 0;
    MK_TRY(const Packed weight, packed(node.input(1), is_transposed, is_gemm ? node.real("alpha", 1) : 1));
    Value* output = node.output(0);
    Value* bias = is_gemm && node.real("beta", 1) != 0 ? node.input(2) : nullptr;
    Value* product = graph.add_value(graph.unique_name(output->name() + "_product"), output->type);
    std::vector<Value*> inputs{node.input(0), weight.packed, weight.scales};
    if (weight.zero_points) inputs.push_back(weight.zero_points);
    Node* made = graph.add_node("MatMulNBits", std::move(inputs), {product}, &node);
    made->name = node.name.empty() ? "" : node.name + "_Q" + std::to_string(options_.bits);
    made->domain = "com.microsoft";
    made->metadata = node.metadata;
    made->doc_string = node.doc_string;
    made->set_attribute({"K", weight.rows});
    made->set_attribute({"N", weight.columns});
    made->set_attribute({"bits", options_.bits});
    made->set_attribute({"block_size", options_.block_size});
    if (options_.accuracy_level > 0) made->set_attribute({"accuracy_level", options_.accuracy_level});
    Value* result = product;
    if (bias) {
      MK_TRY(Value * scaled, scaled_bias(bias, node));
      result = graph.add_op("Add", {product, scaled}, output->name() + "_sum", &node);
      result->type = output->type;
      result->producer()->name = node.name.empty() ? "" : node.name + "_bias";
      result->producer()->metadata = node.metadata;
    }
    const std::string name = output->name();
    graph.replace_uses(output, result, /*outputs=*/true);
    graph.erase(&node);
    graph.rename(result, name);
    if (bias && bias->is_unused() && bias->initializer()) bias->graph()->erase_unused(bias);
    ++report_.nodes_quantized;
    return {};
  }

  // beta * bias.
  Result<Value*> scaled_bias(Value* bias, Node& node) {
    const float beta = node.real("beta", 1);
    if (beta == 1) return bias;
    Graph& graph = *node.graph();
    const DataType type = node.input(1)->initializer() ? node.input(1)->initializer()->type : DataType::float32;
    Tensor factor = scalar_tensor(graph.unique_name(bias->name() + "_beta"), beta);
    factor.data = cast(factor.data, DataType::float32, type);
    factor.type = type;
    Value* scale = graph.add_initializer(std::move(factor));
    Value* scaled = graph.add_op("Mul", {bias, scale}, bias->name() + "_scaled", &node);
    scaled->type = bias->type;
    return scaled;
  }

  Result<Packed> packed(Value* value, bool is_transposed, float factor) {
    for (const Entry& entry : entries_[value])
      if (entry.is_transposed == is_transposed && entry.factor == factor) return entry.packed;
    const Tensor& tensor = *value->initializer();
    const BlockFormat format{options_.bits, static_cast<std::uint64_t>(options_.block_size), options_.symmetric};
    MK_TRY(BlockWeight made, pack_blocks(tensor, is_transposed, format));
    if (factor != 1) MK_CHECK(multiply(made.scales, factor));
    Graph& graph = *value->graph();
    const auto add = [&](Tensor& part, const std::string& suffix) {
      part.name = graph.unique_name(value->name() + suffix);
      report_.bytes_after += part.byte_count();
      const Type type = Type::tensor(part.type, static_shape(part.dims));
      Value* added = graph.add_initializer(std::move(part));
      added->type = type;
      return added;
    };
    Packed result;
    const std::size_t rank = tensor.dims.size();
    result.rows = tensor.dims[rank - (is_transposed ? 1 : 2)];
    result.columns = tensor.dims[rank - (is_transposed ? 2 : 1)];
    result.packed = add(made.packed, "_Q" + std::to_string(options_.bits));
    result.scales = add(made.scales, "_scales");
    if (made.zero_points.data) result.zero_points = add(made.zero_points, "_zero_points");
    entries_[value].push_back({is_transposed, factor, result});
    if (entries_[value].size() == 1) {
      weights_.push_back(value);
      report_.bytes_before += tensor.byte_count();
      ++report_.weights;
    }
    return result;
  }

  static Status multiply(Tensor& scales, float factor) {
    MK_TRY(const auto values, number_values(scales));
    std::vector<float> products;
    for (const double value : values) products.push_back(static_cast<float>(value) * factor);
    scales.data = cast(owned_values(products), DataType::float32, scales.type);
    return {};
  }

  struct Entry {
    bool is_transposed;
    float factor;
    Packed packed;
  };

  Model& model_;
  const WeightOnlyOptions& options_;
  WeightOnlyReport report_;
  std::unordered_map<const Value*, std::vector<Entry>> entries_;
  std::vector<Value*> weights_;
};

}  // namespace

Result<WeightOnlyReport> quantize_weights_only(Model& model, const WeightOnlyOptions& options) {
  MK_CHECK(check(options));
  MK_CHECK(check_not_compiled(model));
  MK_CHECK(infer_shapes(model));
  MK_CHECK(fold_weight_constants(model));
  return WeightQuantizer(model, options).run();
}

}  // namespace mk
