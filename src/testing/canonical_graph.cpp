#include "testing/canonical_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace mk::testing {
namespace {

class Canonical {
 public:
  std::string graph_text(const Graph& graph, const std::string& indent) {
    std::string outer = std::move(text_);
    std::string outer_indent = std::move(indent_);
    text_.clear();
    indent_ = indent;
    for (const Value* input : graph.inputs()) {
      names_[input] = graph.parent() ? fmt::format("arg{}", next_++) : input->name();
      text_ += fmt::format("{}input {} {}\n", indent_, names_[input], to_string(input->type));
    }
    std::string outputs;
    for (const Value* output : graph.outputs()) {
      const std::string value = name_of(output);
      outputs += fmt::format("{}output {} = {}\n", indent_, graph.parent() ? "_" : output->name(), value);
    }
    std::string result = std::move(text_) + outputs;
    text_ = std::move(outer);
    indent_ = std::move(outer_indent);
    return result;
  }

 private:
  std::string name_of(const Value* value) {
    if (!value) return "_";
    if (const auto known = names_.find(value); known != names_.end()) return known->second;
    std::string name;
    if (const Tensor* tensor = value->initializer()) {
      name = tensor_text(*tensor);
    } else if (const Node* node = value->producer()) {
      const std::string line = node_text(*node);
      name = fmt::format("%{}", next_++);
      text_ += fmt::format("{}{} = {}\n", indent_, name, line);
      for (const Value* output : node->outputs()) {
        if (output) names_[output] = fmt::format("{}.{}", name, output->output_index());
      }
    } else {
      name = value->name();
    }
    return names_.emplace(value, name).first->second;
  }

  std::string node_text(const Node& node) {
    std::string line =
        node.domain.empty() || node.domain == "ai.onnx" ? node.op_type : node.domain + '.' + node.op_type;
    line += '(';
    for (std::size_t i = 0; i < node.inputs().size(); ++i) line += (i ? ", " : "") + name_of(node.input(i));
    line += ')';
    std::vector<const Attribute*> attributes;
    for (const Attribute& attribute : node.attributes()) attributes.push_back(&attribute);
    std::sort(attributes.begin(), attributes.end(), [](auto* a, auto* b) { return a->name < b->name; });
    for (const Attribute* attribute : attributes) line += ' ' + attribute->name + '=' + attribute_text(*attribute);
    return line;
  }

  std::string attribute_text(const Attribute& attribute) {
    if (const auto* real = std::get_if<float>(&attribute.value)) return fmt::format("{:.6g}", *real);
    if (const auto* integer = std::get_if<std::int64_t>(&attribute.value)) return fmt::format("{}", *integer);
    if (const auto* text = std::get_if<std::string>(&attribute.value)) return *text;
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attribute.value)) {
      return fmt::format("[{}]", fmt::join(*list, ","));
    }
    if (const auto* list = std::get_if<std::vector<float>>(&attribute.value)) {
      return fmt::format("[{:.6g}]", fmt::join(*list, ","));
    }
    if (const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&attribute.value)) return tensor_text(**tensor);
    if (const auto* graph = std::get_if<std::unique_ptr<Graph>>(&attribute.value)) {
      return "{\n" + graph_text(**graph, indent_ + "  ") + indent_ + "}";
    }
    return "?";
  }

  static std::string tensor_text(const Tensor& tensor) {
    std::string values;
    if (const auto numbers = number_values(tensor)) {
      for (const double number : *numbers) values += fmt::format("{}{:.5g}", values.empty() ? "" : ",", number);
    }
    return fmt::format("{}{{{}}}", to_string(Type::tensor(tensor.type, static_shape(tensor.dims))), values);
  }

  std::unordered_map<const Value*, std::string> names_;
  std::string text_, indent_;
  int next_ = 0;
};

}  // namespace

std::string canonical_text(const Model& model) { return Canonical().graph_text(*model.graph, {}); }

}  // namespace mk::testing
