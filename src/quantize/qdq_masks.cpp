#include "quantize/qdq_masks.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <unordered_set>

namespace mk {
namespace {

constexpr float most_of_a_mask = -1e4f;

constexpr std::array carriers{"Add",       "Cast",      "Concat",  "Expand", "Identity", "Max",
                              "Min",       "Mul",       "Reshape", "Slice",  "Squeeze",  "Sub",
                              "Transpose", "Unsqueeze", "Where",   "Tile",   "Split",    "Gather"};

// Every path from the value leads into a Softmax, through operators that keep a mask a mask.
bool leads_to_softmax(const Value& value, std::unordered_set<const Value*>& seen, bool& found) {
  if (!seen.insert(&value).second) return true;
  if (value.is_graph_output() || seen.size() > 4096) return false;
  for (const Use& use : value.uses()) {
    const Node& node = *use.node;
    if (!node.domain.empty() || node.graph() != value.graph()) return false;
    if (node.op_type == "Softmax") {
      found = true;
      continue;
    }
    if (std::find(carriers.begin(), carriers.end(), node.op_type) == carriers.end()) return false;
    for (const Value* output : node.outputs())
      if (output && !leads_to_softmax(*output, seen, found)) return false;
  }
  return true;
}

bool is_mask_constant(const Value& value) {
  const Tensor* tensor = value.initializer();
  if (!tensor || tensor->type != DataType::float32 || !tensor->data || value.is_graph_input()) return false;
  // Where most masks are one number, some are a triangle of positions.
  if (tensor->element_count() == 0 || tensor->element_count() > (64u << 20)) return false;
  for (const Use& use : value.uses()) {
    const std::string_view type = use.node->op_type;
    if (type != "Mul" && type != "Add" && type != "Where" && type != "Sub" && type != "Max" && type != "Slice" &&
        type != "Gather")
      return false;
  }
  std::unordered_set<const Value*> seen;
  bool found = false;
  return leads_to_softmax(value, seen, found) && found;
}

Result<std::size_t> soften_graph(Graph& graph) {
  std::size_t changed = 0;
  for (Value* value : graph.initializers()) {
    if (!is_mask_constant(*value)) continue;
    const Tensor& tensor = *value->initializer();
    MK_TRY(std::vector<std::byte> bytes, read_all(*tensor.data));
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    bool any = false;
    for (float& number : numbers) {
      if (!(number <= most_of_a_mask)) continue;
      number = mask_value;
      any = true;
    }
    if (!any) continue;
    graph.set_initializer(value, make_tensor(value->name(), DataType::float32, tensor.dims, owned_values(numbers)));
    ++changed;
  }
  for (Node* node : graph.nodes()) {
    for (Graph* inner : node->subgraphs()) {
      MK_TRY(const std::size_t inside, soften_graph(*inner));
      changed += inside;
    }
  }
  return changed;
}

}  // namespace

Result<std::size_t> soften_masks(Model& model) { return soften_graph(*model.graph); }

bool is_mask_range(TensorRange range) { return range.low <= most_of_a_mask && range.high < -range.low / 100; }

std::optional<TensorRange> masked_scores_range(TensorRange scores, TensorRange mask, TensorRange sum) {
  const float least = scores.low - mask_margin;
  const bool is_mask = mask.low <= mask_value / 10 && mask.high <= 0 && mask.low < least - scores.high;
  if (!is_mask) return std::nullopt;
  return TensorRange{std::max(sum.low, least), std::max(scores.high, least)};
}

}  // namespace mk
