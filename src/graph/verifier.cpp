#include "graph/verifier.h"

#include <array>
#include <set>
#include <tuple>
#include <unordered_set>

namespace mk {
namespace {

using Kind = Attribute::Kind;
using Opsets = std::vector<std::pair<std::string, std::int64_t>>;

// The alternative of Attribute::Payload by the number of the kind; 0 is none, what is kept raw.
constexpr std::array<std::size_t, 15> alternatives{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0, 0};
static_assert(static_cast<std::size_t>(Kind::types) + 1 == alternatives.size());

bool kind_agrees(const Attribute& attribute) {
  const auto number = static_cast<std::size_t>(attribute.kind);
  if (number >= alternatives.size()) return false;
  return attribute.value.index() == (attribute.reference.empty() ? alternatives[number] : 0);
}

std::string_view canonical(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

class Verifier {
 public:
  explicit Verifier(const Opsets& opsets, bool in_function) : in_function_(in_function) {
    for (const auto& [domain, version] : opsets) domains_.insert(canonical(domain));
  }

  Status check_root(const Graph& graph) {
    if (graph.parent()) return error("a model's or function's graph has a parent", graph);
    MK_CHECK(check(graph));
    if (uses_listed_ != uses_found_) return error("uses are listed that no node has", graph);
    return {};
  }

 private:
  tl::unexpected<Error> error(std::string message, const Graph& graph, std::string hint = {}) const {
    return fail(ErrorCode::malformed, std::move(message), "graph " + graph.name, std::move(hint));
  }
  tl::unexpected<Error> error(std::string message, const Node& node, std::string hint = {}) const {
    return fail(ErrorCode::malformed, std::move(message), "node " + node.label(), std::move(hint));
  }

  Status check(const Graph& graph) {
    for (const Value* value : graph.initializers()) MK_CHECK(check_initializer(graph, *value));
    for (const Value* value : graph.inputs()) {
      if (!value->is_graph_input()) return error("the input " + value->name() + " does not know that it is one", graph);
      if (!value->initializer()) MK_CHECK(check_owned(graph, *value));
    }
    for (const Node* node : graph.nodes()) MK_CHECK(check(graph, *node));
    for (const Value* value : graph.outputs()) {
      if (value->graph() != &graph) {
        return error("the output " + value->name() + " is a value of another graph", graph,
                     "Return it through an Identity node");
      }
      if (!is_defined(*value)) return error("nothing defines the output " + value->name(), graph);
      if (!value->is_graph_output()) return error("the output " + value->name() + " does not know that it is", graph);
    }
    return {};
  }

  Status check_owned(const Graph& graph, const Value& value) {
    if (value.graph() != &graph || graph.find(value.name()) != &value) {
      return error("the value " + value.name() + " is not where its name is looked up", graph);
    }
    uses_listed_ += value.uses().size();
    return {};
  }

  Status check_initializer(const Graph& graph, const Value& value) {
    MK_CHECK(check_owned(graph, value));
    const Tensor* tensor = value.initializer();
    const auto wrong = [&](std::string message) {
      return fail(ErrorCode::malformed, std::move(message), "tensor " + value.name());
    };
    if (!tensor || value.producer()) return wrong("not an initializer, or also the output of a node");
    if (tensor->name != value.name()) return wrong("its tensor is called " + tensor->name);
    if (!is_known(tensor->type)) return wrong("no element type");
    if (!tensor->sparse.empty()) return {};
    if (tensor->type == DataType::string) {
      if (tensor->strings.size() != tensor->element_count()) return wrong("another number of strings than its shape");
      return {};
    }
    if (!tensor->data) {
      if (tensor->external.empty()) return wrong("no data");
      return {};
    }
    if (tensor->data->size() != tensor->byte_count()) {
      return wrong(std::to_string(tensor->data->size()) + " bytes of data where its shape says " +
                   std::to_string(tensor->byte_count()));
    }
    return {};
  }

  bool is_defined(const Value& value) const {
    if (value.producer()) return defined_.contains(value.producer());
    return value.is_graph_input() || value.initializer();
  }

  static bool in_scope(const Graph& graph, const Value& value) {
    const Graph* scope = &graph;
    while (scope && scope != value.graph()) scope = scope->outer();
    return scope != nullptr;
  }

  Status check(const Graph& graph, const Node& node) {
    if (node.graph() != &graph) return error("the node is of another graph", node);
    if (node.op_type.empty()) return error("no operator", node);
    if (!domains_.contains(canonical(node.domain))) {
      return error("the domain \"" + node.domain + "\" of " + node.op_type + " is not imported", node,
                   "Add it to the opset imports");
    }
    for (const Value* input : node.inputs()) {
      if (!input) continue;
      ++uses_found_;
      if (!in_scope(graph, *input)) return error("the input " + input->name() + " is not in scope", node);
      if (!is_defined(*input)) {
        return error("the input " + input->name() + " is not defined before the node", node,
                     "Nodes must be in topological order");
      }
    }
    if (!node.uses_agree()) return error("its inputs do not list it among their uses", node);
    MK_CHECK(check_attributes(node));
    for (std::size_t i = 0; i < node.outputs().size(); ++i) {
      if (const Value* output = node.outputs()[i]) MK_CHECK(check_output(graph, node, i, *output));
    }
    defined_.insert(&node);
    return {};
  }

  Status check_output(const Graph& graph, const Node& node, std::size_t index, const Value& output) {
    MK_CHECK(check_owned(graph, output));
    if (output.producer() != &node || output.output_index() != index) {
      return error("the output " + output.name() + " has another producer", node);
    }
    if (output.is_graph_input() || output.initializer()) {
      return error("the output " + output.name() + " is an input or initializer too", node);
    }
    if (graph.outer() && graph.outer()->resolve(output.name())) {
      return error("the output " + output.name() + " has the name of a value outside the sub-graph", node,
                   "Rename one of them");
    }
    return {};
  }

  Status check_attributes(const Node& node) {
    std::unordered_set<std::string_view> names;
    for (const Attribute& attribute : node.attributes()) {
      if (attribute.name.empty()) return error("an attribute without a name", node);
      if (node.attributes().size() > 1 && !names.insert(attribute.name).second) {
        return error("the attribute " + attribute.name + " is there twice", node);
      }
      if (!kind_agrees(attribute))
        return error("the attribute " + attribute.name + " has a value of another kind", node);
      if (!attribute.reference.empty() && !in_function_) {
        return error("the attribute " + attribute.name + " refers to " + attribute.reference + " outside a function",
                     node);
      }
    }
    for (const Graph* inner : node.subgraphs()) {
      if (inner->parent() != &node) return error("a sub-graph has another parent", node);
      MK_CHECK(check(*inner));
    }
    return {};
  }

  bool in_function_;
  std::unordered_set<std::string_view> domains_;
  std::unordered_set<const Node*> defined_;
  std::uint64_t uses_listed_ = 0;
  std::uint64_t uses_found_ = 0;
};

}  // namespace

Status verify(const Model& model) {
  MK_CHECK(Verifier(model.opset_imports, /*in_function=*/false).check_root(*model.graph));
  std::set<std::tuple<std::string_view, std::string_view, std::string_view>> functions;
  for (const Function& function : model.functions) {
    const std::string place = "function " + function.domain + "." + function.name;
    if (function.name.empty() || !function.body) return fail(ErrorCode::malformed, "no name or no body", place);
    if (!functions.emplace(canonical(function.domain), function.name, function.overload).second) {
      return fail(ErrorCode::malformed, "there are two of this function", place);
    }
    Status body = Verifier(function.opset_imports, /*in_function=*/true).check_root(*function.body);
    if (!body) {
      Error error = std::move(body).error();
      error.where = place + ", " + error.where;
      return tl::make_unexpected(std::move(error));
    }
  }
  return {};
}

}  // namespace mk
