#include "runtime/value_ranges.h"

#include <algorithm>

#include "base/json.h"

namespace mk {
namespace {

void read_metadata(const Model& model, std::map<std::string, ValueRange>& ranges) {
  const std::string* text = find(model.metadata, "winml.io.inputs");
  if (!text) return;
  const auto json = parse_json(*text, "winml.io.inputs");
  if (!json || !json->is_array()) return;
  const JsonView root(*json, "winml.io.inputs");
  for (std::size_t i = 0; i < root.size(); ++i) {
    const auto name = root.at(i).at("name").string();
    const auto range = root.at(i).at("value_range").numbers();
    if (name && range && range->size() == 2 && (*range)[0] < (*range)[1])
      ranges.insert_or_assign(*name, ValueRange{(*range)[0], (*range)[1]});
  }
}

// Rows of the table that `ids` selects from, at its first Gather; ids may be cast or reshaped on the way.
std::optional<std::int64_t> rows_selected(const Value& ids, int depth = 0) {
  std::optional<std::int64_t> least;
  const auto take = [&](std::optional<std::int64_t> rows) {
    if (rows && (!least || *rows < *least)) least = rows;
  };
  for (const Use& use : ids.uses()) {
    const Node& node = *use.node;
    const bool passes = node.op_type == "Cast" || node.op_type == "Identity" || node.op_type == "Reshape" ||
                        node.op_type == "Unsqueeze" || node.op_type == "Squeeze" || node.op_type == "Flatten";
    if (passes && use.input == 0 && depth < 4 && node.output(0)) take(rows_selected(*node.output(0), depth + 1));
    if (node.op_type != "Gather" || use.input != 1 || !node.input(0) || !node.input(0)->initializer()) continue;
    const auto& dims = node.input(0)->initializer()->dims;
    std::int64_t axis = node.integer("axis", 0);
    if (axis < 0) axis += static_cast<std::int64_t>(dims.size());
    if (axis >= 0 && axis < static_cast<std::int64_t>(dims.size())) take(dims[static_cast<std::size_t>(axis)]);
  }
  return least;
}

}  // namespace

std::map<std::string, ValueRange> value_ranges(const Model& model) {
  std::map<std::string, ValueRange> ranges;
  for (const Value* input : model.graph->inputs()) {
    if (!input->type.is_tensor() || !is_integer(input->type.element)) continue;
    if (const auto rows = rows_selected(*input); rows && *rows > 0)
      ranges.emplace(input->name(), ValueRange{0, static_cast<double>(*rows)});
  }
  read_metadata(model, ranges);
  return ranges;
}

void apply_ranges(const std::map<std::string, ValueRange>& ranges, std::vector<DrawSpec>& specs) {
  for (DrawSpec& spec : specs)
    if (const auto range = ranges.find(spec.name); range != ranges.end()) spec.range = range->second;
}

}  // namespace mk
