#include "optimize/raise_opset.h"

#include <algorithm>
#include <array>

namespace mk {
namespace {

constexpr std::int64_t oldest = 13, newest = 21;

bool always(const Node&) { return true; }
bool has_axes_attribute(const Node& node) { return node.attribute("axes") != nullptr; }
bool has_more_outputs(const Node& node) { return node.outputs().size() > 1; }
bool has_no_sizes(const Node& node) { return !node.input(1); }

// Operators that mean something else from a version on, and for which nodes (onnx/onnx, docs/Changelog.md). What only
// takes more types, or got an attribute or an input whose default is what there was, is not here.
struct Change {
  std::string_view op_type;
  std::int64_t version;
  bool (*concerns)(const Node& node);
};
constexpr std::array changes{
    Change{"BatchNormalization", 14, has_more_outputs},  // its outputs in training
    Change{"RoiAlign", 16, [](const Node& node) { return !node.attribute("coordinate_transformation_mode"); }},
    Change{"Upsample", 14, always},
    Change{"Scatter", 14, always},
    Change{"ReduceMean", 18, has_axes_attribute},  // axes became an input
    Change{"ReduceMax", 18, has_axes_attribute},
    Change{"ReduceMin", 18, has_axes_attribute},
    Change{"ReduceProd", 18, has_axes_attribute},
    Change{"ReduceL1", 18, has_axes_attribute},
    Change{"ReduceL2", 18, has_axes_attribute},
    Change{"ReduceLogSum", 18, has_axes_attribute},
    Change{"ReduceLogSumExp", 18, has_axes_attribute},
    Change{"ReduceSumSquare", 18, has_axes_attribute},
    Change{"Split", 18, has_no_sizes},  // num_outputs must be given
    Change{"Resize", 19, always},       // half_pixel_symmetric, and what rounds how
    Change{"AveragePool", 19, [](const Node& node) { return node.integer("ceil_mode", 0) != 0; }},
    Change{"MaxPool", 19, [](const Node& node) { return node.integer("ceil_mode", 0) != 0; }},
    Change{"LpPool", 18, always},
    Change{"DFT", 20, always},  // the axis became an input
    Change{"GridSample", 20, always},
    Change{"GroupNormalization", 21, always},
};

bool is_standard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

std::string problem(Graph& graph, std::int64_t from, std::int64_t to) {
  std::string found;
  for_each_node(graph, [&](Node& node) {
    if (!found.empty() || !is_standard(node.domain)) return;
    const auto change = std::find_if(changes.begin(), changes.end(), [&](const Change& row) {
      return row.op_type == node.op_type && from < row.version && row.version <= to && row.concerns(node);
    });
    if (change == changes.end()) return;
    found = node.op_type + " changes in opset " + std::to_string(change->version) + " (node " + node.label() + ")";
  });
  return found;
}

}  // namespace

std::optional<std::string> cannot_raise_opset(const Model& model, std::int64_t version) {
  const std::int64_t from = model.opset();
  if (from >= version) return std::nullopt;
  const std::string wanted = "opset " + std::to_string(version) + " is needed";
  if (from < oldest || version > newest) {
    return wanted + ", and the model has " + std::to_string(from) + "; opsets are raised from " +
           std::to_string(oldest) + " to " + std::to_string(newest);
  }
  if (!model.functions.empty()) return wanted + ", and the model has functions of its own";
  const std::string found = problem(*model.graph, from, version);
  if (!found.empty()) return wanted + ", and the model has " + std::to_string(from) + ": " + found;
  return std::nullopt;
}

void raise_opset(Model& model, std::int64_t version) {
  if (model.opset() >= version) return;
  model.set_opset("", version);
  const std::int64_t ir_version = version >= 21 ? 10 : version >= 19 ? 9 : version >= 15 ? 8 : 7;
  model.ir_version = std::max(model.ir_version, ir_version);
}

}  // namespace mk
