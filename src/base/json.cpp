#include "base/json.h"

#include <algorithm>
#include <limits>

#include "base/spelling.h"

namespace mk {
namespace {

const Json& null_value() {
  static const Json null;
  return null;
}

// RFC 6901.
std::string escaped(std::string_view key) {
  std::string text;
  for (const char c : key) {
    if (c == '~') {
      text += "~0";
    } else if (c == '/') {
      text += "~1";
    } else {
      text += c;
    }
  }
  return text;
}

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array of " + std::to_string(value.size());
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    const double number = value.get<double>();
    return std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity";
  }
  std::string text = dump_json(value, -1);
  constexpr std::size_t longest = 60;
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

template <typename T, typename Convert>
Result<std::vector<T>> all(const JsonView& view, std::string_view what, Convert convert) {
  if (!view.is_array()) return tl::make_unexpected(view.expected(what));
  std::vector<T> values;
  values.reserve(view.size());
  for (std::size_t i = 0; i < view.size(); ++i) {
    MK_TRY(values.emplace_back(), convert(view.at(i)));
  }
  return values;
}

}  // namespace

JsonView::JsonView(const Json& value, std::string document, ErrorCode code)
    : value_(&value), document_(std::move(document)), code_(code) {}

std::string JsonView::where() const { return pointer_.empty() ? document_ : document_ + "#" + pointer_; }

bool JsonView::has(std::string_view key) const { return !at(key).is_null(); }

JsonView JsonView::at(std::string_view key) const {
  const Json* found = &null_value();
  if (value_->is_object()) {
    if (const auto member = value_->find(key); member != value_->end()) found = &*member;
  }
  return {found, document_, pointer_ + "/" + escaped(key), code_};
}

JsonView JsonView::at(std::size_t index) const {
  const Json* found = value_->is_array() && index < value_->size() ? &(*value_)[index] : &null_value();
  return {found, document_, pointer_ + "/" + std::to_string(index), code_};
}

std::size_t JsonView::size() const { return is_array() || is_object() ? value_->size() : 0; }
bool JsonView::is_null() const { return value_->is_null(); }
bool JsonView::is_object() const { return value_->is_object(); }
bool JsonView::is_array() const { return value_->is_array(); }
bool JsonView::is_string() const { return value_->is_string(); }
bool JsonView::is_number() const { return value_->is_number(); }
bool JsonView::is_bool() const { return value_->is_boolean(); }

Result<std::int64_t> JsonView::integer() const {
  if (value_->is_number_unsigned()) {
    const auto value = value_->get<std::uint64_t>();
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return static_cast<std::int64_t>(value);
    }
    return tl::make_unexpected(expected("an integer of 64 bits"));
  }
  if (value_->is_number_integer()) return value_->get<std::int64_t>();
  if (value_->is_number_float()) {
    const double value = value_->get<double>();
    if (value == std::trunc(value) && std::isfinite(value)) {
      constexpr double limit = 9223372036854775808.0;
      if (value > -limit && value < limit) return static_cast<std::int64_t>(value);
      return tl::make_unexpected(expected("an integer of 64 bits"));
    }
  }
  return tl::make_unexpected(expected("an integer"));
}

Result<double> JsonView::number() const {
  if (!value_->is_number()) return tl::make_unexpected(expected("a number"));
  return value_->get<double>();
}

Result<bool> JsonView::boolean() const {
  if (!value_->is_boolean()) return tl::make_unexpected(expected("true or false"));
  return value_->get<bool>();
}

Result<std::string> JsonView::string() const {
  if (!value_->is_string()) return tl::make_unexpected(expected("a string"));
  return value_->get<std::string>();
}

Result<std::vector<std::int64_t>> JsonView::integers() const {
  return all<std::int64_t>(*this, "a list of integers", [](const JsonView& item) { return item.integer(); });
}

Result<std::vector<double>> JsonView::numbers() const {
  return all<double>(*this, "a list of numbers", [](const JsonView& item) { return item.number(); });
}

Result<std::vector<std::string>> JsonView::strings() const {
  return all<std::string>(*this, "a list of strings", [](const JsonView& item) { return item.string(); });
}

Error JsonView::expected(std::string_view what) const {
  return error("expected " + std::string(what) + ", got " + shown(*value_));
}

Error JsonView::error(std::string message, std::string hint) const {
  return {.code = code_, .message = std::move(message), .where = where(), .hint = std::move(hint)};
}

Status JsonView::only_keys(std::initializer_list<std::string_view> known) const {
  if (!value_->is_object()) return tl::make_unexpected(expected("an object"));
  for (const auto& [key, value] : value_->get_ref<const Json::object_t&>()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    std::string hint;
    if (const auto near = nearest(key, {known.begin(), known.size()})) {
      hint = "Did you mean '" + std::string(*near) + "'?";
    } else if (known.size() > 0) {
      hint = "Known keys:";
      for (const std::string_view name : known) hint += (name == *known.begin() ? " " : ", ") + std::string(name);
    }
    return tl::make_unexpected(error("unknown key '" + key + "'", std::move(hint)));
  }
  return {};
}

}  // namespace mk
