#pragma once
// Reads protobuf's wire format from a file, through a window that moves over it, or from memory. Payloads that are
// skipped are not read.
//
// The first error stays: from then on every message ends at once and every value is zero or empty, so that a reader
// checks status() where it matters and not after each value. Nothing is allocated for a length before as many bytes are
// known to be there.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "graph/tensor.h"
#include "graph/wire_format.h"

namespace mk {

struct WireField {
  std::uint32_t number = 0;
  Wire wire = Wire::varint;
  std::uint64_t start = 0;  // where its tag begins
};

class WireReader {
 public:
  static constexpr int depth_limit = 320;  // of messages in messages: about 100 sub-graphs

  explicit WireReader(std::shared_ptr<const File> file);
  explicit WireReader(std::span<const std::byte> bytes);  // which outlive the reader

  Status status() const;
  bool failed() const { return error_.has_value(); }
  std::uint64_t position() const { return window_start_ + static_cast<std::uint64_t>(cursor_ - window_); }
  std::uint64_t size() const { return size_; }
  // malformed at the present byte, unless there is an error already. `where` names the node or tensor.
  void set_error(std::string message, std::string_view where = {}, std::string hint = {});
  void set_error(Error error);

  // Calls `visit(const WireField&)` for each field of the whole input.
  template <typename Visit>
  void fields(Visit&& visit) {
    WireField field;
    while (next(field)) visit(static_cast<const WireField&>(field));
  }
  // The same for the message in a field. A visitor takes every field it is shown by one of the functions below.
  template <typename Visit>
  void message(const WireField& field, Visit&& visit) {
    const std::optional<std::uint64_t> outer = enter(field);
    if (!outer) return;
    fields(visit);
    leave(*outer);
  }

  std::uint64_t varint(const WireField& field);
  std::int64_t integer(const WireField& field) { return static_cast<std::int64_t>(varint(field)); }
  float real(const WireField& field);
  std::string text(const WireField& field);
  // A payload as it is: a range of the file when it has `copy_below` bytes or more, else a copy.
  Bytes payload(const WireField& field, std::uint64_t copy_below);
  // Elements of a repeated field, packed or not: `take(std::uint64_t)` for each.
  template <typename Take>
  void varints(const WireField& field, Take&& take) {
    if (field.wire != Wire::bytes) return static_cast<void>(take(varint(field)));
    const std::optional<std::uint64_t> outer = enter(field);
    if (!outer) return;
    while (!failed() && position() < limit_) take(raw_varint());
    leave(*outer);
  }
  // The same for elements of `width` bytes (4, 8): their bytes, as payload() gives them.
  Bytes fixed(const WireField& field, std::uint32_t width, std::uint64_t copy_below);

  // Appends the whole field, its tag too, to `into`.
  void keep(const WireField& field, std::string& into);
  // Passes over a field that a `message` without a place for unknown fields has; dropped() counts them.
  void drop(const WireField& field, std::string_view message);
  const std::map<std::string, std::uint64_t, std::less<>>& dropped() const { return dropped_; }

 private:
  bool next(WireField& field);
  std::optional<std::uint64_t> enter(const WireField& field);  // the limit to return to
  void leave(std::uint64_t outer);
  bool expect(const WireField& field, Wire wire);
  std::uint64_t length();  // of the payload that follows, all of which is there
  std::uint64_t raw_varint();
  std::uint64_t raw_fixed(std::uint32_t width);
  bool refill(std::size_t bytes);  // has `bytes` (at most 16) at the cursor
  void copy(std::span<std::byte> out);
  void skip(std::uint64_t bytes);

  std::shared_ptr<const File> file_;
  std::unique_ptr<std::byte[]> buffer_;
  const std::byte* window_ = nullptr;
  const std::byte* cursor_ = nullptr;
  const std::byte* window_end_ = nullptr;
  std::uint64_t window_start_ = 0;
  std::uint64_t next_window_;
  std::uint64_t size_ = 0;
  std::uint64_t limit_ = 0;
  int depth_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> dropped_;  // "field 9 of a dimension", how often
  std::optional<Error> error_;
};

}  // namespace mk
