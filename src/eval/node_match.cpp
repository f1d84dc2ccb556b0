#include "eval/node_match.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "graph/node_marks.h"

namespace mk {
namespace {

bool is_compared(const Value* value) {
  return value && value->producer() && value->type.is_tensor() && is_float(value->type.element) &&
         bits_of(value->type.element) >= 16 && !find(value->producer()->metadata, smoothed_key);
}

std::string output_key(const Node& node, std::size_t index) { return node.name + "\n" + std::to_string(index); }

// The tag of a value that leaves its module: one whose readers are elsewhere.
const std::string* module_output(const Value& value) {
  const std::string* tag = find(value.producer()->metadata, hierarchy_tag_key);
  if (!tag || value.output_index() != 0) return nullptr;
  for (const Use& use : value.uses()) {
    const std::string* other = find(use.node->metadata, hierarchy_tag_key);
    if (other && *other == *tag) return nullptr;
  }
  return tag;
}

// By tag; null where a module gives several values.
std::unordered_map<std::string_view, const Value*> module_outputs(const Graph& graph) {
  std::unordered_map<std::string_view, const Value*> outputs;
  for (const Node* node : graph.nodes()) {
    for (const Value* output : node->outputs()) {
      if (!is_compared(output)) continue;
      const std::string* tag = module_output(*output);
      if (!tag) continue;
      const auto [known, is_new] = outputs.try_emplace(*tag, output);
      if (!is_new) known->second = nullptr;
    }
  }
  return outputs;
}

bool may_be_alike(const Value& a, const Value& b) {
  if (!a.type.shape || !b.type.shape) return true;
  if (a.type.shape->size() != b.type.shape->size()) return false;
  for (std::size_t i = 0; i < a.type.shape->size(); ++i) {
    const Dim &x = (*a.type.shape)[i], &y = (*b.type.shape)[i];
    if (x.is_known() && y.is_known() && x.value != y.value) return false;
  }
  return true;
}

class Matcher {
 public:
  Matcher(const Model& candidate, const Model& reference)
      : candidate_(*candidate.graph),
        reference_(*reference.graph),
        candidate_modules_(module_outputs(candidate_)),
        reference_modules_(module_outputs(reference_)) {
    for (const Node* node : reference_.nodes())
      for (std::size_t i = 0; i < node->outputs().size(); ++i)
        if (!node->name.empty() && is_compared(node->output(i)))
          reference_nodes_.emplace(output_key(*node, i), node->output(i));
    // A name is certain: it is not given away to another value.
    for (const Node* node : candidate_.nodes())
      for (const Value* output : node->outputs())
        if (const Value* same = named(output)) taken_.insert(same);
  }

  std::vector<MatchedValue> run() {
    std::vector<MatchedValue> matches;
    for (const Node* node : candidate_.nodes()) {
      for (std::size_t i = 0; i < node->outputs().size(); ++i) {
        const Value* value = node->output(i);
        if (!is_compared(value)) continue;
        if (const Value* same = named(value)) {
          matches.push_back({value, same, MatchedValue::By::name});
        } else if (const Value* of_node = named_by_node(*node, i)) {
          matches.push_back({value, of_node, MatchedValue::By::node});
        } else if (const Value* of_module = named_by_tag(*value)) {
          matches.push_back({value, of_module, MatchedValue::By::tag});
        }
      }
    }
    return matches;
  }

 private:
  const Value* named(const Value* value) const {
    if (!is_compared(value)) return nullptr;
    const Value* same = reference_.find(value->name());
    return is_compared(same) ? same : nullptr;
  }

  const Value* take(const Value& value, const Value* other) {
    if (!other || !may_be_alike(value, *other) || !taken_.insert(other).second) return nullptr;
    return other;
  }

  const Value* named_by_node(const Node& node, std::size_t index) {
    if (node.name.empty()) return nullptr;
    const auto found = reference_nodes_.find(output_key(node, index));
    if (found == reference_nodes_.end() || found->second->producer()->op_type != node.op_type) return nullptr;
    return take(*node.output(index), found->second);
  }

  const Value* named_by_tag(const Value& value) {
    const std::string* tag = module_output(value);
    if (!tag) return nullptr;
    const auto ours = candidate_modules_.find(*tag);
    const auto theirs = reference_modules_.find(*tag);
    if (ours == candidate_modules_.end() || ours->second != &value || theirs == reference_modules_.end())
      return nullptr;
    return take(value, theirs->second);
  }

  const Graph& candidate_;
  const Graph& reference_;
  std::unordered_map<std::string_view, const Value*> candidate_modules_, reference_modules_;
  std::unordered_map<std::string, const Value*> reference_nodes_;
  std::unordered_set<const Value*> taken_;
};

// The type of the zero point of a Q or DQ; uint8 where it has none.
std::string quantized_type(const Node& node) {
  const Value* zero_point = node.input(2);
  if (!zero_point) return "uint8";
  if (zero_point->initializer()) return std::string(name_of(zero_point->initializer()->type));
  return zero_point->type.is_tensor() ? std::string(name_of(zero_point->type.element)) : "uint8";
}

}  // namespace

std::vector<MatchedValue> match_values(const Model& candidate, const Model& reference) {
  return Matcher(candidate, reference).run();
}

std::string value_precision(const Value& value) {
  if (value.producer() && value.producer()->op_type == "DequantizeLinear") return quantized_type(*value.producer());
  for (const Use& use : value.uses())
    if (use.node->op_type == "QuantizeLinear" && use.input == 0) return quantized_type(*use.node);
  return std::string(name_of(value.type.element));
}

}  // namespace mk
