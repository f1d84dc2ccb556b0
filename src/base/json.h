#pragma once
// JSON with errors that point: every message names the file and the JSON pointer.
// Include base/json_fwd.h in headers; this one is heavy.

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/path.h"
#include "base/result.h"

namespace mk {

// Syntax errors give line and column. `name` is what the message calls the text (a file's path, an option).
// `code` is usage for a user's configuration file, malformed for a checkpoint's.
Result<Json> parse_json(std::string_view text, std::string_view name, ErrorCode code = ErrorCode::malformed);
// A user's file (of code usage) may be a pipe.
Result<Json> read_json(const Path& path, ErrorCode code = ErrorCode::malformed);

// As Python's json.dumps(indent=2, ensure_ascii=True) prints it, without a final newline. NaN and infinities are null.
std::string dump_json(const Json& json, int indent = 2);

// A place in a document: the value, and how to name it in an error. Cheap to copy; does not own the document.
class JsonView {
 public:
  JsonView(const Json& value, std::string document, ErrorCode code = ErrorCode::malformed);

  // The same place of the document with another value (a rewritten section); `value` must outlive the view.
  JsonView with_value(const Json& value) const { return {&value, document_, pointer_, code_}; }

  const Json& json() const { return *value_; }
  const std::string& pointer() const { return pointer_; }
  std::string where() const;  // "config.json#/text_config/hidden_size"

  bool has(std::string_view key) const;     // there and not null
  JsonView at(std::string_view key) const;  // a view of null where there is none
  JsonView at(std::size_t index) const;
  std::size_t size() const;
  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_number() const;
  bool is_bool() const;

  Result<std::int64_t> integer() const;  // 8 and 8.0; not 8.5, not "8", not true
  Result<double> number() const;
  Result<bool> boolean() const;
  Result<std::string> string() const;
  Result<std::vector<std::int64_t>> integers() const;
  Result<std::vector<double>> numbers() const;
  Result<std::vector<std::string>> strings() const;

  // "expected WHAT, got 3 (config.json#/pointer)"
  Error expected(std::string_view what) const;
  // "WHAT (config.json#/pointer)"
  Error error(std::string message, std::string hint = {}) const;
  // An error for the first key that is not in `known`, with the nearest known one as the hint.
  Status only_keys(std::initializer_list<std::string_view> known) const;

 private:
  JsonView(const Json* value, std::string document, std::string pointer, ErrorCode code)
      : value_(value), document_(std::move(document)), pointer_(std::move(pointer)), code_(code) {}
  const Json* value_;
  std::string document_;
  std::string pointer_;
  ErrorCode code_;
};

}  // namespace mk
