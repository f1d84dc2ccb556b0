#pragma once
// What there is to say about an ONNX model without loading its weights.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/ir.h"

namespace mk {

struct ModelSummary {
  struct Port {
    std::string name;
    Type type;
  };
  struct OperatorCount {
    std::string domain;  // "" is ai.onnx
    std::string op_type;
    std::uint64_t nodes = 0;
  };
  struct TensorCount {
    DataType type = DataType::undefined;
    std::uint64_t tensors = 0;
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;
  };
  struct ExternalFile {
    std::string location;  // relative to the model's folder
    std::uint64_t tensors = 0;
    std::uint64_t bytes = 0;
    bool missing = false;  // wholly or in part
  };

  std::int64_t ir_version = 0;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::int64_t model_version = 0;
  std::string doc_string;
  std::vector<std::pair<std::string, std::int64_t>> opset_imports;
  Metadata metadata;

  std::string graph_name;
  std::vector<Port> inputs;  // those that a caller gives: without an initializer
  std::vector<Port> outputs;
  std::uint64_t nodes = 0;      // of the main graph
  std::uint64_t subgraphs = 0;  // in attributes, at any depth
  std::uint64_t subgraph_nodes = 0;
  std::vector<OperatorCount> operators;  // sub-graphs too; most frequent first
  std::vector<std::string> functions;    // "domain.name"

  // Initializers and the tensors of Constant nodes, sub-graphs too. Sorted by bytes, most first.
  std::vector<TensorCount> weights;
  std::uint64_t initializers = 0;
  std::uint64_t constants = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t parameters = 0;  // elements of floating point and quantized weights: all but those of int64 and bool
  std::vector<ExternalFile> external_files;

  bool quantized = false;  // has QuantizeLinear, MatMulInteger or another of their kind (in the main graph)
  bool compiled = false;   // has an EPContext node
};

ModelSummary summarize(const Model& model);

// Operators that make a model count as quantized already.
bool is_quantized_operator(std::string_view op_type);

}  // namespace mk
