#pragma once
// Element types of all values of a model, from the type constraints of its operators alone: much less work than shape
// inference, which is asked only where these do not say enough (sequences, operators of other domains).

#include <unordered_map>

#include "base/result.h"
#include "graph/ir.h"
#include "graph/operator_types.h"

namespace mk {

class ElementTypes {
 public:
  explicit ElementTypes(Model& model) : model_(model) {}

  // Nodes must be in topological order. The types that values have are taken where nothing else says them.
  void infer();

  // Of a tensor; undefined for sequences and the like, and where it is not known.
  DataType of(const Value& value) const;
  DataType of(const Value* value) const { return value ? of(*value) : DataType::undefined; }
  bool is_float32(const Value* value) const { return of(value) == DataType::float32; }

  // Of an operator of ai.onnx at the model's opset; null where it has no schema.
  const OperatorTypes* schema(const Node& node);

 private:
  void infer_graph(const Graph& graph);
  void infer_node(const Node& node);
  void infer_by_schema(const Node& node, const OperatorTypes& schema);
  void infer_bodies(const Node& node);
  void set(const Value* value, DataType type);
  DataType stated(const Node& node, std::size_t output);

  Model& model_;
  OperatorTypesCache schemas_;
  std::unordered_map<const Value*, DataType> types_;
  bool incomplete_ = false;  // an output of which only Value::type could say the type, and does not
};

}  // namespace mk
