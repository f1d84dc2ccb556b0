#include <charconv>

#include "base/json.h"
#include "base/utf8.h"

namespace mk {
namespace {

void append_escape(std::string& out, std::uint32_t unit) {
  constexpr std::string_view digits = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += digits[unit >> shift & 0xf];
}

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const std::uint32_t code = length == 0 ? 0xfffd : utf8_code_point(text, at);
    at += length == 0 ? 1 : length;
    switch (code) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (code >= 0x10000) {
          append_escape(out, 0xd800 + ((code - 0x10000) >> 10));
          append_escape(out, 0xdc00 + ((code - 0x10000) & 0x3ff));
        } else if (code < 0x20 || code > 0x7e) {
          append_escape(out, code);
        } else {
          out += static_cast<char>(code);
        }
    }
  }
  out += '"';
}

// Python's repr of a float: the shortest digits that read back, with an exponent below 1e-4 and from 1e16 on.
void append_real(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[32];
  const char* const end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t mark = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(mark + 1)).c_str());
  if (exponent < -4 || exponent >= 16) {
    out += text;  // to_chars writes exponents as Python does: a sign and at least two digits
    return;
  }
  std::string digits;
  for (const char c : text.substr(0, mark)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  if (text.front() == '-') out += '-';
  if (exponent < 0) {
    out += "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    return;
  }
  const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    out += digits + std::string(whole - digits.size(), '0') + ".0";
  } else {
    out += digits.substr(0, whole) + "." + digits.substr(whole);
  }
}

class Printer {
 public:
  Printer(std::string& out, int indent) : out_(out), indent_(indent) {}

  void print(const Json& json, int depth) {
    switch (json.type()) {
      case Json::value_t::object:
        return print_object(json, depth);
      case Json::value_t::array:
        return print_array(json, depth);
      case Json::value_t::string:
        return append_string(out_, json.get_ref<const std::string&>());
      case Json::value_t::boolean:
        out_ += json.get<bool>() ? "true" : "false";
        return;
      case Json::value_t::number_integer:
        out_ += std::to_string(json.get<std::int64_t>());
        return;
      case Json::value_t::number_unsigned:
        out_ += std::to_string(json.get<std::uint64_t>());
        return;
      case Json::value_t::number_float:
        return append_real(out_, json.get<double>());
      case Json::value_t::null:
      case Json::value_t::binary:
      case Json::value_t::discarded:
        out_ += "null";
        return;
    }
  }

 private:
  void print_object(const Json& json, int depth) {
    if (json.empty()) {
      out_ += "{}";
      return;
    }
    out_ += '{';
    bool first = true;
    for (const auto& [key, value] : json.get_ref<const Json::object_t&>()) {
      separate(first, depth + 1);
      append_string(out_, key);
      out_ += ": ";
      print(value, depth + 1);
    }
    new_line(depth);
    out_ += '}';
  }

  void print_array(const Json& json, int depth) {
    if (json.empty()) {
      out_ += "[]";
      return;
    }
    out_ += '[';
    bool first = true;
    for (const Json& item : json) {
      separate(first, depth + 1);
      print(item, depth + 1);
    }
    new_line(depth);
    out_ += ']';
  }

  void separate(bool& first, int depth) {
    if (!first) out_ += indent_ < 0 ? ", " : ",";
    first = false;
    new_line(depth);
  }

  void new_line(int depth) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(static_cast<std::size_t>(depth) * static_cast<std::size_t>(indent_), ' ');
  }

  std::string& out_;
  int indent_;
};

}  // namespace

std::string dump_json(const Json& json, int indent) {
  std::string text;
  Printer(text, indent).print(json, 0);
  return text;
}

}  // namespace mk
