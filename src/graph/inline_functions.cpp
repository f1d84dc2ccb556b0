#include "graph/inline_functions.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace mk {
namespace {

// Calls of calls of calls can be more than anyone has memory for.
constexpr std::size_t most_nodes = 1u << 20;
constexpr int deepest = 64;

std::string key_of(std::string_view domain, std::string_view name, std::string_view overload) {
  return std::string(domain == "ai.onnx" ? std::string_view() : domain) + '\n' + std::string(name) + '\n' +
         std::string(overload);
}

using Bindings = std::unordered_map<std::string_view, const Attribute*>;

// One call: its body's values, and what the attribute references of the body mean.
class CallCopier {
 public:
  CallCopier(Graph& graph, Node& call, const Function& function) : graph_(graph), call_(call) {
    for (const Attribute& attribute : function.attribute_defaults) bindings_[attribute.name] = &attribute;
    for (const Attribute& attribute : call.attributes()) bindings_[attribute.name] = &attribute;
    const std::string stem = call.name.empty() ? function.name : call.name;
    prefix_ = graph.unique_name(stem) + '/';
  }

  // The nodes that now stand before the call, which is gone.
  std::vector<Node*> run(const Function& function) {
    const Graph& body = *function.body;
    for (std::size_t i = 0; i < body.inputs().size(); ++i) map_[body.inputs()[i]] = call_.input(i);
    std::vector<Node*> nodes = copy_nodes(body, graph_, &call_);
    std::vector<Value*> outputs;
    for (std::size_t i = 0; i < body.outputs().size(); ++i) {
      Value* old = call_.output(i);
      if (!old) continue;
      Value* inner = mapped(body.outputs()[i]);
      const bool taken = !inner || inner->graph() != &graph_ || !inner->producer() || is_own_input(inner) ||
                         std::find(outputs.begin(), outputs.end(), inner) != outputs.end();
      if (taken) {
        inner = graph_.add_op("Identity", {inner}, prefix_ + old->name(), &call_);
        nodes.push_back(inner->producer());
      }
      inner->type = old->type;
      outputs.push_back(inner);
      graph_.replace_uses(old, inner, /*outputs=*/true);
    }
    std::vector<std::string> names;
    for (Value* old : call_.outputs()) {
      if (old) names.push_back(old->name());
    }
    graph_.erase(&call_);
    for (std::size_t i = 0; i < outputs.size(); ++i) graph_.rename(outputs[i], names[i]);
    return nodes;
  }

 private:
  bool is_own_input(const Value* value) const {
    return std::find(call_.inputs().begin(), call_.inputs().end(), value) != call_.inputs().end();
  }

  Value* mapped(Value* value) const {
    if (!value) return nullptr;
    const auto found = map_.find(value);
    return found == map_.end() ? value : found->second;
  }

  std::vector<Node*> copy_nodes(const Graph& from, Graph& into, Node* before) {
    for (const Node* node : from.nodes()) {
      for (Value* output : node->outputs()) {
        if (output) map_[output] = into.add_value(graph_.unique_name(prefix_ + output->name()), {});
      }
    }
    std::vector<Node*> nodes;
    for (const Node* node : from.nodes()) {
      std::vector<Value*> inputs;
      std::vector<Value*> outputs;
      for (Value* input : node->inputs()) inputs.push_back(mapped(input));
      for (Value* output : node->outputs()) outputs.push_back(mapped(output));
      while (!inputs.empty() && !inputs.back()) inputs.pop_back();
      Node* copy = into.add_node(node->op_type, std::move(inputs), std::move(outputs), before);
      if (!node->name.empty()) copy->name = prefix_ + node->name;
      copy->domain = node->domain;
      copy->overload = node->overload;
      copy->doc_string = node->doc_string;
      copy->metadata = node->metadata;
      copy->unknown_fields = node->unknown_fields;
      for (const Attribute& attribute : node->attributes()) copy_attribute(attribute, *copy);
      nodes.push_back(copy);
    }
    return nodes;
  }

  void copy_attribute(const Attribute& attribute, Node& into) {
    if (!attribute.reference.empty()) {
      const auto bound = bindings_.find(attribute.reference);
      if (bound == bindings_.end()) return;
      Attribute copy = bound->second->clone();
      copy.name = attribute.name;
      into.append_attribute(std::move(copy));
    } else if (const auto* one = std::get_if<std::unique_ptr<Graph>>(&attribute.value); one && *one) {
      Attribute copy(attribute.name, copy_graph(**one));
      copy.doc_string = attribute.doc_string;
      into.append_attribute(std::move(copy));
    } else {
      into.append_attribute(attribute.clone());
    }
  }

  std::unique_ptr<Graph> copy_graph(const Graph& from) {
    auto graph = std::make_unique<Graph>(from.name);
    graph->doc_string = from.doc_string;
    graph->metadata = from.metadata;
    graph->unknown_fields = from.unknown_fields;
    for (Value* value : from.initializers()) {
      Tensor tensor = *value->initializer();
      tensor.name = graph_.unique_name(prefix_ + value->name());
      map_[value] = graph->add_initializer(std::move(tensor));
    }
    for (Value* value : from.inputs()) {
      if (!value->initializer())
        map_[value] = graph->add_value(graph_.unique_name(prefix_ + value->name()), value->type);
      graph->mark_input(map_[value]);
    }
    copy_nodes(from, *graph, nullptr);
    for (Value* output : from.outputs()) {
      if (Value* value = mapped(output)) graph->mark_output(value);
    }
    return graph;
  }

  Graph& graph_;
  Node& call_;
  Bindings bindings_;
  std::string prefix_;
  std::unordered_map<const Value*, Value*> map_;
};

class ModelInliner {
 public:
  explicit ModelInliner(Model& model) : model_(model) {
    for (Function& function : model.functions)
      functions_.emplace(key_of(function.domain, function.name, function.overload), &function);
  }

  InliningReport run() {
    inline_graph(*model_.graph, 0);
    remove_uncalled();
    return report_;
  }

 private:
  const Function* called(const Node& node) const {
    const auto found = functions_.find(key_of(node.domain, node.op_type, node.overload));
    return found == functions_.end() ? nullptr : found->second;
  }

  // The operators of its body must mean the same in the model.
  bool agrees(const Function& function) const {
    return std::all_of(function.opset_imports.begin(), function.opset_imports.end(), [&](const auto& import) {
      const std::int64_t version = model_.opset(import.first);
      return version == 0 || version == import.second;
    });
  }

  // Whether the call gives and takes no more than the function has, and no output is an input that it leaves out.
  static bool accepts(const Function& function, const Node& call) {
    const Graph& body = *function.body;
    if (call.inputs().size() > body.inputs().size() || call.outputs().size() > body.outputs().size()) return false;
    for (std::size_t i = 0; i < body.inputs().size(); ++i) {
      if (!call.input(i) && body.inputs()[i]->is_graph_output()) return false;
    }
    return true;
  }

  void inline_graph(Graph& graph, int depth) {
    const std::vector<Node*> nodes(graph.nodes().begin(), graph.nodes().end());
    for (Node* node : nodes) inline_node(*node, depth);
  }

  void inline_node(Node& node, int depth) {
    for (Graph* body : node.subgraphs()) inline_graph(*body, depth);
    const Function* function = called(node);
    if (!function) return;
    const bool fits = accepts(*function, node);
    made_ += function->body->node_count();
    if (!fits || depth >= deepest || made_ > most_nodes || !agrees(*function)) {
      ++report_.left;
      return;
    }
    for (const auto& [domain, version] : function->opset_imports) {
      if (model_.opset(domain) == 0) model_.set_opset(domain, version);
    }
    ++report_.inlined;
    Graph& graph = *node.graph();
    for (Node* inner : CallCopier(graph, node, *function).run(*function)) inline_node(*inner, depth + 1);
  }

  void mark_called(Graph& graph, std::unordered_set<const Function*>& marked) const {
    for_each_node(graph, [&](const Node& node) {
      const Function* function = called(node);
      if (function && marked.insert(function).second) mark_called(*function->body, marked);
    });
  }

  void remove_uncalled() {
    std::unordered_set<const Function*> marked;
    mark_called(*model_.graph, marked);
    std::unordered_set<std::string> kept;
    for (const Function* function : marked) kept.insert(key_of(function->domain, function->name, function->overload));
    std::erase_if(model_.functions, [&](const Function& function) {
      return !kept.contains(key_of(function.domain, function.name, function.overload));
    });
  }

  Model& model_;
  std::unordered_map<std::string, const Function*> functions_;
  InliningReport report_;
  std::size_t made_ = 0;
};

}  // namespace

InliningReport inline_functions(Model& model) {
  if (model.functions.empty()) return {};
  return ModelInliner(model).run();
}

}  // namespace mk
