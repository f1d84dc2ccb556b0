#include "graph/symbolic_int.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <utility>

namespace mk {
namespace {

constexpr std::size_t max_terms = 12;
constexpr std::size_t max_factors = 8;
constexpr std::size_t max_text = 400;

bool add_into(std::int64_t& target, std::int64_t value) { return !__builtin_add_overflow(target, value, &target); }

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

std::string product_text(const std::vector<std::string>& factors) {
  std::string text;
  for (const std::string& factor : factors) {
    if (!text.empty()) text += '*';
    text += factor;
  }
  return text;
}

}  // namespace

namespace {

// What "floor(DIVIDEND/DIVISOR)" divides by what; nothing for other names.
struct Quotient {
  SymbolicInt dividend;
  std::int64_t divisor = 1;
};
std::optional<Quotient> quotient_of(std::string_view factor) {
  constexpr std::string_view opening = "floor(";
  const std::size_t slash = factor.rfind('/');
  if (!factor.starts_with(opening) || !factor.ends_with(')') || slash == std::string_view::npos) return std::nullopt;
  const SymbolicInt divisor = SymbolicInt::of_text(factor.substr(slash + 1, factor.size() - slash - 2));
  std::string_view dividend = factor.substr(opening.size(), slash - opening.size());
  if (dividend.starts_with('(') && dividend.ends_with(')')) dividend = dividend.substr(1, dividend.size() - 2);
  if (!divisor.is_known() || divisor.value() <= 0 || dividend.empty()) return std::nullopt;
  return Quotient{SymbolicInt::of_text(dividend), divisor.value()};
}

}  // namespace

// Reads the canonical text and small departures from it:  sum of products of integers, names and NAME(...).
// A '-' is an operator only between spaces (or as a sign in front), since names such as "batch-size" are common.
class SymbolicParser {
 public:
  explicit SymbolicParser(std::string_view text) : text_(text) {}

  std::optional<SymbolicInt> parse() {
    SymbolicInt sum;
    std::int64_t sign = take_sign() ? -1 : 1;
    while (true) {
      if (!product(sign, sum)) return std::nullopt;
      if (at_ == text_.size()) return sum;
      if (take(" + ") || take("+")) {
        sign = 1;
      } else if (take(" - ")) {
        sign = -1;
      } else {
        return std::nullopt;
      }
    }
  }

 private:
  bool take(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  bool take_sign() { return text_.size() > 1 && text_[0] == '-' && !std::isspace(byte(1)) && take("-"); }
  int byte(std::size_t i) const { return static_cast<unsigned char>(text_[i]); }

  bool product(std::int64_t sign, SymbolicInt& sum) {
    std::int64_t coefficient = sign;
    std::vector<std::string> factors;
    do {
      const std::string_view word = take_word();
      if (word.empty()) return false;
      if (std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        std::int64_t number = 0;
        for (const char c : word) {
          if (__builtin_mul_overflow(number, 10, &number) || !add_into(number, c - '0')) return false;
        }
        if (__builtin_mul_overflow(coefficient, number, &coefficient)) return false;
      } else {
        factors.emplace_back(word);
      }
    } while (take("*") || take(" * "));
    std::sort(factors.begin(), factors.end());
    return factors.size() <= max_factors && sum.terms_.size() <= max_terms && sum.accumulate(coefficient, factors);
  }

  // A name or a number; a name goes on over its argument list.
  std::string_view take_word() {
    const std::size_t start = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '(' && at_ > start) {
        int depth = 0;
        do {
          depth += text_[at_] == '(' ? 1 : text_[at_] == ')' ? -1 : 0;
        } while (++at_ < text_.size() && depth > 0);
        if (depth != 0) return {};
        break;
      }
      if (std::isspace(byte(at_)) || c == '+' || c == '*' || c == '/' || c == '(' || c == ')' || c == ',') break;
      ++at_;
    }
    return text_.substr(start, at_ - start);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

SymbolicInt SymbolicInt::of_text(std::string_view text) {
  const bool composed = text.find_first_of("+-* (") != std::string_view::npos || (!text.empty() && text[0] <= '9');
  if (composed && text.size() <= max_text) {
    if (auto parsed = SymbolicParser(text).parse()) return *std::move(parsed);
  }
  SymbolicInt symbol;
  symbol.terms_.push_back({1, {std::string(text)}});
  return symbol;
}

std::optional<SymbolicInt> SymbolicInt::of(const Dim& dim) {
  if (dim.is_known()) return SymbolicInt(dim.value);
  if (dim.is_symbolic()) return of_text(dim.symbol);
  return std::nullopt;
}

bool SymbolicInt::is_non_negative(std::int64_t least) const {
  std::int64_t smallest = constant_;
  for (const Term& term : terms_) {
    bool composed = false;
    for (const std::string& factor : term.factors) {
      if (factor.find('(') == std::string::npos) continue;
      if (factor.find('-') != std::string::npos) return false;
      composed = true;  // at least 0
    }
    if (term.coefficient < 0) return false;
    if (!composed && least > 0 && !add_into(smallest, term.coefficient)) return false;
  }
  return smallest >= 0;
}

std::string SymbolicInt::to_string() const {
  std::string text;
  for (const Term& term : terms_) {
    const bool negative = term.coefficient < 0;
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    // The magnitude of the most negative number is one that int64 has not.
    const std::uint64_t magnitude =
        negative ? 0 - static_cast<std::uint64_t>(term.coefficient) : static_cast<std::uint64_t>(term.coefficient);
    if (magnitude != 1) text += std::to_string(magnitude) + '*';
    text += product_text(term.factors);
  }
  if (text.empty()) return std::to_string(constant_);
  if (constant_ > 0) text += " + " + std::to_string(constant_);
  if (constant_ < 0) text += " - " + std::to_string(0 - static_cast<std::uint64_t>(constant_));
  return text;
}

Dim SymbolicInt::to_dim() const {
  if (!is_known()) return Dim::symbolic(to_string());
  return constant_ < 0 ? Dim{} : Dim::known(constant_);
}

bool SymbolicInt::accumulate(std::int64_t coefficient, const std::vector<std::string>& factors) {
  if (coefficient == 0) return true;
  if (factors.empty()) return add_into(constant_, coefficient);
  const auto at = std::lower_bound(terms_.begin(), terms_.end(), factors,
                                   [](const Term& term, const auto& key) { return term.factors < key; });
  if (at == terms_.end() || at->factors != factors) {
    terms_.insert(at, {coefficient, factors});
    return true;
  }
  if (!add_into(at->coefficient, coefficient)) return false;
  if (at->coefficient == 0) terms_.erase(at);
  return true;
}

SymbolicInt::Maybe SymbolicInt::within_limits() && {
  if (terms_.size() > max_terms) return std::nullopt;
  std::size_t length = 0;
  for (const Term& term : terms_) {
    if (term.factors.size() > max_factors) return std::nullopt;
    for (const std::string& factor : term.factors) length += factor.size();
  }
  if (length > max_text) return std::nullopt;
  return std::move(*this);
}

SymbolicInt::Maybe add(const SymbolicInt& a, const SymbolicInt& b) {
  SymbolicInt sum = a;
  if (!add_into(sum.constant_, b.constant_)) return std::nullopt;
  for (const auto& term : b.terms_) {
    if (!sum.accumulate(term.coefficient, term.factors)) return std::nullopt;
  }
  return std::move(sum).within_limits();
}

SymbolicInt::Maybe subtract(const SymbolicInt& a, const SymbolicInt& b) {
  const auto negated = multiply(b, -1);
  return negated ? add(a, *negated) : std::nullopt;
}

SymbolicInt::Maybe multiply(const SymbolicInt& a, const SymbolicInt& b) {
  SymbolicInt product;
  const auto accumulate = [&](std::int64_t x, const std::vector<std::string>& left, std::int64_t y,
                              const std::vector<std::string>& right) {
    std::int64_t coefficient = 0;
    if (__builtin_mul_overflow(x, y, &coefficient)) return false;
    std::vector<std::string> factors = left;
    factors.insert(factors.end(), right.begin(), right.end());
    std::sort(factors.begin(), factors.end());
    return product.accumulate(coefficient, factors);
  };
  if (!accumulate(a.constant_, {}, b.constant_, {})) return std::nullopt;
  for (const auto& term : a.terms_) {
    if (!accumulate(term.coefficient, term.factors, b.constant_, {})) return std::nullopt;
    for (const auto& other : b.terms_) {
      if (!accumulate(term.coefficient, term.factors, other.coefficient, other.factors)) return std::nullopt;
    }
  }
  for (const auto& other : b.terms_) {
    if (!accumulate(a.constant_, {}, other.coefficient, other.factors)) return std::nullopt;
  }
  return std::move(product).within_limits();
}

SymbolicInt::Maybe divide_exactly(const SymbolicInt& a, const SymbolicInt& b) {
  if (a == b && !(b == SymbolicInt(0))) return SymbolicInt(1);
  // The divisor must be one product; each term of `a` must then contain it.
  const bool known = b.is_known();
  if (known ? b.constant_ == 0 : (b.terms_.size() != 1 || b.constant_ != 0)) return std::nullopt;
  const std::int64_t divisor = known ? b.constant_ : b.terms_[0].coefficient;
  const std::vector<std::string> factors = known ? std::vector<std::string>{} : b.terms_[0].factors;
  SymbolicInt quotient;
  const auto divides = [&](std::int64_t x) {
    return divisor == -1 ? x != std::numeric_limits<std::int64_t>::min() : x % divisor == 0;
  };
  if (!divides(a.constant_) || (a.constant_ != 0 && !factors.empty())) return std::nullopt;
  quotient.constant_ = a.constant_ / divisor;
  for (const auto& term : a.terms_) {
    if (!divides(term.coefficient) ||
        !std::includes(term.factors.begin(), term.factors.end(), factors.begin(), factors.end())) {
      return std::nullopt;
    }
    std::vector<std::string> rest;
    std::set_difference(term.factors.begin(), term.factors.end(), factors.begin(), factors.end(),
                        std::back_inserter(rest));
    if (!quotient.accumulate(term.coefficient / divisor, rest)) return std::nullopt;
  }
  return quotient;
}

SymbolicInt::Maybe divide_down(const SymbolicInt& a, std::int64_t b) {
  if (b <= 0) return std::nullopt;
  if (a.is_known()) return SymbolicInt(floor_quotient(a.constant_, b));
  // Whole multiples of b come out of the floor; of the constant too, so that equal lengths look equal.
  SymbolicInt whole(floor_quotient(a.constant_, b));
  SymbolicInt rest(a.constant_ - whole.constant_ * b);
  for (const auto& term : a.terms_) {
    SymbolicInt& side = term.coefficient % b == 0 ? whole : rest;
    if (!side.accumulate(&side == &whole ? term.coefficient / b : term.coefficient, term.factors)) return std::nullopt;
  }
  if (rest.is_known()) return whole;
  if (rest.terms_.size() == 1 && rest.terms_[0].coefficient == 1 && rest.terms_[0].factors.size() == 1) {
    // floor((floor(x/m) + c)/b) is floor((x + c*m)/(m*b)): halving twice is dividing by four.
    const auto nested = quotient_of(rest.terms_[0].factors[0]);
    std::int64_t divisor = 0;
    std::int64_t shift = 0;
    if (nested && !__builtin_mul_overflow(nested->divisor, b, &divisor) &&
        !__builtin_mul_overflow(nested->divisor, rest.constant_, &shift)) {
      const auto dividend = add(nested->dividend, shift);
      const auto quotient = dividend ? divide_down(*dividend, divisor) : std::nullopt;
      return quotient ? add(whole, *quotient) : std::nullopt;
    }
  }
  const std::string inner = rest.to_string();
  const bool simple = rest.terms_.size() == 1 && rest.constant_ == 0;
  const std::string text = "floor(" + (simple ? inner : "(" + inner + ")") + "/" + std::to_string(b) + ")";
  if (!whole.accumulate(1, {text})) return std::nullopt;
  return std::move(whole).within_limits();
}

SymbolicInt::Maybe divide_up(const SymbolicInt& a, std::int64_t b) {
  const auto shifted = b > 0 ? add(a, b - 1) : std::nullopt;
  return shifted ? divide_down(*shifted, b) : std::nullopt;
}

SymbolicInt::Maybe minimum(const SymbolicInt& a, const SymbolicInt& b) {
  const auto difference = subtract(a, b);
  if (difference && difference->is_non_negative()) return b;
  const auto opposite = subtract(b, a);
  if (opposite && opposite->is_non_negative()) return a;
  std::string first = a.to_string();
  std::string second = b.to_string();
  if (b.is_known() || (!a.is_known() && second < first)) std::swap(first, second);
  SymbolicInt result;
  result.terms_.push_back({1, {"min(" + first + ", " + second + ")"}});
  return std::move(result).within_limits();
}

}  // namespace mk
