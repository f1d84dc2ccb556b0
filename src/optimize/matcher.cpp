#include "optimize/matcher.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mk {
namespace {

constexpr int step_limit = 20'000;  // of one search; patterns with many alternatives could try very many orders

std::string_view plain_domain(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

struct DefaultAttribute {
  std::string_view op_type;  // empty: of every operator that has it
  std::string_view name;
  double value;
};
// What an attribute is where a node does not give it (ONNX operators).
constexpr std::array<DefaultAttribute, 16> default_attributes{{
    {"", "keepdims", 1},
    {"", "alpha", 1},
    {"", "beta", 1},
    {"", "transA", 0},
    {"", "transB", 0},
    {"", "allowzero", 0},
    {"Gather", "axis", 0},
    {"Split", "axis", 0},
    {"Softmax", "axis", -1},
    {"LogSoftmax", "axis", -1},
    {"LayerNormalization", "axis", -1},
    {"RMSNormalization", "axis", -1},
    {"Flatten", "axis", 1},
    {"", "group", 1},
    {"", "training_mode", 0},
    {"", "noop_with_empty_axes", 0},
}};

std::optional<double> default_of(std::string_view op_type, std::string_view name) {
  for (const DefaultAttribute& row : default_attributes) {
    if (row.name == name && (row.op_type.empty() || row.op_type == op_type)) return row.value;
  }
  return std::nullopt;
}

bool near(double a, double b) { return std::abs(a - b) <= 1e-4 * std::max(std::abs(a), std::abs(b)) + 1e-12; }

// Axes are equal where they count to the same axis.
bool same_axes(const std::vector<std::int64_t>& found, std::vector<std::int64_t> wanted, int rank) {
  if (found.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == wanted[i]) continue;
    if (rank <= 0 || (found[i] + rank) % rank != (wanted[i] + rank) % rank) return false;
  }
  return true;
}

std::vector<std::int64_t> as_integers(const PatternAttribute::Value& value) {
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return *list;
  const auto* number = std::get_if<double>(&value);
  return number ? std::vector<std::int64_t>{static_cast<std::int64_t>(*number)} : std::vector<std::int64_t>{};
}

bool attribute_holds(const Node& node, const PatternAttribute& wanted) {
  const Attribute* found = node.attribute(wanted.name);
  if (wanted.name == "axes") {
    const std::vector<std::int64_t> axes = as_integers(wanted.value);
    const int rank = rank_of(node.input(0));
    if (found) {
      const auto* list = std::get_if<std::vector<std::int64_t>>(&found->value);
      return list && same_axes(*list, axes, rank);
    }
    const auto list = integers_of(node.input(1));
    return list && same_axes(*list, axes, rank);
  }
  if (const auto* text = std::get_if<std::string>(&wanted.value)) {
    const auto* held = found ? std::get_if<std::string>(&found->value) : nullptr;
    return held && *held == *text;
  }
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&wanted.value)) {
    const auto* held = found ? std::get_if<std::vector<std::int64_t>>(&found->value) : nullptr;
    return held && *held == *list;
  }
  const double number = std::get<double>(wanted.value);
  std::optional<double> held;
  if (!found) {
    held = default_of(node.op_type, wanted.name);
  } else if (const auto* integer = std::get_if<std::int64_t>(&found->value)) {
    held = static_cast<double>(*integer);
  } else if (const auto* real = std::get_if<float>(&found->value)) {
    held = static_cast<double>(*real);
  }
  if (!held) return false;
  if (wanted.name != "axis") return near(*held, number);
  return same_axes({static_cast<std::int64_t>(*held)}, {static_cast<std::int64_t>(number)}, rank_of(node.input(0)));
}

}  // namespace

bool is_commutative(const Node& node) {
  static constexpr std::array<std::string_view, 11> names{"Add", "Mul",   "Max", "Min",        "And",      "Or",
                                                          "Xor", "Equal", "Sum", "BitwiseAnd", "BitwiseOr"};
  return plain_domain(node.domain).empty() && node.inputs().size() == 2 &&
         std::find(names.begin(), names.end(), node.op_type) != names.end();
}

Value* Match::operator[](std::string_view name) const {
  const std::uint32_t index = pattern_->find(name);
  if (index == Pattern::none) return nullptr;
  const Pattern::Name& defined = pattern_->names[index];
  if (values_[index] || defined.line == Pattern::none || !nodes_[defined.line]) return values_[index];
  return nodes_[defined.line]->output(defined.output);
}

Node* Match::node(std::string_view name) const {
  const std::uint32_t index = pattern_->find(name);
  if (index == Pattern::none || pattern_->names[index].line == Pattern::none) return nullptr;
  return nodes_[pattern_->names[index].line];
}

// Depth-first search with backtracking: what remains to be matched is a list on the stack, so that a choice made early
// is revised when something later does not hold.
class Matcher {
 public:
  Matcher(const Pattern& pattern, Node& root, NearMatch* near_match)
      : pattern_(pattern), near_(near_match), match_(pattern, *root.graph()) {
    match_.values_.assign(pattern.names.size(), nullptr);
    match_.nodes_.assign(pattern.lines.size(), nullptr);
  }

  std::optional<Match> run(Node& root) {
    if (line(pattern_.root, root, nullptr)) return std::move(match_);
    return std::nullopt;
  }

 private:
  struct Goal {
    const PatternTerm* term;
    Value* value;
    const Goal* next;
  };

  bool goals(const Goal* goal) {
    if (++steps_ > step_limit) return false;
    if (!goal) return interior_is_private();
    const PatternTerm& term = *goal->term;
    if (!goal->value) {
      if (!term.optional) return false;
      return goals(goal->next);
    }
    switch (term.kind) {
      case PatternTerm::Kind::anything:
        return goals(goal->next);
      case PatternTerm::Kind::number: {
        const auto scalar = scalar_of(goal->value);
        if (scalar && near(*scalar, term.number)) return goals(goal->next);
        return miss([&] {
          return "a constant " + std::to_string(term.number) + " expected at " + goal->value->name() +
                 (scalar ? ", found " + std::to_string(*scalar) : std::string());
        });
      }
      case PatternTerm::Kind::name:
        if (term.constant && !is_constant(goal->value)) {
          return miss([&] { return title(term.name) + " is no constant (" + goal->value->name() + ')'; });
        }
        return named(term.name, goal->value, goal->next);
    }
    return false;
  }

  bool named(std::uint32_t name, Value* value, const Goal* rest) {
    Value*& bound = match_.values_[name];
    if (bound) {
      if (bound == value) return goals(rest);
      return miss(
          [&] { return title(name) + " is " + bound->name() + " in one place and " + value->name() + " in another"; });
    }
    const Pattern::Name& defined = pattern_.names[name];
    bound = value;
    bool found = false;
    if (defined.line == Pattern::none) {
      found = goals(rest);
    } else if (const Node* known = match_.nodes_[defined.line]) {
      found = known == value->producer() && defined.output == value->output_index() && goals(rest);
    } else {
      found = defined_by(defined, value, rest);
    }
    if (!found) match_.values_[name] = nullptr;
    return found;
  }

  bool defined_by(const Pattern::Name& defined, Value* value, const Goal* rest) {
    Node* producer = value->producer();
    if (producer && producer->graph() == match_.graph_ && defined.output == value->output_index() &&
        line(defined.line, *producer, rest)) {
      return true;
    }
    for (const PatternCall& call : pattern_.lines[defined.line].alternatives) {
      if (!call.skippable) continue;
      const Goal skipped{call.inputs.data(), value, rest};
      if (goals(&skipped)) return true;
    }
    if (!producer) {
      return miss([&] { return value->name() + " is no result of " + operators(defined.line); });
    }
    return false;
  }

  bool line(std::uint32_t number, Node& node, const Goal* rest) {
    bool right_operator = false;
    for (const PatternCall& call : pattern_.lines[number].alternatives) {
      if (call.op_type != node.op_type || plain_domain(node.domain) != call.domain) continue;
      right_operator = true;
      const auto wrong = std::find_if_not(call.attributes.begin(), call.attributes.end(),
                                          [&](const auto& attribute) { return attribute_holds(node, attribute); });
      if (wrong != call.attributes.end()) {
        miss([&] { return "another " + wrong->name + " expected (node " + node.label() + ")"; });
        continue;
      }
      match_.nodes_[number] = &node;
      ++matched_;
      if (operands(call, node, rest)) return true;
      --matched_;
      match_.nodes_[number] = nullptr;
    }
    if (!right_operator) {
      miss([&] { return operators(number) + " expected, found " + node.op_type + " (node " + node.label() + ")"; });
    }
    return false;
  }

  bool operands(const PatternCall& call, Node& node, const Goal* rest) {
    const std::size_t given = node.inputs().size();
    const bool axes_input = given == call.inputs.size() + 1 && has_axes(call) && !node.attribute("axes");
    if (given > call.inputs.size() && !call.open_ended && !axes_input) {
      bool more = false;
      for (std::size_t i = call.inputs.size(); i < given; ++i) more |= node.input(i) != nullptr;
      if (more) return miss([&] { return "fewer inputs expected (node " + node.label() + ")"; });
    }
    std::vector<Goal> list(call.inputs.size());
    const auto in_order = [&](bool swapped) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        list[i] = {&call.inputs[i], node.input(swapped ? 1 - i : i), i + 1 < list.size() ? &list[i + 1] : rest};
      }
      return goals(list.empty() ? rest : list.data());
    };
    if (in_order(false)) return true;
    return list.size() == 2 && is_commutative(node) && in_order(true);
  }

  static bool has_axes(const PatternCall& call) {
    return std::any_of(call.attributes.begin(), call.attributes.end(), [](const auto& a) { return a.name == "axes"; });
  }

  // No value between the matched nodes is used outside them.
  bool interior_is_private() {
    for (std::uint32_t number = 0; number < match_.nodes_.size(); ++number) {
      const Node* node = match_.nodes_[number];
      if (!node || number == pattern_.root || pattern_.lines[number].shared) continue;
      for (const Value* output : node->outputs()) {
        if (!output) continue;
        if (output->is_graph_output()) return miss([&] { return output->name() + " is also a graph output"; });
        for (const Use& use : output->uses()) {
          if (std::find(match_.nodes_.begin(), match_.nodes_.end(), use.node) != match_.nodes_.end()) continue;
          return miss([&] { return output->name() + " is also used by " + use.node->label(); });
        }
      }
    }
    return true;
  }

  std::string title(std::uint32_t name) const {
    return pattern_.names[name].text.empty() ? "a value" : pattern_.names[name].text;
  }
  std::string operators(std::uint32_t number) const {
    std::string text;
    for (const PatternCall& call : pattern_.lines[number].alternatives) {
      text += (text.empty() ? "" : " or ") + call.op_type;
    }
    return text;
  }

  template <typename Text>
  bool miss(Text&& text) {
    if (near_ && matched_ > near_->nodes) *near_ = {matched_, text()};
    return false;
  }

  const Pattern& pattern_;
  NearMatch* near_;
  Match match_;
  std::size_t matched_ = 0;
  int steps_ = 0;
};

std::optional<Match> match(const Pattern& pattern, Node& root, NearMatch* near_match) {
  return Matcher(pattern, root, near_match).run(root);
}

std::vector<std::string> root_operators(const Pattern& pattern) {
  std::vector<std::string> names;
  for (const PatternCall& call : pattern.lines[pattern.root].alternatives) {
    names.push_back(call.domain.empty() ? call.op_type : call.domain + '.' + call.op_type);
  }
  return names;
}

}  // namespace mk
