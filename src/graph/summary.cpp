#include "graph/summary.h"

#include <algorithm>
#include <array>

namespace mk {
namespace {

constexpr std::array<std::string_view, 17> quantized_operators{
    "QuantizeLinear",       "DequantizeLinear", "ConvInteger",        "MatMulInteger",
    "QLinearConv",          "QLinearMatMul",    "QLinearAdd",         "QLinearMul",
    "QLinearLeakyRelu",     "QLinearSigmoid",   "QLinearAveragePool", "QLinearGlobalAveragePool",
    "QLinearReduceMean",    "QLinearConcat",    "QLinearSoftmax",     "DynamicQuantizeLinear",
    "DynamicQuantizeMatMul"};

class Summarizer {
 public:
  explicit Summarizer(ModelSummary& summary) : summary_(summary) {}

  void add(const Graph& graph, bool main) {
    for (const Value* value : graph.initializers()) {
      ++summary_.initializers;
      add(*value->initializer());
    }
    for (const Node* node : graph.nodes()) {
      ++(main ? summary_.nodes : summary_.subgraph_nodes);
      ++operators_[{node->domain == "ai.onnx" ? "" : node->domain, node->op_type}];
      if (main && is_quantized_operator(node->op_type)) summary_.quantized = true;
      if (node->op_type == "EPContext") summary_.compiled = true;
      for (const Attribute& attribute : node->attributes()) {
        const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&attribute.value);
        if (tensor && *tensor && node->op_type == "Constant") {
          ++summary_.constants;
          add(**tensor);
        }
      }
      if (node->attributes().empty()) continue;
      for (const Graph* inner : node->subgraphs()) {
        ++summary_.subgraphs;
        add(*inner, false);
      }
    }
  }

  void finish() {
    for (const auto& [name, count] : operators_) summary_.operators.push_back({name.first, name.second, count});
    std::stable_sort(summary_.operators.begin(), summary_.operators.end(),
                     [](const auto& a, const auto& b) { return a.nodes > b.nodes; });
    for (const auto& [type, count] : weights_) {
      summary_.weights.push_back(count);
      summary_.weight_bytes += count.bytes;
    }
    std::stable_sort(summary_.weights.begin(), summary_.weights.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  }

 private:
  void add(const Tensor& tensor) {
    ModelSummary::TensorCount& count = weights_[tensor.type];
    count.type = tensor.type;
    ++count.tensors;
    if (!tensor.sparse.empty()) {
      count.bytes += tensor.sparse.size();
      return;
    }
    std::uint64_t bytes = tensor.byte_count();
    for (const std::string& text : tensor.strings) bytes += text.size();
    count.elements += tensor.element_count();
    count.bytes += bytes;
    const bool counted =
        tensor.type != DataType::int64 && tensor.type != DataType::boolean && tensor.type != DataType::string;
    if (counted) summary_.parameters += tensor.element_count();
    if (const std::string* location = find(tensor.external, "location")) {
      add_external(*location, bytes, tensor.data == nullptr);
    }
  }

  void add_external(const std::string& location, std::uint64_t bytes, bool missing) {
    const auto [found, is_new] = files_.try_emplace(location, summary_.external_files.size());
    if (is_new) summary_.external_files.push_back({location, 0, 0, false});
    ModelSummary::ExternalFile& file = summary_.external_files[found->second];
    ++file.tensors;
    file.bytes += bytes;
    file.missing = file.missing || missing;
  }

  ModelSummary& summary_;
  std::map<std::pair<std::string, std::string>, std::uint64_t> operators_;
  std::map<DataType, ModelSummary::TensorCount> weights_;
  std::map<std::string, std::size_t> files_;
};

}  // namespace

bool is_quantized_operator(std::string_view op_type) {
  return std::find(quantized_operators.begin(), quantized_operators.end(), op_type) != quantized_operators.end();
}

ModelSummary summarize(const Model& model) {
  ModelSummary summary;
  summary.ir_version = model.ir_version;
  summary.producer_name = model.producer_name;
  summary.producer_version = model.producer_version;
  summary.domain = model.domain;
  summary.model_version = model.model_version;
  summary.doc_string = model.doc_string;
  summary.opset_imports = model.opset_imports;
  summary.metadata = model.metadata;
  summary.graph_name = model.graph->name;
  for (const Value* input : model.graph->inputs()) {
    if (!input->initializer()) summary.inputs.push_back({input->name(), input->type});
  }
  for (const Value* output : model.graph->outputs()) summary.outputs.push_back({output->name(), output->type});
  for (const Function& function : model.functions) summary.functions.push_back(function.domain + "." + function.name);
  Summarizer summarizer(summary);
  summarizer.add(*model.graph, true);
  summarizer.finish();
  return summary;
}

}  // namespace mk
