// A JSON reader (RFC 8259, plus NaN, Infinity and -Infinity as Python writes them, and a byte order mark in front).
// Its own rather than nlohmann's: that one does not take those, reports no column, and finds duplicate keys in an
// ordered object by walking it for each key, which is slow for the label maps of 20,000 classes.

#include <charconv>
#include <cstdlib>
#include <limits>
#include <unordered_map>

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"

namespace mk {
namespace {

constexpr int deepest = 200;

struct SyntaxError {
  std::size_t position;
  std::string what;
};

// Errors are kept in error_; every function answers false once there is one.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  bool parse(Json& out) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
    skip_blanks();
    if (!value(out, 0)) return false;
    skip_blanks();
    return at_ == text_.size() || wrong("expected the end after the value");
  }
  const SyntaxError& error() const { return error_; }

 private:
  bool wrong(std::string what) { return wrong_at(at_, std::move(what)); }
  bool wrong_at(std::size_t position, std::string what) {
    error_ = {position, std::move(what)};
    return false;
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  std::string found() const {
    if (at_ >= text_.size()) return "the end";
    const unsigned char c = static_cast<unsigned char>(text_[at_]);
    if (c < 0x20 || c == 0x7f) return "a control character";
    return "'" + std::string(text_.substr(at_, std::max<std::size_t>(1, utf8_length(text_, at_)))) + "'";
  }

  bool value(Json& out, int depth) {
    if (depth > deepest) return wrong("nested more than " + std::to_string(deepest) + " deep");
    switch (peek()) {
      case '{':
        return object(out, depth);
      case '[':
        return array(out, depth);
      case '"':
        out = std::string();
        return string(out.get_ref<std::string&>());
      case 't':
        if (take("true")) return out = true, true;
        break;
      case 'f':
        if (take("false")) return out = false, true;
        break;
      case 'n':
        if (take("null")) return out = nullptr, true;
        break;
      default:
        return number(out);
    }
    return wrong("expected a value, found " + found());
  }

  bool object(Json& out, int depth) {
    out = Json::object();
    auto& members = static_cast<Json::object_t::Container&>(out.get_ref<Json::object_t&>());
    std::unordered_map<std::string, std::size_t> places;
    ++at_;
    skip_blanks();
    if (take("}")) return true;
    while (true) {
      std::string key;
      if (peek() != '"') return wrong("expected a key in double quotes, found " + found());
      if (!string(key)) return false;
      skip_blanks();
      if (!take(":")) return wrong("expected ':' after the key, found " + found());
      skip_blanks();
      // As in Python, the last of equal keys wins and keeps the first one's place.
      const auto [place, is_new] = places.try_emplace(key, members.size());
      if (is_new) members.emplace_back(std::move(key), nullptr);
      if (!value(members[place->second].second, depth + 1)) return false;
      skip_blanks();
      if (take("}")) return true;
      if (!take(",")) return wrong("expected ',' or '}', found " + found());
      skip_blanks();
    }
  }

  bool array(Json& out, int depth) {
    out = Json::array();
    auto& items = out.get_ref<Json::array_t&>();
    ++at_;
    skip_blanks();
    if (take("]")) return true;
    while (true) {
      if (!value(items.emplace_back(), depth + 1)) return false;
      skip_blanks();
      if (take("]")) return true;
      if (!take(",")) return wrong("expected ',' or ']', found " + found());
      skip_blanks();
    }
  }

  bool string(std::string& out) {
    const std::size_t start = at_++;
    while (true) {
      if (at_ >= text_.size()) return wrong_at(start, "the string has no end");
      const unsigned char c = static_cast<unsigned char>(text_[at_]);
      if (c == '"') return ++at_, true;
      if (c == '\\') {
        if (!escape(out)) return false;
      } else if (c < 0x20) {
        return wrong("a control character in a string: write it as an escape");
      } else {
        const std::size_t length = utf8_length(text_, at_);
        if (length == 0) return wrong("invalid UTF-8");
        out.append(text_.substr(at_, length));
        at_ += length;
      }
    }
  }

  bool escape(std::string& out) {
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const std::size_t start = at_++;
    const char letter = peek();
    if (const std::size_t known = letters.find(letter); letter != '\0' && known != letters.npos) {
      out += meanings[known];
      ++at_;
      return true;
    }
    std::uint32_t code = 0;
    if (letter != 'u' || !hex4(code)) return wrong_at(start, "an invalid escape in a string");
    if (code >= 0xd800 && code < 0xdc00) {
      std::uint32_t low = 0;
      if (peek() != '\\' || ++at_ >= text_.size() || peek() != 'u' || !hex4(low) || low < 0xdc00 || low > 0xdfff) {
        return wrong_at(start, "half of a surrogate pair in a string");
      }
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      return wrong_at(start, "half of a surrogate pair in a string");
    }
    append_utf8(out, code);
    return true;
  }

  // "u" and four digits.
  bool hex4(std::uint32_t& code) {
    const std::string_view digits = text_.substr(at_).substr(1, 4);
    const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (problem != std::errc{} || digits.size() != 4 || end != digits.data() + 4) return false;
    at_ += 5;
    return true;
  }

  bool number(Json& out) {
    if (take("NaN")) return out = std::numeric_limits<double>::quiet_NaN(), true;
    if (take("Infinity")) return out = std::numeric_limits<double>::infinity(), true;
    if (take("-Infinity")) return out = -std::numeric_limits<double>::infinity(), true;
    const std::size_t start = at_;
    const auto digits = [this] {
      const std::size_t from = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      return at_ > from;
    };
    static_cast<void>(take("-"));
    const bool leading_zero = peek() == '0';
    const std::size_t whole = at_;
    if (!digits()) return at_ = start, wrong("expected a value, found " + found());
    if (leading_zero && at_ > whole + 1) return wrong_at(start, "a number with a leading zero");
    bool is_integer = true;
    if (take(".")) {
      is_integer = false;
      if (!digits()) return wrong("expected a digit after the decimal point, found " + found());
    }
    if (take("e") || take("E")) {
      is_integer = false;
      if (!take("+")) static_cast<void>(take("-"));
      if (!digits()) return wrong("expected a digit in the exponent, found " + found());
    }
    const std::string_view token = text_.substr(start, at_ - start);
    if (!is_integer || !integer(token, out)) out = real(token);
    return true;
  }

  // False where it does not fit.
  static bool integer(std::string_view token, Json& out) {
    const auto fits = [&](auto& value) {
      return std::from_chars(token.data(), token.data() + token.size(), value).ec == std::errc{};
    };
    std::int64_t plain = 0;
    if (fits(plain)) return out = plain, true;
    std::uint64_t large = 0;
    if (token.front() != '-' && fits(large)) return out = large, true;
    return false;
  }

  static double real(std::string_view token) {
    double value = 0;
    const auto [end, problem] = std::from_chars(token.data(), token.data() + token.size(), value);
    // Out of range: strtod tells zero from infinity.
    return problem == std::errc{} ? value : std::strtod(std::string(token).c_str(), nullptr);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  SyntaxError error_{};
};

// "line 3, column 7", both from 1; columns count characters.
std::string line_and_column(std::string_view text, std::size_t position) {
  std::size_t line = 1, column = 1;
  for (const char c : text.substr(0, position)) {
    if (c == '\n') {
      ++line;
      column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
      ++column;
    }
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view name, ErrorCode code) {
  if (text.find_first_not_of(" \t\r\n") == text.npos) {
    return fail(code, "expected JSON, but it is empty", std::string(name));
  }
  Json json;
  Parser parser(text);
  if (parser.parse(json)) return json;
  const SyntaxError& error = parser.error();
  return fail(code, "invalid JSON at " + line_and_column(text, error.position) + ": " + error.what, std::string(name));
}

Result<Json> read_json(const Path& path, ErrorCode code) {
  MK_TRY(const std::string text, code == ErrorCode::usage ? read_stream(path) : read_text(path));
  return parse_json(text, to_utf8(path), code);
}

}  // namespace mk
