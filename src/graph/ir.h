#pragma once
// The IR: a Model owns a Graph of Nodes and Values, with the same vocabulary as ONNX. Values know their producer and
// their uses, those captured by sub-graphs included. Nodes are kept in an order that is topological in a valid graph.
//
// Pointers to nodes and values stay valid until they are erased. Not thread-safe. A graph that captures values of
// another (a sub-graph, attached or not) must be gone before those values are.

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "graph/tensor.h"
#include "graph/type.h"

namespace mk {

class Graph;
class Node;

using Metadata = std::vector<std::pair<std::string, std::string>>;  // metadata_props, in order
const std::string* find(const Metadata& metadata, std::string_view key);
void set(Metadata& metadata, std::string_view key, std::string value);

struct Use {
  Node* node = nullptr;
  std::uint32_t input = 0;  // index among the node's inputs
  bool operator==(const Use&) const = default;
};

// A value of a graph: an input, an initializer, or an output of a node.
class Value {
 public:
  const std::string& name() const { return name_; }
  Graph* graph() const { return graph_; }
  Node* producer() const { return producer_; }  // null for inputs and initializers
  std::uint32_t output_index() const { return output_index_; }
  const std::vector<Use>& uses() const { return uses_; }  // of nodes here and in sub-graphs, in no particular order
  const Tensor* initializer() const { return initializer_.get(); }
  Tensor* initializer() { return initializer_.get(); }
  bool is_graph_input() const { return is_input_; }
  bool is_graph_output() const { return output_uses_ > 0; }
  bool is_unused() const { return uses_.empty() && output_uses_ == 0; }

  Type type;  // kind none where it is not known
  std::string doc_string;
  Metadata metadata;
  std::string unknown_fields;  // of its ValueInfoProto

 private:
  friend class Graph;
  friend class Node;
  void add_use(Node* node, std::uint32_t input);
  void remove_use(Node* node, std::uint32_t input);
  std::string name_;
  Graph* graph_ = nullptr;
  Node* producer_ = nullptr;
  std::uint32_t output_index_ = 0;
  std::vector<Use> uses_;
  std::unique_ptr<Tensor> initializer_;
  bool is_input_ = false;
  std::uint32_t output_uses_ = 0;
};

// An attribute of a node. Alternatives as in onnx.AttributeProto; `reference` is ref_attr_name in a function's body.
struct Attribute {
  enum class Kind : std::int32_t {
    undefined = 0,
    real = 1,
    integer = 2,
    string = 3,
    tensor = 4,
    graph = 5,
    reals = 6,
    integers = 7,
    strings = 8,
    tensors = 9,
    graphs = 10,
    sparse_tensor = 11,
    sparse_tensors = 12,
    type = 13,
    types = 14,
  };
  using Payload =
      std::variant<std::monostate, float, std::int64_t, std::string, std::shared_ptr<const Tensor>,
                   std::unique_ptr<Graph>, std::vector<float>, std::vector<std::int64_t>, std::vector<std::string>,
                   std::vector<std::shared_ptr<const Tensor>>, std::vector<std::unique_ptr<Graph>>>;

  std::string name;
  Kind kind = Kind::undefined;
  Payload value;
  std::string reference;  // ref_attr_name
  std::string doc_string;
  std::string raw;  // wire bytes: sparse tensors, types and unknown fields

  Attribute() = default;
  Attribute(std::string key, float content);
  Attribute(std::string key, std::int64_t content);
  Attribute(std::string key, int content) : Attribute(std::move(key), static_cast<std::int64_t>(content)) {}
  Attribute(std::string key, std::string content);
  Attribute(std::string key, const char* content) : Attribute(std::move(key), std::string(content)) {}
  Attribute(std::string key, Tensor content);
  Attribute(std::string key, std::vector<float> content);
  Attribute(std::string key, std::vector<std::int64_t> content);
  Attribute(std::string key, std::vector<std::string> content);
  Attribute(std::string key, std::unique_ptr<Graph> content);
  Attribute(Attribute&&) noexcept;
  Attribute& operator=(Attribute&&) noexcept;
  ~Attribute();

  // Deep, sub-graphs too; tensors are shared. A cloned sub-graph captures the same outer values.
  Attribute clone() const;
};

class Node {
 public:
  std::string name;
  std::string op_type;
  std::string domain;    // "" is ai.onnx
  std::string overload;  // of a model-local function
  std::string doc_string;
  Metadata metadata;
  std::string unknown_fields;

  Graph* graph() const { return graph_; }
  const std::vector<Value*>& inputs() const { return inputs_; }    // null where an optional one is absent
  const std::vector<Value*>& outputs() const { return outputs_; }  // null where an optional one is absent
  Value* input(std::size_t i) const { return i < inputs_.size() ? inputs_[i] : nullptr; }
  Value* output(std::size_t i) const { return i < outputs_.size() ? outputs_[i] : nullptr; }
  const std::vector<Attribute>& attributes() const { return attributes_; }
  std::vector<Attribute>& attributes() { return attributes_; }  // graphs enter and leave by the functions below
  const Attribute* attribute(std::string_view name) const;
  void set_attribute(Attribute attribute);     // replaces one of that name
  void append_attribute(Attribute attribute);  // where the caller knows that the name is new
  void erase_attribute(std::string_view name);
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  float real(std::string_view name, float otherwise) const;
  std::string string(std::string_view name, std::string_view otherwise) const;
  const std::vector<std::int64_t>* integers(std::string_view name) const;  // null where there is none
  std::vector<Graph*> subgraphs() const;
  // "name", or "op_type -> first output" where it has none: what messages call it.
  std::string label() const;
  // Whether the lists of uses of its inputs have it; false is a fault in this file's code.
  bool uses_agree() const;

  void set_input(std::size_t i, Value* value);  // grows the list; keeps uses right
  void resize_inputs(std::size_t count);

 private:
  friend class Graph;
  friend class Value;
  Node() = default;
  void adopt(Attribute& attribute);
  void drop_uses(bool captured_only);
  Graph* graph_ = nullptr;
  std::vector<Value*> inputs_;
  std::vector<std::uint32_t> use_slots_;  // where each input's Use stands in its value's list
  std::vector<Value*> outputs_;
  std::vector<Attribute> attributes_;
  std::list<Node*>::iterator position_;
  std::size_t slot_ = 0;  // in Graph::nodes_
};

class Graph {
 public:
  explicit Graph(std::string graph_name = {}) : name(std::move(graph_name)) {}
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  std::string name;
  std::string doc_string;
  Metadata metadata;
  std::string unknown_fields;  // sparse initializers and quantization annotations are kept here too

  Node* parent() const { return parent_; }  // the node whose attribute holds this sub-graph; null for a model's graph
  Graph* outer() const { return parent_ ? parent_->graph() : nullptr; }

  const std::list<Node*>& nodes() const { return order_; }
  std::size_t node_count() const { return order_.size(); }
  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  const std::vector<Value*>& initializers() const { return initializers_; }  // in the file's order

  // This graph's own value of that name (not an outer one); null where there is none.
  Value* find(std::string_view name) const;
  // The same, then outer graphs from the inside out.
  Value* resolve(std::string_view name) const;

  // A name that no value here, in an outer graph or in a sub-graph of one has: `stem`, else `stem_1`, `stem_2` ...
  std::string unique_name(std::string_view stem);

  // `name` must be new in this graph; an empty name is given one.
  Value* add_value(std::string name, Type type = {});
  Value* add_input(std::string name, Type type);
  Value* add_initializer(Tensor tensor);              // its name is the value's
  void set_initializer(Value* value, Tensor tensor);  // of a value without producer; the tensor takes its name
  void remove_initializer(Value* value);              // the value stays, with its type
  void mark_input(Value* value);
  void mark_output(Value* value);  // appends; a value may be listed more than once
  void set_output(std::size_t index, Value* value);
  void rename(Value* value, std::string name);

  // A node with its outputs already made as values (null: absent). Appended, or put before another node.
  Node* add_node(std::string op_type, std::vector<Value*> inputs, std::vector<Value*> outputs, Node* before = nullptr);
  // The usual case: one new output, named `output_name` (made unique).
  Value* add_op(std::string op_type, std::vector<Value*> inputs, std::string_view output_name, Node* before = nullptr);
  void move_before(Node* node, Node* before);

  // Every use of `from` (graph outputs only where `outputs` says so: they then have the name of `to`) becomes a use of
  // `to`.
  void replace_uses(Value* from, Value* to, bool outputs = false);
  // The node goes; its outputs go with it where nothing uses them (they must not be used by nodes or as graph outputs).
  void erase(Node* node);
  void erase_unused(Value* value);  // an input, an initializer or a value without producer that nothing uses

  // Puts nodes, those of sub-graphs too, into a topological order. One that is so already stays as it is.
  // malformed, naming a node of the cycle.
  Status sort();

 private:
  friend class Node;
  friend class Value;
  bool tree_has(std::string_view name) const;
  void retarget_outputs(Value* from, Value* to);
  Node* parent_ = nullptr;
  std::vector<Graph*> children_;  // sub-graphs of the nodes here
  std::vector<std::unique_ptr<Node>> nodes_;
  std::list<Node*> order_;
  std::unordered_map<std::string_view, std::unique_ptr<Value>> values_;  // keys view the values' own names
  std::vector<Value*> inputs_;
  std::vector<Value*> outputs_;
  std::vector<Value*> initializers_;
  std::unordered_map<std::string, std::uint64_t> next_suffix_;  // by stem; of a model's graph
};

// Deep; tensors are shared. Values captured from outer graphs are captured again.
std::unique_ptr<Graph> clone(const Graph& graph);

// A model-local function (onnx.FunctionProto). Its body is a graph whose attribute references stay references.
struct Function {
  std::string name;
  std::string domain;
  std::string overload;
  std::string doc_string;
  std::vector<std::string> attribute_names;
  std::vector<Attribute> attribute_defaults;
  std::vector<std::pair<std::string, std::int64_t>> opset_imports;
  std::unique_ptr<Graph> body;
  Metadata metadata;
  std::string unknown_fields;
};

// `external_locations`: the external data files that the model named when it was read, as it named them.
struct Model {
  std::int64_t ir_version = 10;
  std::vector<std::pair<std::string, std::int64_t>> opset_imports;  // domain, version; "" is ai.onnx
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::int64_t model_version = 0;
  std::string doc_string;
  Metadata metadata;
  std::vector<Function> functions;
  std::string unknown_fields;  // training_info and device configurations too
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  std::vector<std::string> external_locations;

  // Version of a domain ("" and "ai.onnx" are the same); 0 where it is not imported.
  std::int64_t opset(std::string_view domain = {}) const;
  void set_opset(std::string_view domain, std::int64_t version);
};

std::unique_ptr<Model> clone(const Model& model);

// Calls `visit(Node&)` for every node of the graph and of its sub-graphs, outer before inner.
template <typename Visit>
void for_each_node(Graph& graph, Visit&& visit) {
  for (Node* node : graph.nodes()) {
    visit(*node);
    for (Graph* inner : node->subgraphs()) for_each_node(*inner, visit);
  }
}

}  // namespace mk
