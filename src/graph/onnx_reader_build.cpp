// Drafts to graphs: names become values.

#include <unordered_set>

#include "graph/onnx_reader_parts.h"

namespace mk {
namespace {

bool agrees(const Type& declared, const Type& actual) {
  if (!declared.is_tensor() || declared.element != actual.element) return false;
  if (!declared.shape) return true;
  if (declared.shape->size() != actual.shape->size()) return false;
  for (std::size_t i = 0; i < actual.shape->size(); ++i) {
    const Dim& dim = (*declared.shape)[i];
    if (dim.is_known() && dim.value != (*actual.shape)[i].value) return false;
  }
  return true;
}

// Where a value is declared more than once, what came first stays.
void add_facts(Value& value, ValueDraft draft) {
  if (value.type.kind == Type::Kind::none) value.type = std::move(draft.type);
  if (value.doc_string.empty()) value.doc_string = std::move(draft.doc_string);
  if (value.metadata.empty()) value.metadata = std::move(draft.metadata);
  if (value.unknown_fields.empty()) value.unknown_fields = std::move(draft.unknown_fields);
}

class GraphBuilder {
 public:
  GraphBuilder(ReadContext& context, GraphDraft draft, Graph& graph)
      : context_(context), draft_(std::move(draft)), graph_(graph) {}

  Status build() {
    graph_.name = std::move(draft_.name);
    graph_.doc_string = std::move(draft_.doc_string);
    graph_.metadata = std::move(draft_.metadata);
    graph_.unknown_fields = std::move(draft_.unknown_fields);
    for (Tensor& tensor : draft_.initializers) MK_CHECK(add_initializer(std::move(tensor)));
    for (ValueDraft& input : draft_.inputs) MK_CHECK(add_input(std::move(input)));
    outputs_.resize(draft_.nodes.size());
    for (std::size_t i = 0; i < draft_.nodes.size(); ++i) MK_CHECK(add_results(draft_.nodes[i], outputs_[i]));
    for (ValueDraft& output : draft_.outputs) MK_CHECK(add_output(std::move(output)));
    for (ValueDraft& fact : draft_.values) {
      if (Value* value = graph_.find(fact.name)) add_facts(*value, std::move(fact));
    }
    for (std::size_t i = 0; i < draft_.nodes.size(); ++i) {
      MK_CHECK(add_node(std::move(draft_.nodes[i]), std::move(outputs_[i])));
    }
    return {};
  }

  bool out_of_order() const { return out_of_order_; }

 private:
  tl::unexpected<Error> error(std::string message, const std::string& place, std::string hint = {}) const {
    return fail(ErrorCode::malformed, std::move(message), context_.file + ", " + place, std::move(hint));
  }
  std::string here() const { return "graph " + graph_.name; }

  Status add_initializer(Tensor tensor) {
    if (tensor.name.empty()) return error("an initializer without a name", here());
    if (graph_.find(tensor.name)) return error("two initializers named " + tensor.name, here());
    graph_.add_initializer(std::move(tensor));
    return {};
  }

  Status add_input(ValueDraft input) {
    if (input.name.empty()) return error("a graph input without a name", here());
    Value* value = graph_.find(input.name);
    if (!value) {
      value = graph_.add_input(input.name, {});
      add_facts(*value, std::move(input));
      return {};
    }
    if (value->is_graph_input()) return error("two graph inputs named " + input.name, here());
    graph_.mark_input(value);
    if (agrees(input.type, value->type)) {
      value->type = std::move(input.type);
    } else if (input.type.kind != Type::Kind::none) {
      context_.warn("declared input", "graph input " + input.name + " is declared as " + to_string(input.type) +
                                          " but its initializer is " + to_string(value->type) +
                                          ": the initializer is right");
    }
    add_facts(*value, std::move(input));
    return {};
  }

  static std::string label(const NodeDraft& node) {
    if (!node.name.empty()) return "node " + node.name;
    for (const std::string& output : node.outputs) {
      if (!output.empty()) return "node " + node.op_type + " -> " + output;
    }
    return "node " + node.op_type;
  }

  Status add_results(const NodeDraft& node, std::vector<Value*>& results) {
    results.reserve(node.outputs.size());
    for (const std::string& output : node.outputs) {
      if (!output.empty() && graph_.find(output)) return error("the name " + output + " is defined twice", label(node));
      results.push_back(output.empty() ? nullptr : graph_.add_value(output));
    }
    return {};
  }

  Status add_output(ValueDraft output) {
    Value* value = output.name.empty() ? nullptr : graph_.find(output.name);
    if (!value) {
      return error("nothing in the graph defines its output \"" + output.name + "\"", here(),
                   graph_.resolve(output.name) ? "A sub-graph returns an outer value through an Identity node" : "");
    }
    graph_.mark_output(value);
    add_facts(*value, std::move(output));
    return {};
  }

  Status add_node(NodeDraft draft, std::vector<Value*> results) {
    std::vector<Value*> inputs;
    inputs.reserve(draft.inputs.size());
    for (const std::string& input : draft.inputs) {
      Value* value = input.empty() ? nullptr : graph_.resolve(input);
      if (!input.empty() && !value) {
        return error("the input " + input + " is not defined by any node, input or initializer", label(draft));
      }
      if (value && !value->producer() && !value->is_graph_input() && !value->initializer()) out_of_order_ = true;
      inputs.push_back(value);
    }
    const std::string place = draft.attributes.empty() ? std::string() : label(draft);
    Node* node = graph_.add_node(std::move(draft.op_type), std::move(inputs), std::move(results));
    node->name = std::move(draft.name);
    node->domain = std::move(draft.domain);
    node->overload = std::move(draft.overload);
    node->doc_string = std::move(draft.doc_string);
    node->metadata = std::move(draft.metadata);
    node->unknown_fields = std::move(draft.unknown_fields);
    std::unordered_set<std::string> names;
    for (Attribute& attribute : draft.attributes) {
      if (draft.attributes.size() > 1 && !names.insert(attribute.name).second) {
        return error("the attribute " + attribute.name + " is there twice", place);
      }
      node->append_attribute(std::move(attribute));
    }
    if (draft.subgraphs.empty()) return {};
    const std::vector<Graph*> graphs = node->subgraphs();
    for (std::size_t i = 0; i < graphs.size(); ++i) {
      GraphBuilder inner(context_, std::move(*draft.subgraphs[i]), *graphs[i]);
      MK_CHECK(inner.build());
      out_of_order_ = out_of_order_ || inner.out_of_order_;
    }
    return {};
  }

  ReadContext& context_;
  GraphDraft draft_;
  Graph& graph_;
  std::vector<std::vector<Value*>> outputs_;
  bool out_of_order_ = false;
};

}  // namespace

Status build_graph(ReadContext& context, GraphDraft draft, Graph& graph) {
  GraphBuilder builder(context, std::move(draft), graph);
  MK_CHECK(builder.build());
  if (!builder.out_of_order()) return {};
  if (Status sorted = graph.sort(); !sorted) {
    Error error = std::move(sorted).error();
    error.where = context.file + ", " + error.where;
    return tl::make_unexpected(std::move(error));
  }
  context.warn("order", "the nodes of graph " + graph.name + " were not in topological order: sorted");
  return {};
}

}  // namespace mk
