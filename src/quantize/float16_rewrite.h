#pragma once
// Carries out a Float16Plan. Nothing here can fail.

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "quantize/float16_plan.h"

namespace mk {

class Float16Rewrite {
 public:
  Float16Rewrite(Model& model, const ElementTypes& types, const Float16Plan& plan, Float16Report& report)
      : model_(model), types_(types), plan_(plan), report_(report) {}
  void run();

 private:
  struct Forms {
    std::vector<std::pair<Graph*, Value*>> float16, float32;  // other forms of a value, by the graph they are in
  };

  void rewrite_graph(Graph& graph);
  void rewrite_node(Node& node);
  void rewrite_outputs(Graph& graph);
  void rewrite_attributes(Node& node);
  void rewrite_constant(Node& node);
  void rewrite_cast(Node& node);
  void drop_needless_casts();
  void retype(Graph& graph);
  void retype(Value& value);

  Value* form_for(Value* value, DataType type, Node& user);
  Value* exact_source(Value* value) const;
  Value* add_cast(Value* source, DataType type, const Value& named_after, Graph& graph, Node* before);
  Tensor narrowed(const Tensor& tensor, const std::string& name);
  DataType final_type(const Value& value) const;
  std::string node_name(const std::string& stem);

  Model& model_;
  const ElementTypes& types_;
  const Float16Plan& plan_;
  Float16Report& report_;
  std::unordered_map<const Value*, Forms> forms_;
  std::unordered_set<std::string> node_names_;  // ONNX Runtime refuses two of one name
  std::vector<Node*> needless_;                 // casts of what has their type already
};

}  // namespace mk
