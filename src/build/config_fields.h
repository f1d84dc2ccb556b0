#pragma once
// One list of fields per section serves reading and printing. A section's `fields(section, visitor)` calls the visitor
// once per field, in the order of the document:
//
//   v("samples", quant.samples);
//   v("mode", quant.mode, choices)     one of a closed set
//   v.when(condition)("task", ...)     printed only then; read always

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/progress.h"
#include "base/spelling.h"

namespace mk {

class FieldReader {
 public:
  explicit FieldReader(const JsonView& json) : json_(json) {
    if (!json.is_object()) status_ = tl::make_unexpected(json.expected("an object"));
  }
  FieldReader& when(bool) { return *this; }
  template <typename T>
  void operator()(std::string_view key, T& target, std::initializer_list<std::string_view> choices = {}) {
    known_.push_back(key);
    if (!status_ || !json_.is_object() || !json_.json().contains(key)) return;
    const JsonView field = json_.at(key);
    status_ = read(field, target);
    if constexpr (std::is_same_v<T, std::string>) {
      if (status_ && choices.size() > 0 && std::ranges::find(choices, target) == choices.end())
        status_ = tl::make_unexpected(not_a_choice(field, target, choices));
    }
  }
  // A key that is read elsewhere, or on purpose not at all.
  void also_known(std::string_view key) { known_.push_back(key); }

  // The first error; else warns of every key that no field has.
  Status finish(Progress& progress) const {
    MK_CHECK(status_);
    for (const auto& item : json_.json().items()) {
      if (std::ranges::find(known_, item.key()) != known_.end()) continue;
      std::string text = "unknown key '" + item.key() + "' is ignored (" + json_.at(item.key()).where() + ")";
      if (const auto near = nearest(item.key(), known_)) text += ". Did you mean '" + std::string(*near) + "'?";
      progress.warn(text);
    }
    return {};
  }

 private:
  template <typename T, typename Read>
  static Status keep(T& target, Read&& value) {
    if (!value) return tl::make_unexpected(std::forward<Read>(value).error());
    target = *std::forward<Read>(value);
    return {};
  }
  static Status read(const JsonView& j, bool& t) { return keep(t, j.boolean()); }
  static Status read(const JsonView& j, std::int64_t& t) { return keep(t, j.integer()); }
  static Status read(const JsonView& j, std::string& t) { return keep(t, j.string()); }
  static Status read(const JsonView& j, std::vector<std::string>& t) { return keep(t, j.strings()); }
  static Status read(const JsonView& j, std::map<std::string, std::string>& t) {
    if (!j.is_object()) return tl::make_unexpected(j.expected("an object of strings"));
    for (const auto& item : j.json().items()) {
      MK_TRY(t[item.key()], j.at(item.key()).string());
    }
    return {};
  }
  template <typename T>
  static Status read(const JsonView& j, std::optional<T>& t) {
    t.reset();
    if (j.is_null()) return {};
    return read(j, t.emplace());
  }
  static Error not_a_choice(const JsonView& field, const std::string& value,
                            std::initializer_list<std::string_view> choices) {
    std::string list;
    for (const std::string_view choice : choices) list += (list.empty() ? "" : ", ") + std::string(choice);
    return field.error("unknown value '" + value + "'", "Expected one of " + list);
  }

  JsonView json_;
  Status status_;
  std::vector<std::string_view> known_;
};

class FieldPrinter {
 public:
  explicit FieldPrinter(Json& json) : json_(json) { json_ = Json::object(); }
  FieldPrinter& when(bool condition) {
    shown_ = condition;
    return *this;
  }
  template <typename T>
  void operator()(std::string_view key, const T& value, std::initializer_list<std::string_view> = {}) {
    if (shown_) json_[std::string(key)] = print(value);
    shown_ = true;
  }

 private:
  template <typename T>
  static Json print(const T& value) {
    return value;
  }
  template <typename T>
  static Json print(const std::optional<T>& value) {
    return value ? Json(*value) : Json(nullptr);
  }

  Json& json_;
  bool shown_ = true;
};

}  // namespace mk
