#pragma once
// The values that a model's inputs may take: what the exporter recorded in the metadata `winml.io.inputs`, else what
// the graph shows (ids that look up rows of a table are below its number of rows).

#include <map>
#include <string>

#include "graph/ir.h"
#include "runtime/random_inputs.h"

namespace mk {

// By input name. Metadata that cannot be read is ignored.
std::map<std::string, ValueRange> value_ranges(const Model& model);

// Puts the ranges into the specs of those names.
void apply_ranges(const std::map<std::string, ValueRange>& ranges, std::vector<DrawSpec>& specs);

}  // namespace mk
