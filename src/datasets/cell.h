#pragma once
// One cell of a data set: what a column holds in a row.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mk {

class Cell {
 public:
  using Bytes = std::vector<std::byte>;
  using List = std::vector<Cell>;
  struct Struct {  // in the column's order
    std::vector<std::string> names;
    List values;
  };
  // uint64 only where int64 cannot hold it.
  using Any = std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Bytes, List, Struct>;

  Cell() = default;
  Cell(Any any) : any_(std::move(any)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(any_); }
  // The value as T, or null where it is another kind.
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&any_);
  }
  // A whole number: int64, bool, or a float that is one.
  std::optional<std::int64_t> integer() const;
  // A field of a struct; null where there is none, or where this is no struct.
  const Cell* field(std::string_view name) const;
  // "null", "an integer", "a text", ...: for messages.
  std::string_view kind() const;

  const Any& any() const { return any_; }

 private:
  Any any_;
};

}  // namespace mk
