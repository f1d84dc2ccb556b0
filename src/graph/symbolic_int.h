#pragma once
// Integers that may depend on symbolic dimensions: polynomials in symbols with integer coefficients, and quotients of
// them rounded down, and minima: "64", "past + seq", "2*h + 1", "floor((h + 1)/2)", "min(512, seq)". Shape arithmetic
// is done on these, so that equal lengths get equal text whichever way they were computed.
//
// Operations give nothing where the result overflows 64 bits or grows beyond a few terms: such a length is unknown.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/type.h"

namespace mk {

class SymbolicInt {
 public:
  SymbolicInt() = default;
  SymbolicInt(std::int64_t value) : constant_(value) {}  // NOLINT(google-explicit-constructor)
  // A symbol, or the expression that its text is ("past + seq"); text of any other form is one opaque symbol.
  static SymbolicInt of_text(std::string_view text);
  // A known or symbolic dimension; nothing where it is unknown.
  static std::optional<SymbolicInt> of(const Dim& dim);

  bool is_known() const { return terms_.empty(); }
  std::int64_t value() const { return constant_; }  // where it is known
  // Whether it cannot be negative where symbols are at least `least`, 0 (any dimension) or 1 (of a tensor that is not
  // empty). False may mean that this is not known.
  bool is_non_negative(std::int64_t least = 0) const;
  bool is_positive() const { return is_non_negative() && constant_ > 0; }

  std::string to_string() const;
  Dim to_dim() const;  // unknown where the value is negative

  bool operator==(const SymbolicInt&) const = default;

  using Maybe = std::optional<SymbolicInt>;

 private:
  struct Term {
    std::int64_t coefficient = 0;      // never 0
    std::vector<std::string> factors;  // sorted, at least one
    bool operator==(const Term&) const = default;
  };
  friend class SymbolicParser;
  friend Maybe add(const SymbolicInt& a, const SymbolicInt& b);
  friend Maybe multiply(const SymbolicInt& a, const SymbolicInt& b);
  friend Maybe divide_exactly(const SymbolicInt& a, const SymbolicInt& b);
  friend Maybe divide_down(const SymbolicInt& a, std::int64_t b);
  friend Maybe minimum(const SymbolicInt& a, const SymbolicInt& b);
  bool accumulate(std::int64_t coefficient, const std::vector<std::string>& factors);
  Maybe within_limits() &&;

  std::int64_t constant_ = 0;
  std::vector<Term> terms_;  // sorted by factors
};

SymbolicInt::Maybe add(const SymbolicInt& a, const SymbolicInt& b);
SymbolicInt::Maybe subtract(const SymbolicInt& a, const SymbolicInt& b);
SymbolicInt::Maybe multiply(const SymbolicInt& a, const SymbolicInt& b);
// a / b where b divides a exactly; nothing where it does not, or where that is not known.
SymbolicInt::Maybe divide_exactly(const SymbolicInt& a, const SymbolicInt& b);
SymbolicInt::Maybe divide_down(const SymbolicInt& a, std::int64_t b);  // floor(a / b), b > 0
SymbolicInt::Maybe divide_up(const SymbolicInt& a, std::int64_t b);    // ceil(a / b), b > 0
// The smaller one where that is known, else "min(a, b)".
SymbolicInt::Maybe minimum(const SymbolicInt& a, const SymbolicInt& b);

}  // namespace mk
