#pragma once
// Patterns of graphs as text, one assignment a line; the last is the root, which every match starts from:
//
//   mean = ReduceMean(x, axes=-1)
//   d*   = Sub(x, mean)
//   sq   = Pow(d, 2) | Mul(d, d)
//   var  = ReduceMean(Cast?(sq), axes=-1)
//   y    = Add(Mul(Div(d, Sqrt(Add(var, eps))), scale), bias)
//
// A name that no line defines stands for any value, the same one wherever it occurs. A number is a constant of one
// element with that value. `A(..) | B(..)` are alternatives; `Cast?(v)` is a Cast of v, or v itself; `_` is any value
// or none; `name?` after the others is an input that may be absent; `name!` must be constant; `...` stands for any
// further inputs.
// `a, b = Split(x)` names several outputs. `com.microsoft.Gelu(x)` has a domain. `axis=-1`, `perm=[0, 2, 1, 3]`,
// `mode="linear"` are attributes (one that is absent has ONNX's default); `axes=` also matches a constant second input.
//
// A value inside the match may not be used outside it, unless its name has a star where it is defined.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace mk {

struct PatternTerm {
  enum class Kind { name, number, anything };
  Kind kind = Kind::anything;
  std::uint32_t name = 0;  // index into Pattern::names
  double number = 0;
  bool optional = false;
  bool constant = false;
};

struct PatternAttribute {
  using Value = std::variant<double, std::vector<std::int64_t>, std::string>;
  std::string name;
  Value value;
};

struct PatternCall {
  std::string domain;
  std::string op_type;
  bool skippable = false;  // Cast?(x)
  bool open_ended = false;
  std::vector<PatternTerm> inputs;
  std::vector<PatternAttribute> attributes;
};

struct PatternLine {
  std::vector<std::uint32_t> outputs;  // indices into Pattern::names
  bool shared = false;
  std::vector<PatternCall> alternatives;
};

struct Pattern {
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Name {
    std::string text;  // empty for a nested call
    std::uint32_t line = none;
    std::uint32_t output = 0;
  };
  std::vector<Name> names;
  std::vector<PatternLine> lines;
  std::uint32_t root = 0;  // a line

  std::uint32_t find(std::string_view name) const;  // `none` where there is no such name
};

// usage, with the line and column, where the text is no pattern.
Result<Pattern> parse_pattern(std::string_view text);

}  // namespace mk
