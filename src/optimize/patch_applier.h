#pragma once
// Splices patches into a model. What a patch makes is inferred and held against what it replaces before anything is
// rewired; a patch that does not fit is refused and leaves the model as it was.

#include <optional>
#include <string>
#include <vector>

#include "graph/shape_inference.h"
#include "optimize/node_index.h"
#include "optimize/patch.h"

namespace mk {

class PatchApplier {
 public:
  // Both must outlive this; the index is kept right. `standard_only`: patches that make nodes of another domain than
  // ai.onnx are refused.
  PatchApplier(Model& model, NodeIndex& index, bool standard_only = false)
      : model_(model), index_(index), standard_only_(standard_only), inference_(model) {}

  // New nodes stand before `anchor` and inherit its name and metadata. Why the patch was refused; nothing where it was
  // applied.
  std::optional<std::string> apply(Patch patch, Node& anchor);

  // Nodes and initializers that nothing uses go, beginning with those that make these values, and what only they used.
  void sweep(std::vector<Value*> candidates);

 private:
  struct Made {
    std::vector<Value*> constants;
    std::vector<Node*> nodes;
  };
  std::optional<std::string> make(Patch& patch, Node& anchor, Made& made);
  void unmake(const Made& made, Graph& graph);
  std::optional<std::string> check(const Patch& patch, const Made& made) const;
  std::optional<std::string> change_nodes(Patch& patch, const Made& made, std::vector<Value*>& released);
  void take_place(Value* old, Value* with, std::vector<Value*>& released);
  static Node* heir_of(const Patch& patch, const Made& made);
  static Value* resolve(const PatchValue& value, const Made& made);

  Model& model_;
  NodeIndex& index_;
  bool standard_only_;
  NodeInference inference_;
};

}  // namespace mk
