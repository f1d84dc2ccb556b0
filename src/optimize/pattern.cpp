#include "optimize/pattern.h"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <unordered_map>

namespace mk {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Pattern> run() {
    skip_blank(/*lines=*/true);
    while (ok() && position_ < text_.size()) {
      line();
      skip_blank(/*lines=*/true);
    }
    if (ok() && pattern_.lines.empty()) wrong("an assignment");
    if (!ok()) return fail(ErrorCode::usage, "a pattern needs " + expected_ + " here", place());
    pattern_.root = root_;
    return std::move(pattern_);
  }

 private:
  bool ok() const { return expected_.empty(); }
  void wrong(std::string_view what) {
    if (ok()) expected_ = what;
  }

  std::string place() const {
    std::size_t row = 1, column = 1;
    for (std::size_t i = 0; i < position_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      row += text_[i] == '\n' ? 1 : 0;
    }
    return "line " + std::to_string(row) + ", column " + std::to_string(column);
  }

  void skip_blank(bool lines) {
    while (position_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[position_])) &&
           (lines || depth_ > 0 || text_[position_] != '\n')) {
      ++position_;
    }
  }
  char peek() {
    skip_blank(false);
    return position_ < text_.size() ? text_[position_] : '\0';
  }
  bool take(std::string_view token) {
    skip_blank(false);
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) wrong("'" + std::string(token) + "'");
  }

  std::string identifier() {
    skip_blank(false);
    const std::size_t start = position_;
    const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
    if (position_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[position_]))) return {};
    while (position_ < text_.size() && is_part(text_[position_])) {
      if (text_.substr(position_, 3) == "...") break;
      ++position_;
    }
    return std::string(text_.substr(start, position_ - start));
  }

  double number() {
    skip_blank(false);
    const std::string rest(text_.substr(position_, 40));
    char* end = nullptr;
    const double value = std::strtod(rest.c_str(), &end);
    if (end == rest.c_str()) wrong("a number");
    position_ += static_cast<std::size_t>(end - rest.c_str());
    return value;
  }

  std::uint32_t name(const std::string& text) {
    const auto [found, is_new] = by_text_.emplace(text, static_cast<std::uint32_t>(pattern_.names.size()));
    if (is_new) pattern_.names.push_back({text});
    return found->second;
  }

  void define(std::uint32_t line_number, std::uint32_t name_index) {
    Pattern::Name& defined = pattern_.names[name_index];
    if (defined.line != Pattern::none) return wrong("a name that no other line defines");
    defined.line = line_number;
    defined.output = static_cast<std::uint32_t>(pattern_.lines[line_number].outputs.size());
    pattern_.lines[line_number].outputs.push_back(name_index);
  }

  void line() {
    const auto number_of_line = static_cast<std::uint32_t>(pattern_.lines.size());
    root_ = number_of_line;
    pattern_.lines.emplace_back();
    do {
      const std::string text = identifier();
      if (text.empty()) return wrong("a name");
      define(number_of_line, name(text));
      if (take("*")) pattern_.lines[number_of_line].shared = true;
    } while (ok() && take(","));
    need("=");
    alternatives(number_of_line);
    if (ok() && peek() != '\n' && peek() != '\0') wrong("the end of the line");
  }

  void alternatives(std::uint32_t line_number) {
    do {
      skip_blank(true);
      PatternCall parsed = call(identifier());
      pattern_.lines[line_number].alternatives.push_back(std::move(parsed));
    } while (ok() && take("|"));
  }

  PatternCall call(const std::string& callee) {
    PatternCall result;
    const std::size_t dot = callee.rfind('.');
    if (dot != std::string::npos) result.domain = callee.substr(0, dot);
    result.op_type = dot == std::string::npos ? callee : callee.substr(dot + 1);
    if (result.op_type.empty()) wrong("an operator");
    result.skippable = take("?");
    need("(");
    ++depth_;
    while (ok() && peek() != ')') {
      argument(result);
      if (!take(",")) break;
    }
    --depth_;
    need(")");
    return result;
  }

  void argument(PatternCall& result) {
    if (take("...")) {
      result.open_ended = true;
      return;
    }
    if (take("(")) {
      result.inputs.push_back(nested({}));
      need(")");
      return;
    }
    const std::string word = identifier();
    if (word.empty()) {
      result.inputs.push_back({.kind = PatternTerm::Kind::number, .number = number()});
    } else if (peek() == '=') {
      take("=");
      result.attributes.push_back({word, attribute_value()});
    } else if (word == "_") {
      result.inputs.push_back({.kind = PatternTerm::Kind::anything, .optional = true});
    } else if (peek() == '(' || (peek() == '?' && text_.substr(position_, 2) == "?(")) {
      result.inputs.push_back(nested(word));
    } else {
      PatternTerm term{.kind = PatternTerm::Kind::name, .name = name(word)};
      term.optional = take("?");
      term.constant = take("!");
      result.inputs.push_back(term);
    }
  }

  // A call inside another is a line of its own, whose output has no name.
  PatternTerm nested(const std::string& callee) {
    const auto line_number = static_cast<std::uint32_t>(pattern_.lines.size());
    const auto name_index = static_cast<std::uint32_t>(pattern_.names.size());
    pattern_.lines.emplace_back();
    pattern_.names.emplace_back();
    define(line_number, name_index);
    if (callee.empty()) {
      alternatives(line_number);
    } else {
      PatternCall parsed = call(callee);
      pattern_.lines[line_number].alternatives.push_back(std::move(parsed));
    }
    return {.kind = PatternTerm::Kind::name, .name = name_index};
  }

  PatternAttribute::Value attribute_value() {
    if (take("\"")) {
      const std::size_t end = std::min(text_.find('"', position_), text_.size());
      std::string value(text_.substr(position_, end - position_));
      position_ = end;
      need("\"");
      return value;
    }
    if (!take("[")) return number();
    std::vector<std::int64_t> values;
    while (ok() && peek() != ']') {
      values.push_back(static_cast<std::int64_t>(number()));
      if (!take(",")) break;
    }
    need("]");
    return values;
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int depth_ = 0;
  std::uint32_t root_ = 0;
  std::string expected_;
  Pattern pattern_;
  std::unordered_map<std::string, std::uint32_t> by_text_;
};

}  // namespace

std::uint32_t Pattern::find(std::string_view wanted) const {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].text == wanted) return static_cast<std::uint32_t>(i);
  }
  return none;
}

Result<Pattern> parse_pattern(std::string_view text) { return Parser(text).run(); }

}  // namespace mk
