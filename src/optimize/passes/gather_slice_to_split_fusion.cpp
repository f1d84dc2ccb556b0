// Slices or single Gathers that together take all of a value along one axis, in order and without gaps, become one
// Split; a dimension that Gather drops is squeezed away.

#include <algorithm>
#include <map>
#include <unordered_set>

#include "optimize/pass.h"

namespace mk {
namespace {

struct Part {
  Node* node;
  std::int64_t start, end;
  bool drops_axis;
};

bool is_plain(const Node& node) { return node.domain.empty() || node.domain == "ai.onnx"; }

std::optional<std::pair<std::int64_t, Part>> slice_part(Node& node) {
  const auto list = [&](std::size_t input) { return integers_of(node.input(input)); };
  const auto starts = list(1), ends = list(2);
  const auto axes = node.input(3) ? list(3) : std::optional(std::vector<std::int64_t>{0});
  const auto steps = node.input(4) ? list(4) : std::optional(std::vector<std::int64_t>{1});
  if (!starts || !ends || !axes || !steps || starts->size() != 1 || ends->size() != 1 || axes->size() != 1 ||
      *steps != std::vector<std::int64_t>{1}) {
    return std::nullopt;
  }
  return std::pair{axes->front(), Part{&node, starts->front(), ends->front(), false}};
}

std::optional<std::pair<std::int64_t, Part>> gather_part(Node& node) {
  const auto index = integers_of(node.input(1));
  if (!index || index->size() != 1 || rank_of(node.input(1)) != 0) return std::nullopt;
  const std::int64_t at = index->front();
  return std::pair{node.integer("axis", 0), Part{&node, at, at == -1 ? INT64_MAX : at + 1, true}};
}

// The parts of one value along one axis, by their order.
std::map<std::int64_t, std::vector<Part>> parts_of(const Value& value) {
  std::map<std::int64_t, std::vector<Part>> parts;
  const int rank = rank_of(&value);
  for (const Use& use : value.uses()) {
    Node& node = *use.node;
    if (use.input != 0 || !is_plain(node) || node.graph() != value.graph() || !node.output(0)) continue;
    std::optional<std::pair<std::int64_t, Part>> found;
    if (node.op_type == "Slice") found = slice_part(node);
    if (node.op_type == "Gather") found = gather_part(node);
    if (!found) continue;
    auto [axis, part] = *found;
    if (axis < 0) axis += rank;
    const Dim length = dim_of(&value, static_cast<int>(axis));
    if (axis < 0 || !length.is_known()) continue;
    for (std::int64_t* bound : {&part.start, &part.end}) {
      if (*bound < 0) *bound += length.value;
      *bound = std::clamp<std::int64_t>(*bound, 0, length.value);
    }
    if (part.end > part.start) parts[axis].push_back(part);
  }
  for (auto& [axis, list] : parts) {
    std::sort(list.begin(), list.end(), [](const Part& a, const Part& b) { return a.start < b.start; });
  }
  return parts;
}

bool cover(const std::vector<Part>& parts, std::int64_t length) {
  std::int64_t at = 0;
  for (const Part& part : parts) {
    if (part.start != at) return false;
    at = part.end;
  }
  return at == length;
}

void split(PassRun& run, Value& value, std::int64_t axis, const std::vector<Part>& parts) {
  Patch patch(run.opset());
  std::vector<std::int64_t> sizes;
  sizes.reserve(parts.size());
  for (const Part& part : parts) sizes.push_back(part.end - part.start);
  PatchNode node = patch.op("Split", {&value, patch.integers(sizes)}).with("axis", axis);
  for (std::uint32_t i = 0; i < parts.size(); ++i) static_cast<void>(node[i]);
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    PatchValue result = node[i];
    if (parts[i].drops_axis) result = patch.op("Squeeze", {result, patch.integers({axis})});
    patch.replace(parts[i].node->output(0), result);
  }
  run.apply(std::move(patch), *parts.front().node);
}

void split_value(PassRun& run, Value& value) {
  for (const auto& [axis, parts] : parts_of(value)) {
    const Dim length = dim_of(&value, static_cast<int>(axis));
    if (parts.size() < 2) continue;
    if (!cover(parts, length.value)) {
      run.miss(*parts.front().node, "the parts do not make up all of " + value.name());
      continue;
    }
    split(run, value, axis, parts);
    return;  // what was found of the other axes may be gone
  }
}

Status run(PassRun& run) {
  std::unordered_set<const Value*> seen;
  for (const char* op_type : {"Slice", "Gather"}) {
    const std::vector<Node*>& nodes = run.index().of(op_type);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Value* value = nodes[i] ? nodes[i]->input(0) : nullptr;
      if (!value || is_constant(value) || value->uses().size() < 2 || !seen.insert(value).second) continue;
      split_value(run, *value);
    }
  }
  return {};
}

}  // namespace

extern const Pass gather_slice_to_split_fusion;
const Pass gather_slice_to_split_fusion{.name = "gather-slice-to-split-fusion",
                                        .category = "misc",
                                        .summary = "Slices or Gathers that take all of a value become one Split",
                                        .opset = 13,
                                        .run = run};

}  // namespace mk
