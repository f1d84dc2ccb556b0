#pragma once
// What an exported model says of itself: producer, winml.io.inputs and winml.io.outputs (spec: export, embedded
// metadata).

#include <cstdint>

#include "export/export.h"
#include "graph/ir.h"

namespace mk {

void add_model_metadata(Model& model, const ExportPlan& plan);
// The last step before a model is written: hierarchy_tag_format "module_only" leaves of each tag its last segment, the
// module that computes the node ("/BertSelfAttention", depth 1).
void finish_tags(Model& model, const ExportConfig& config);
// Nodes that carry a winml.hierarchy.tag.
std::size_t tagged_node_count(const Model& model);
// Bytes of all initializers.
std::uint64_t model_bytes(const Model& model);

}  // namespace mk
