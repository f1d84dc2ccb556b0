#pragma once
// A pickle (Python's pickletools, protocols 2 to 5) read as plain data. Nothing is executed or imported: a call becomes
// a node with the name of what would be called, and only names that the caller allows may appear at all.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace mk {

class Pickle {
 public:
  using Id = std::uint32_t;
  enum class Kind : std::uint8_t {
    none,
    boolean,  // integer is 0 or 1
    integer,  // beyond 64 bits: big_integer
    big_integer,
    real,
    text,  // UTF-8
    bytes,
    tuple,       // items
    list,        // items
    set,         // items
    dict,        // items: key, value, key, value ... in the order of insertion
    global,      // text is "module.name"
    call,        // items: callable, tuple of arguments
    persistent,  // items: the id's tuple
  };
  struct Node {
    Kind kind = Kind::none;
    std::int64_t integer = 0;
    double real = 0;
    std::string_view text;
    std::vector<Id> items;
  };
  using Allows = std::function<bool(std::string_view global)>;

  // `where` is what errors call the stream; they add the byte. malformed, or unsupported for an opcode that
  // weights do not need and for a global that `allows` does not know.
  static Result<Pickle> read(std::string stream, const Allows& allows, std::string where);

  const Node& root() const { return nodes_[root_]; }
  const Node& at(Id id) const { return nodes_[id]; }
  // The value under a text key; null where there is none.
  const Node* find(const Node& dict, std::string_view key) const;

 private:
  friend class PickleMachine;
  std::unique_ptr<const std::string> stream_;  // what texts point into
  std::deque<std::string> names_;              // of globals
  std::vector<Node> nodes_;
  Id root_ = 0;
};

// "an integer", "a dict": for errors.
std::string_view name_of(Pickle::Kind kind);

}  // namespace mk
