#pragma once
// Operators as the onnx library knows them: whether there is a schema, its type and shape inference function run over
// one of our nodes, and its data propagation. The library throws; here that becomes InferredTypes::problem. Schemas of
// all versions are made at the first use (8 ms), not at the start of the program.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "graph/node_facts.h"
#include "graph/shape_rules.h"

namespace mk {

struct OperatorSchema;  // of the onnx library

// Finds schemas; those found are kept with it.
class SchemaCache {
 public:
  SchemaCache();
  ~SchemaCache();
  // The schema of an operator in the newest version up to `version`; null where the library has none.
  const OperatorSchema* find(std::string_view domain, std::string_view op_type, std::int64_t version);

 private:
  struct Entries;
  std::unique_ptr<Entries> entries_;
};

// Whether a node has the inputs, outputs and attributes that the schema asks for, and no others.
bool agrees(const OperatorSchema& schema, const Node& node);
// The newest version of a domain that the library has operators of; 0 for domains that it does not know.
std::int64_t newest_opset(std::string_view domain);

InferredTypes infer_by_schema(const OperatorSchema& schema, const NodeFacts& node);
// The elements of the first output, whose type is `output`; nothing where the schema does not propagate them.
std::optional<KnownValue> propagate_by_schema(const OperatorSchema& schema, const NodeFacts& node, const Type& output);

}  // namespace mk
