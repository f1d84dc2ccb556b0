#include "runtime/input_shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>

#include "base/json.h"
#include "base/spelling.h"

namespace mk {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::int64_t default_at(std::size_t axis, std::int64_t batch) {
  if (axis == 0) return batch;
  return axis == 2 || axis == 3 ? 224 : 128;
}

class Chooser {
 public:
  Chooser(const ShapeOverrides& overrides, std::int64_t batch) : overrides_(overrides), batch_(batch) {}

  // Symbols that stand alone first: sums are made of them.
  void note_symbols(const Port& port) {
    if (!port.type.shape || overrides_.shapes.contains(port.name)) return;
    for (std::size_t axis = 0; axis < port.type.shape->size(); ++axis) {
      const Dim& dim = (*port.type.shape)[axis];
      if (dim.is_known() || dim.symbol.empty() || is_sum(dim.symbol)) continue;
      const auto given = overrides_.symbols.find(dim.symbol);
      values_.try_emplace(dim.symbol, given != overrides_.symbols.end() ? given->second : default_at(axis, batch_));
    }
  }

  // A list for the whole input says what its symbols are. False where it contradicts what is known of them, or the
  // input's own shape.
  bool note_override(const Port& port) {
    const auto given = overrides_.shapes.find(port.name);
    if (given == overrides_.shapes.end() || !port.type.shape) return true;
    if (port.type.shape->size() != given->second.size()) return false;
    for (std::size_t axis = 0; axis < given->second.size(); ++axis) {
      const Dim& dim = (*port.type.shape)[axis];
      const std::int64_t size = given->second[axis];
      if (dim.is_known() ? dim.value != size : !agrees(dim.symbol, size)) return false;
    }
    return true;
  }

  std::vector<std::int64_t> dims_of(const Port& port, std::vector<std::pair<std::string, std::int64_t>>& told) {
    const auto given = overrides_.shapes.find(port.name);
    const bool has_override = given != overrides_.shapes.end();
    if (!port.type.shape) return has_override ? given->second : std::vector<std::int64_t>{batch_};
    std::vector<std::int64_t> dims;
    for (std::size_t axis = 0; axis < port.type.shape->size(); ++axis) {
      const Dim& dim = (*port.type.shape)[axis];
      if (dim.is_known()) {
        dims.push_back(dim.value);
        continue;
      }
      const bool overridden = has_override && axis < given->second.size();
      dims.push_back(overridden ? given->second[axis] : value_of(dim.symbol, axis));
      const std::string label = dim.symbol.empty() ? port.name + "[" + std::to_string(axis) + "]" : dim.symbol;
      bool known = false;
      for (const auto& [name, value] : told) known = known || (name == label && value == dims.back());
      if (!known) told.emplace_back(label, dims.back());
    }
    return has_override ? given->second : dims;
  }

 private:
  bool agrees(const std::string& symbol, std::int64_t size) {
    if (symbol.empty()) return true;
    const auto given = overrides_.symbols.find(symbol);
    return (given == overrides_.symbols.end() || given->second == size) &&
           values_.try_emplace(symbol, size).first->second == size;
  }

  static bool is_sum(std::string_view symbol) { return symbol.find('+') != std::string_view::npos; }

  std::int64_t value_of(const std::string& symbol, std::size_t axis) {
    if (symbol.empty()) return default_at(axis, batch_);
    if (const auto given = overrides_.symbols.find(symbol); given != overrides_.symbols.end()) return given->second;
    if (const auto known = values_.find(symbol); known != values_.end()) return known->second;
    const auto sum = sum_of(symbol);
    return values_.try_emplace(symbol, sum ? *sum : default_at(axis, batch_)).first->second;
  }

  std::optional<std::int64_t> sum_of(std::string_view symbol) const {
    if (!is_sum(symbol)) return std::nullopt;
    std::int64_t sum = 0;
    for (std::size_t start = 0; start <= symbol.size();) {
      const std::size_t end = std::min(symbol.find('+', start), symbol.size());
      const std::string part(trimmed(symbol.substr(start, end - start)));
      if (const auto number = number_in(part)) {
        sum += *number;
      } else if (const auto known = values_.find(part); known != values_.end()) {
        sum += known->second;
      } else {
        return std::nullopt;
      }
      start = end + 1;
    }
    return sum;
  }

  const ShapeOverrides& overrides_;
  std::int64_t batch_;
  std::map<std::string, std::int64_t> values_;
};

Status refuse_unknown(std::span<const Port> inputs, const ShapeOverrides& overrides) {
  std::vector<std::string_view> names, symbols;
  for (const Port& port : inputs) {
    names.push_back(port.name);
    if (!port.type.shape) continue;
    for (const Dim& dim : *port.type.shape)
      if (!dim.symbol.empty()) symbols.push_back(dim.symbol);
  }
  const auto check = [&](const std::string& key, std::span<const std::string_view> known,
                         std::string_view what) -> Status {
    if (std::ranges::find(known, key) != known.end()) return {};
    std::string hint = "It has none of its own";
    if (const auto near = nearest(key, known)) {
      hint = "Did you mean '" + std::string(*near) + "'?";
    } else if (!known.empty()) {
      hint = "It has";
      std::set<std::string_view> told;
      for (const std::string_view name : known)
        if (told.insert(name).second) hint.append(told.size() == 1 ? " " : ", ").append(name);
    }
    return fail(ErrorCode::usage, fmt::format("the model has no {} '{}'", what, key), overrides.where + "#/" + key,
                std::move(hint));
  };
  for (const auto& [key, value] : overrides.shapes) MK_CHECK(check(key, names, "input"));
  for (const auto& [key, value] : overrides.symbols) MK_CHECK(check(key, symbols, "dynamic dimension"));
  return {};
}

Result<std::int64_t> override_number(const JsonView& value) {
  std::optional<std::int64_t> number;
  if (value.is_string()) {
    const std::string text = value.json().get<std::string>();
    number = number_in(trimmed(text));
  } else if (value.is_number()) {
    if (const auto whole = value.integer()) number = *whole;
  }
  if (!number || *number < 0)
    return tl::make_unexpected(value.expected("a whole number of at least 0, or a list of them"));
  return *number;
}

}  // namespace

Result<ShapeOverrides> read_shape_overrides(const Path& path) {
  MK_TRY(const auto json, read_json(path, ErrorCode::usage));
  const JsonView root(json, to_utf8(path), ErrorCode::usage);
  if (!root.is_object()) return tl::make_unexpected(root.expected("an object of shapes"));
  ShapeOverrides overrides{.shapes = {}, .symbols = {}, .where = to_utf8(path)};
  for (const auto& [key, ignored] : json.items()) {
    const JsonView value = root.at(key);
    if (!value.is_array()) {
      MK_TRY(overrides.symbols[key], override_number(value));
      continue;
    }
    auto& shape = overrides.shapes[key];
    for (std::size_t i = 0; i < value.size(); ++i) {
      MK_TRY(const auto dim, override_number(value.at(i)));
      shape.push_back(dim);
    }
  }
  return overrides;
}

Result<ChosenShapes> choose_shapes(std::span<const Port> inputs, const ShapeOverrides& overrides, std::int64_t batch) {
  MK_CHECK(refuse_unknown(inputs, overrides));
  Chooser chooser(overrides, batch);
  for (const Port& port : inputs) {
    if (chooser.note_override(port)) continue;
    return fail(ErrorCode::usage,
                fmt::format("{} cannot be the shape of '{}', which is {}",
                            to_string(static_shape(overrides.shapes.at(port.name))), port.name, to_string(port.type)),
                overrides.where + "#/" + port.name, "Dimensions of one name have one size");
  }
  for (const Port& port : inputs) chooser.note_symbols(port);
  ChosenShapes chosen;
  for (const Port& port : inputs) {
    if (!port.type.is_tensor())
      return fail(ErrorCode::unsupported, "input '" + port.name + "' is no tensor: no values can be made for it");
    chosen.inputs.push_back({port.name, port.type.element, chooser.dims_of(port, chosen.dynamic), std::nullopt});
    const std::vector<std::int64_t>& dims = chosen.inputs.back().dims;
    if (!dims.empty() && dims[0] == 0)
      return fail(ErrorCode::usage, fmt::format("the input '{}' would have no rows", port.name), overrides.where,
                  "Give its leading dimension at least 1");
  }
  return chosen;
}

std::int64_t effective_batch(std::span<const HostTensor> inputs, std::int64_t requested) {
  for (const HostTensor& input : inputs)
    if (!input.dims.empty()) return input.dims[0];
  return requested;
}

}  // namespace mk
