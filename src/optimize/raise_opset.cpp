#include "optimize/raise_opset.h"

#include <algorithm>
#include <array>

#include "optimize/constants.h"

namespace mk {
namespace {

constexpr std::int64_t oldest = 11, newest = 21;

bool always(const Node&) { return true; }
bool has_axes_attribute(const Node& node) { return node.attribute("axes") != nullptr; }
bool has_more_outputs(const Node& node) { return node.outputs().size() > 1; }
bool has_no_sizes(const Node& node) { return !node.input(1); }
// Before opset 13 all from the axis on was one dimension.
bool flattens(const Node& node) {
  const int rank = rank_of(node.input(0));
  const std::int64_t axis = node.integer("axis", 1);
  return rank < 1 || (axis != -1 && axis != rank - 1);
}

// Operators that mean something else from a version on, and for which nodes (onnx/onnx, docs/Changelog.md). What only
// takes more types, or got an attribute or an input whose default is what there was, is not here.
struct Change {
  std::string_view op_type;
  std::int64_t version;
  bool (*concerns)(const Node& node);
};
constexpr std::array changes{
    Change{"Softmax", 13, flattens},
    Change{"LogSoftmax", 13, flattens},
    Change{"Hardmax", 13, flattens},
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

// Attributes that became inputs, or went.
struct Renewal {
  std::string_view op_type;
  std::int64_t version;
  void (*renew)(Graph& graph, Node& node);
};

void move_to_input(Graph& graph, Node& node, const char* attribute) {
  const std::vector<std::int64_t>* values = node.integers(attribute);
  if (!values) return;
  const std::string stem = (node.output(0) ? node.output(0)->name() : node.op_type) + '_' + attribute;
  node.set_input(1, graph.add_initializer(int64_tensor(graph.unique_name(stem), *values)));
  node.erase_attribute(attribute);
}
void axes_to_input(Graph& graph, Node& node) { move_to_input(graph, node, "axes"); }
void split_to_input(Graph& graph, Node& node) { move_to_input(graph, node, "split"); }
void drop_ratio(Graph&, Node& node) { node.erase_attribute("ratio"); }
void say_last_axis(Graph&, Node& node) { node.set_attribute(Attribute("axis", -1)); }

constexpr std::array renewals{
    Renewal{"Dropout", 12, drop_ratio},       Renewal{"Squeeze", 13, axes_to_input},
    Renewal{"Unsqueeze", 13, axes_to_input},  Renewal{"ReduceSum", 13, axes_to_input},
    Renewal{"Split", 13, split_to_input},     Renewal{"Softmax", 13, say_last_axis},
    Renewal{"LogSoftmax", 13, say_last_axis}, Renewal{"Hardmax", 13, say_last_axis},
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

void renew_nodes(Model& model, std::int64_t from) {
  for_each_node(*model.graph, [&](Node& node) {
    if (!is_standard(node.domain)) return;
    for (const Renewal& row : renewals) {
      const bool between = from < row.version && row.version <= model.opset();
      if (between && row.op_type == node.op_type) row.renew(*node.graph(), node);
    }
  });
}

}  // namespace mk
