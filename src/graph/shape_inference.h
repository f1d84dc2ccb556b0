#pragma once
// Type and shape inference, one operator at a time, by the shape functions of the onnx library run over our nodes, with
// data propagation, symbolic dimensions, and overrides where those functions are wrong (Reshape's allowzero ...).

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir.h"

namespace mk {

struct InferenceNote {
  std::string node;      // its name, or op_type and first output
  std::string message;   // why its outputs stay unknown, or what contradicts
  bool refused = false;  // an operator of ONNX that does not take these inputs or attributes
};

struct InferenceReport {
  std::vector<InferenceNote> notes;
};

// Fills Value::type throughout the model, sub-graphs and calls of model-local functions included; what is declared and
// what is inferred are merged, the more precise wins. A contradiction that cannot run (a Reshape to [-2], dimensions
// that cannot match) is malformed and names the node; an operator without a schema leaves its outputs as they are, with
// a note.
Result<InferenceReport> infer_shapes(Model& model);

class ModelInference;

// The same for single nodes, for graphs that change. The types of a node's inputs must be right; constants among them
// are read, values that other nodes compute are not followed.
class NodeInference {
 public:
  explicit NodeInference(Model& model);  // which must outlive this
  ~NodeInference();
  // Merges what is inferred into the types of the node's outputs. malformed where the node cannot run; without a schema
  // its outputs stay as they are.
  Status infer(Node& node);

 private:
  std::unique_ptr<ModelInference> inference_;
};

}  // namespace mk
