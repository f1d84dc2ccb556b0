#pragma once
// Shapes that the onnx library infers wrongly or not at all: rules of ours that replace its shape function (Reshape,
// where zeros and -1 meet), and rules that complete what it found, with symbolic arithmetic (the length of a Concat of
// `past` and `seq` is `past + seq`).

#include <string>
#include <string_view>
#include <vector>

#include "graph/node_facts.h"

namespace mk {

// The types of a node's outputs, as many as it has outputs; kind none where nothing is known.
struct InferredTypes {
  std::vector<Type> outputs;
  std::string problem;      // why something is not known; empty where all went well
  bool impossible = false;  // with a problem: no run of this node can succeed
};

using TypeRule = InferredTypes (*)(const NodeFacts& node);
using ShapeCompletion = void (*)(const NodeFacts& node, std::vector<Type>& outputs);

// For an operator of ai.onnx; null where there is none.
TypeRule type_rule(std::string_view op_type);
ShapeCompletion shape_completion(std::string_view op_type);

InferredTypes infer_reshape(const NodeFacts& node);
// Rules of shape_rules_window.cpp: convolution, pooling, resizing.
void complete_convolution(const NodeFacts& node, std::vector<Type>& outputs);
void complete_transposed_convolution(const NodeFacts& node, std::vector<Type>& outputs);
void complete_pooling(const NodeFacts& node, std::vector<Type>& outputs);
void complete_resize(const NodeFacts& node, std::vector<Type>& outputs);

// Why a convolution cannot run, told from its group and the channels that are known; empty where it may.
std::string convolution_problem(const NodeFacts& node);

// The shape of the first output where it has that rank; else null.
Shape* shape_of_rank(std::vector<Type>& outputs, std::size_t rank);
// Sets a dimension that is neither known nor symbolic.
void complete(Dim& dim, const std::optional<SymbolicInt>& value);

}  // namespace mk
