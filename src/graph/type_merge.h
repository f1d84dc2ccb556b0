#pragma once
// What is declared of a value (value_info, graph outputs) against what is inferred. Declarations may be stale: an
// inferred fact wins over one that contradicts it. Symbols that inference made itself ("unk__7") carry no fact.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "graph/type.h"

namespace mk {

struct MergedType {
  Type type;
  std::string contradiction;      // what the declaration says against what is inferred; empty where they agree
  bool from_declaration = false;  // some of it is only declared
};

// `keep_symbols`: of two symbols for one dimension the declared stays, as for the outputs of a graph, whose names users
// know.
MergedType merge_types(const Type& declared, const Type& inferred, bool keep_symbols);

// Names for dimensions that are not known, so that the same one is known to be the same wherever it goes.
class SymbolNames {
 public:
  static bool is_generated(std::string_view symbol) { return symbol.find(prefix) != std::string_view::npos; }
  // The symbols of a type will not be made again.
  void reserve(const Type& type);
  // Gives every unknown dimension of a type a name. Negative numbers and "?" are unknown too.
  void name_dims(Type& type);

 private:
  static constexpr std::string_view prefix = "unk__";
  std::string next();
  std::unordered_set<std::string> taken_;
  std::uint64_t counter_ = 0;
};

// The type without the symbols that an earlier inference made.
Type without_generated_symbols(const Type& type);

}  // namespace mk
