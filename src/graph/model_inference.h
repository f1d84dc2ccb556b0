#pragma once
// The run of shape inference over a model: graph by graph, node by node. See graph/shape_inference.h for its contract.

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "graph/node_facts.h"
#include "graph/onnx_operator.h"
#include "graph/shape_inference.h"
#include "graph/type_merge.h"

namespace mk {

class ModelInference final : public InferenceState {
 public:
  explicit ModelInference(Model& model);
  Result<InferenceReport> run();
  // One node, with nothing known but its inputs' types and constants. NodeInference's.
  Status run_on(Node& node);

  const KnownValue* value_of(const Value& value) override;
  const Tensor* tensor_of(const Value& value) override;
  const Attribute* resolve(const Attribute& attribute) const override;
  bool is_absent(const Value& value) const override { return absent_.contains(&value); }
  Result<std::vector<Type>> infer_subgraph(Graph& graph, std::span<const Type* const> inputs) override;

 private:
  // What names mean in the graph that is walked: the model's, or the body of a function that is called.
  struct Scope {
    const std::vector<std::pair<std::string, std::int64_t>>* opset_imports = nullptr;
    std::unordered_map<std::string_view, const Attribute*> bindings;  // of attribute references
    std::string path;                                                 // of the calls that lead here, for messages
    bool may_not_run = false;                                         // inside a sub-graph
  };

  Status infer_graph(Graph& graph);
  Status infer_node(Node& node);
  void infer_initializers(Graph& graph);
  Result<InferredTypes> infer_types(const NodeFacts& node);
  // Takes over the types; whether some of them are only declared.
  bool merge_outputs(Node& node, const std::vector<Type>& inferred);

  // Sub-graphs and functions: model_inference_calls.cpp.
  const Function* called_function(const Node& node) const;
  Result<InferredTypes> infer_call(const NodeFacts& call, const Function& function);
  void infer_remaining_subgraphs(const Node& node);
  const Graph* known_branch(const NodeFacts& node);
  void complete_loop(const NodeFacts& node, std::vector<Type>& outputs);

  void propagate(const NodeFacts& node);
  std::optional<KnownValue> propagated(const NodeFacts& node, const Type& type, std::size_t index);
  void remember_tensor(const NodeFacts& node);
  void forget(const Value& value);

  std::int64_t opset_of(std::string_view domain) const;
  std::string label(const Node& node) const;
  void note(const Node& node, std::string message);
  void note_once(const std::string& key, const Node& node, std::string message);

  Model& model_;
  std::unordered_map<std::string, const Function*> functions_;
  SchemaCache schemas_;
  SymbolNames symbols_;
  Scope scope_;
  InferenceReport report_;
  std::size_t contradictions_ = 0;
  bool names_dims_ = true;
  std::unordered_set<std::string> noted_;

  std::unordered_map<const Value*, std::optional<KnownValue>> values_;
  std::unordered_map<const Value*, const Tensor*> tensors_;  // of outputs of Constant and Identity, of bound inputs
  std::unordered_set<const Value*> absent_;
  std::unordered_set<const Value*> doubtful_;  // known by declarations only, or made from such values
  std::unordered_set<const Graph*> visited_;   // sub-graphs inferred for the node at hand
  std::deque<Tensor> made_;
  std::vector<const Function*> calls_;  // being inferred, outermost first
  std::uint64_t steps_left_ = 0;        // nodes; calls of calls of calls can be more than anyone has time for
  int depth_ = 0;                       // of sub-graphs and calls
};

}  // namespace mk
