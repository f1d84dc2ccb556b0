#include "graph/random_operators.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace mk {
namespace {

constexpr std::array<std::string_view, 6> generators{"RandomNormal",      "RandomNormalLike", "RandomUniform",
                                                     "RandomUniformLike", "Bernoulli",        "Multinomial"};

bool is_known_false(const Value& value) {
  const Tensor* tensor = value.initializer();
  if (const Node* node = value.producer(); node && node->op_type == "Constant") {
    const Attribute* content = node->attribute("value");
    const auto* held = content ? std::get_if<std::shared_ptr<const Tensor>>(&content->value) : nullptr;
    tensor = held ? held->get() : nullptr;
  }
  const auto values = tensor && tensor->data ? integer_values(*tensor) : Result<std::vector<std::int64_t>>{};
  return values && values->size() == 1 && values->front() == 0;
}

bool draws(const Node& node) {
  if (node.op_type == "Dropout") return node.input(2) && !is_known_false(*node.input(2));  // training_mode
  return std::ranges::find(generators, node.op_type) != generators.end();
}

}  // namespace

bool draws_random_numbers(const Model& model) {
  bool found = false;
  for_each_node(*model.graph, [&](const Node& node) { found |= draws(node); });
  return found;
}

}  // namespace mk
