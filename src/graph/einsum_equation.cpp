#include "graph/einsum_equation.h"

namespace mk {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Letters, with "..." at most once among them.
bool is_term(std::string_view term) {
  bool ellipsis = false;
  for (std::size_t i = 0; i < term.size(); ++i) {
    if (is_letter(term[i])) continue;
    if (ellipsis || term.substr(i, 3) != "...") return false;
    ellipsis = true;
    i += 2;
  }
  return true;
}

}  // namespace

std::optional<std::string> plain_einsum_equation(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != ' ' && c != '\t') plain += c;
  }
  const std::size_t arrow = plain.find("->");
  std::string_view left = std::string_view(plain).substr(0, arrow);
  if (arrow != std::string::npos && !is_term(std::string_view(plain).substr(arrow + 2))) return std::nullopt;
  while (true) {
    const std::size_t comma = left.find(',');
    if (!is_term(left.substr(0, comma))) return std::nullopt;
    if (comma == std::string_view::npos) return plain;
    left.remove_prefix(comma + 1);
  }
}

}  // namespace mk
