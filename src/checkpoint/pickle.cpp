#include "checkpoint/pickle.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <optional>
#include <unordered_map>

namespace mk {
namespace {

// A state dict of 100,000 tensors has 2 million nodes and as many remembered objects.
constexpr std::size_t max_nodes = 8u << 20;
// Of dicts made of lists: the one place where a short stream could copy a long list again and again.
constexpr std::size_t max_copied_items = 8u << 20;

}  // namespace

// The stack machine that pickle.py's Unpickler is. Every method returns false after setting error_.
class PickleMachine {
 public:
  PickleMachine(std::string stream, const Pickle::Allows& allows, std::string where)
      : allows_(allows), where_(std::move(where)) {
    result_.stream_ = std::make_unique<const std::string>(std::move(stream));
    bytes_ = *result_.stream_;
    for (auto& id : small_integers_) id = unset;
  }

  Result<Pickle> run() {
    while (!stopped_) {
      opcode_at_ = at_;
      if (at_ == bytes_.size()) {
        broken("the pickle ends without its STOP");
        break;
      }
      if (!step(static_cast<std::uint8_t>(bytes_[at_++]))) break;
    }
    if (error_) return tl::make_unexpected(std::move(*error_));
    return std::move(result_);
  }

 private:
  using Id = Pickle::Id;
  using Kind = Pickle::Kind;
  using Node = Pickle::Node;
  static constexpr Id unset = 0xffffffff;

  bool broken(std::string message) { return stop(ErrorCode::malformed, std::move(message), {}); }
  bool refused(std::string message, std::string hint) {
    return stop(ErrorCode::unsupported, std::move(message), std::move(hint));
  }
  bool stop(ErrorCode code, std::string message, std::string hint) {
    error_ = Error{code, std::move(message), fmt::format("{}, byte {}", where_, opcode_at_), std::move(hint)};
    return false;
  }

  bool step(std::uint8_t opcode);
  bool step_stack(std::uint8_t opcode);
  bool step_object(std::uint8_t opcode);

  // Fields of the stream.
  bool take(std::uint64_t count, std::string_view& out) {
    if (count > bytes_.size() - at_) return broken(fmt::format("{} bytes are cut off", count));
    out = bytes_.substr(at_, count);
    at_ += count;
    return true;
  }
  bool take_number(int width, std::uint64_t& out) {
    std::string_view raw;
    if (!take(static_cast<std::uint64_t>(width), raw)) return false;
    out = 0;
    for (int i = width; i-- > 0;) out = out << 8 | static_cast<std::uint8_t>(raw[static_cast<std::size_t>(i)]);
    return true;
  }
  bool take_sized(int width, std::string_view& out) {
    std::uint64_t size = 0;
    return take_number(width, size) && take(size, out);
  }
  bool take_line(std::string_view& out) {
    const auto end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return broken("a line is cut off");
    out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }

  // The stack. Nothing below the last mark may be popped.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  bool pop(Id& out) {
    if (stack_.size() <= floor()) return broken("the stack is empty");
    out = stack_.back();
    stack_.pop_back();
    return true;
  }
  bool top(Id& out) {
    if (stack_.size() <= floor()) return broken("the stack is empty");
    out = stack_.back();
    return true;
  }
  bool pop_to_mark(std::vector<Id>& out) {
    if (marks_.empty()) return broken("there is no mark on the stack");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    out.assign(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return true;
  }

  bool push(Node node) {
    if (result_.nodes_.size() >= max_nodes) return broken(fmt::format("there are more than {} objects", max_nodes));
    stack_.push_back(static_cast<Id>(result_.nodes_.size()));
    result_.nodes_.push_back(std::move(node));
    return true;
  }
  // One node for all of a constant's uses.
  bool push_constant(Id& id, Kind kind, std::int64_t value) {
    if (id != unset) {
      stack_.push_back(id);
      return true;
    }
    if (!push({.kind = kind, .integer = value})) return false;
    id = stack_.back();
    return true;
  }
  bool push_integer(std::int64_t value) {
    if (value >= 0 && value < static_cast<std::int64_t>(small_integers_.size()))
      return push_constant(small_integers_[static_cast<std::size_t>(value)], Kind::integer, value);
    return push({.kind = Kind::integer, .integer = value});
  }
  bool push_text(Kind kind, int size_width) {
    std::string_view text;
    return take_sized(size_width, text) && push({.kind = kind, .text = text});
  }
  bool push_long(int size_width) {
    std::string_view raw;
    if (!take_sized(size_width, raw)) return false;
    if (raw.size() > 8) return push({.kind = Kind::big_integer});
    std::uint64_t value = !raw.empty() && static_cast<std::uint8_t>(raw.back()) >= 0x80 ? ~std::uint64_t{0} : 0;
    for (std::size_t i = raw.size(); i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(raw[i]);
    return push_integer(static_cast<std::int64_t>(value));
  }
  bool push_tuple(std::size_t count) {
    if (stack_.size() - floor() < count) return broken("the stack is empty");
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<Id> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    return push({.kind = Kind::tuple, .items = std::move(items)});
  }
  bool push_marked(Kind kind) {
    std::vector<Id> items;
    if (!pop_to_mark(items)) return false;
    if (kind == Kind::dict && items.size() % 2 != 0) return broken("a dict has a key without a value");
    return push({.kind = kind, .items = std::move(items)});
  }
  // Adds to the container below; `pairs` for a dict.
  bool extend(const std::vector<Id>& items, Kind kind) {
    Id id = 0;
    if (!top(id)) return false;
    Node& container = result_.nodes_[id];
    if (container.kind != kind) return broken(fmt::format("{} is used as {}", name_of(container.kind), name_of(kind)));
    if (kind == Kind::dict && items.size() % 2 != 0) return broken("a dict has a key without a value");
    container.items.insert(container.items.end(), items.begin(), items.end());
    return true;
  }

  bool remember(std::uint64_t slot) {
    Id id = 0;
    if (!top(id)) return false;
    memo_[slot] = id;
    return memo_.size() <= max_nodes || broken(fmt::format("there are more than {} remembered objects", max_nodes));
  }
  bool recall(std::uint64_t slot) {
    const auto found = memo_.find(slot);
    if (found == memo_.end()) return broken(fmt::format("there is no remembered object {}", slot));
    stack_.push_back(found->second);
    return true;
  }

  bool push_global(std::string_view module, std::string_view name) {
    std::string full = fmt::format("{}.{}", module, name);
    if (!allows_(full))
      return refused(fmt::format("the pickle refers to {}, which weights do not need; it was not run", full),
                     "Save the weights alone, with torch.save(model.state_dict(), ...) or as safetensors");
    const auto [position, is_new] = globals_.try_emplace(full, unset);
    if (!is_new) {
      stack_.push_back(position->second);
      return true;
    }
    result_.names_.push_back(std::move(full));
    if (!push({.kind = Kind::global, .text = result_.names_.back()})) return false;
    position->second = stack_.back();
    return true;
  }
  bool push_call() {
    Id arguments = 0, callable = 0;
    if (!pop(arguments) || !pop(callable)) return false;
    const Node& target = result_.nodes_[callable];
    if (target.kind != Kind::global) return broken(fmt::format("{} is called", name_of(target.kind)));
    if (result_.nodes_[arguments].kind != Kind::tuple) return broken("a call's arguments are no tuple");
    if (target.text != "collections.OrderedDict") return push({.kind = Kind::call, .items = {callable, arguments}});
    // OrderedDict() or OrderedDict([(key, value), ...]), which Python 2 writes.
    Node dict{.kind = Kind::dict};
    const auto& given = result_.nodes_[arguments].items;
    if (!given.empty()) {
      for (const Id pair : result_.nodes_[given.front()].items) {
        const auto& items = result_.nodes_[pair].items;
        if (items.size() != 2) return broken("an OrderedDict is made of something else than pairs");
        if (++copied_items_ > max_copied_items) return broken("the dicts are too large");
        dict.items.insert(dict.items.end(), items.begin(), items.end());
      }
    }
    return push(std::move(dict));
  }

  Pickle result_;
  std::string_view bytes_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  bool stopped_ = false;
  std::vector<Id> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Id> memo_;
  std::unordered_map<std::string, Id> globals_;
  std::size_t copied_items_ = 0;
  std::array<Id, 256> small_integers_{};
  Id none_ = unset, true_ = unset, false_ = unset;
  const Pickle::Allows& allows_;
  std::string where_;
  std::optional<Error> error_;
};

// Values: one opcode, its field, one node.
bool PickleMachine::step(std::uint8_t opcode) {
  std::uint64_t number = 0;
  switch (opcode) {
    case 0x80:  // PROTO
      if (!take_number(1, number)) return false;
      return number <= 5 || refused(fmt::format("pickle protocol {}", number), {});
    case 0x95:  // FRAME
      if (!take_number(8, number)) return false;
      return number <= bytes_.size() - at_ || broken("a frame is cut off");
    case 'N':
      return push_constant(none_, Kind::none, 0);
    case 0x88:
      return push_constant(true_, Kind::boolean, 1);
    case 0x89:
      return push_constant(false_, Kind::boolean, 0);
    case 'J':  // BININT
      return take_number(4, number) && push_integer(static_cast<std::int32_t>(number));
    case 'K':  // BININT1
      return take_number(1, number) && push_integer(static_cast<std::int64_t>(number));
    case 'M':  // BININT2
      return take_number(2, number) && push_integer(static_cast<std::int64_t>(number));
    case 0x8a:  // LONG1
      return push_long(1);
    case 0x8b:  // LONG4
      return push_long(4);
    case 'G': {  // BINFLOAT, big-endian
      std::string_view raw;
      if (!take(8, raw)) return false;
      for (const char c : raw) number = number << 8 | static_cast<std::uint8_t>(c);
      return push({.kind = Kind::real, .real = std::bit_cast<double>(number)});
    }
    case 0x8c:  // SHORT_BINUNICODE
    case 'U':   // SHORT_BINSTRING, of Python 2
      return push_text(Kind::text, 1);
    case 'X':  // BINUNICODE
    case 'T':  // BINSTRING
      return push_text(Kind::text, 4);
    case 0x8d:  // BINUNICODE8
      return push_text(Kind::text, 8);
    case 'C':  // SHORT_BINBYTES
      return push_text(Kind::bytes, 1);
    case 'B':  // BINBYTES
      return push_text(Kind::bytes, 4);
    case 0x8e:  // BINBYTES8
    case 0x96:  // BYTEARRAY8
      return push_text(Kind::bytes, 8);
    default:
      return step_stack(opcode);
  }
}

// Containers, the stack and the memo.
bool PickleMachine::step_stack(std::uint8_t opcode) {
  std::uint64_t number = 0;
  Id id = 0, key = 0;
  std::vector<Id> items;
  switch (opcode) {
    case '(':
      marks_.push_back(stack_.size());
      return true;
    case '0':  // POP takes a mark, too
      if (stack_.size() > floor() || marks_.empty()) return pop(id);
      marks_.pop_back();
      return true;
    case '1':  // POP_MARK
      return pop_to_mark(items);
    case '2':  // DUP
      if (!top(id)) return false;
      stack_.push_back(id);
      return true;
    case ')':
      return push({.kind = Kind::tuple});
    case 0x85:
      return push_tuple(1);
    case 0x86:
      return push_tuple(2);
    case 0x87:
      return push_tuple(3);
    case 't':
      return push_marked(Kind::tuple);
    case ']':
      return push({.kind = Kind::list});
    case 'l':
      return push_marked(Kind::list);
    case '}':
      return push({.kind = Kind::dict});
    case 'd':
      return push_marked(Kind::dict);
    case 0x8f:
      return push({.kind = Kind::set});
    case 0x91:
      return push_marked(Kind::set);
    case 'a':  // APPEND
      return pop(id) && extend({id}, Kind::list);
    case 'e':  // APPENDS
      return pop_to_mark(items) && extend(items, Kind::list);
    case 0x90:  // ADDITEMS
      return pop_to_mark(items) && extend(items, Kind::set);
    case 's':  // SETITEM
      return pop(id) && pop(key) && extend({key, id}, Kind::dict);
    case 'u':  // SETITEMS
      return pop_to_mark(items) && extend(items, Kind::dict);
    case 'q':  // BINPUT
      return take_number(1, number) && remember(number);
    case 'r':  // LONG_BINPUT
      return take_number(4, number) && remember(number);
    case 0x94:  // MEMOIZE
      return remember(memo_.size());
    case 'h':  // BINGET
      return take_number(1, number) && recall(number);
    case 'j':  // LONG_BINGET
      return take_number(4, number) && recall(number);
    default:
      return step_object(opcode);
  }
}

// What Python would import and call.
bool PickleMachine::step_object(std::uint8_t opcode) {
  std::string_view module, name;
  Id id = 0, other = 0;
  switch (opcode) {
    case 'c':  // GLOBAL
      return take_line(module) && take_line(name) && push_global(module, name);
    case 0x93: {  // STACK_GLOBAL
      if (!pop(id) || !pop(other)) return false;
      const Node &last = result_.nodes_[id], &first = result_.nodes_[other];
      if (first.kind != Kind::text || last.kind != Kind::text) return broken("a global's name is no text");
      return push_global(first.text, last.text);
    }
    case 'R':   // REDUCE
    case 0x81:  // NEWOBJ
      return push_call();
    case 'b':  // BUILD: attributes, which no tensor needs
      return pop(id) && top(other);
    case 'Q':  // BINPERSID
      return pop(id) && push({.kind = Kind::persistent, .items = {id}});
    case '.': {  // STOP
      if (!pop(id)) return false;
      result_.root_ = id;
      stopped_ = true;
      return true;
    }
    default:
      return refused(fmt::format("the pickle has the opcode {:#04x}, which weights do not need", opcode),
                     "Save the weights again with torch.save(model.state_dict(), ...) or as safetensors");
  }
}

Result<Pickle> Pickle::read(std::string stream, const Allows& allows, std::string where) {
  return PickleMachine(std::move(stream), allows, std::move(where)).run();
}

const Pickle::Node* Pickle::find(const Node& dict, std::string_view key) const {
  const Node* found = nullptr;  // the last one of a key counts, as in Python
  for (std::size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    const Node& name = nodes_[dict.items[i]];
    if (name.kind == Kind::text && name.text == key) found = &nodes_[dict.items[i + 1]];
  }
  return found;
}

std::string_view name_of(Pickle::Kind kind) {
  constexpr std::array<std::string_view, 14> names{"None",   "a bool",   "an integer", "a large integer", "a float",
                                                   "a text", "bytes",    "a tuple",    "a list",          "a set",
                                                   "a dict", "a global", "a call",     "a stored object"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace mk
