#include "quantize/control_flow.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace mk {
namespace {

// Input i of the body is input i + inputs of the node; output i of the body is output i - outputs of the node.
struct Offsets {
  std::size_t first_input = 0;  // of the body
  std::ptrdiff_t inputs = 0;
  std::size_t outputs = 0;
};

std::optional<Offsets> offsets(const Node& node, const Graph& body) {
  if (!node.domain.empty() && node.domain != "ai.onnx") return std::nullopt;
  if (node.op_type == "If") return Offsets{body.inputs().size(), 0, 0};
  if (node.op_type == "Loop") return Offsets{2, 0, 1};
  // Before opset 9 a Scan has the lengths of its sequences in front.
  if (node.op_type == "Scan") {
    return Offsets{
        0, static_cast<std::ptrdiff_t>(node.inputs().size()) - static_cast<std::ptrdiff_t>(body.inputs().size()), 0};
  }
  return std::nullopt;
}

}  // namespace

bool is_control_flow(const Node& node) {
  constexpr std::array<std::string_view, 3> names{"If", "Loop", "Scan"};
  return (node.domain.empty() || node.domain == "ai.onnx") &&
         std::find(names.begin(), names.end(), node.op_type) != names.end();
}

std::vector<BodyLink> body_inputs(const Node& node, const Graph& body) {
  std::vector<BodyLink> links;
  const auto shift = offsets(node, body);
  if (!shift || shift->inputs < 0) return links;
  for (std::size_t i = shift->first_input; i < body.inputs().size(); ++i) {
    const std::size_t outer = i + static_cast<std::size_t>(shift->inputs);
    if (const Value* value = node.input(outer)) links.push_back({value, body.inputs()[i]});
  }
  return links;
}

std::vector<BodyLink> body_outputs(const Node& node, const Graph& body) {
  std::vector<BodyLink> links;
  const auto shift = offsets(node, body);
  if (!shift) return links;
  for (std::size_t i = shift->outputs; i < body.outputs().size(); ++i) {
    links.push_back({node.output(i - shift->outputs), body.outputs()[i]});
  }
  return links;
}

}  // namespace mk
