#pragma once
// What an exported model says of itself: producer, winml.io.inputs and winml.io.outputs (spec: export, embedded
// metadata).

#include <cstdint>

#include "export/export.h"
#include "graph/ir.h"

namespace mk {

void add_model_metadata(Model& model, const ExportPlan& plan);
// Nodes that carry a winml.hierarchy.tag.
std::size_t tagged_node_count(const Model& model);
// Bytes of all initializers.
std::uint64_t model_bytes(const Model& model);

}  // namespace mk
