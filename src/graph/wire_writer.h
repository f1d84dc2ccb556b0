#pragma once
// Writes protobuf's wire format in two passes over the same code: the first measures every message, the second writes
// them, each with its length before it. So nothing is kept but the lengths, and weights are streamed.
//
//   WireWriter out;
//   write_model(out, model);          // measures
//   out.start(file);
//   write_model(out, model);          // writes the same again
//   MK_CHECK(out.finish());

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "graph/source_copy.h"
#include "graph/tensor.h"
#include "graph/wire_format.h"

namespace mk {

class WireWriter {
 public:
  std::uint64_t measured() const { return measured_; }
  void start(FileWriter& file);
  void start(std::string& text);
  Status finish();

  // The first error stays; for one that the caller finds.
  void set_error(Error error);
  Status status() const;

  void varint(std::uint32_t field, std::uint64_t value);
  void integer(std::uint32_t field, std::int64_t value) { varint(field, static_cast<std::uint64_t>(value)); }
  void real(std::uint32_t field, float value);
  void text(std::uint32_t field, std::string_view value);
  void text_unless_empty(std::uint32_t field, std::string_view value) {
    if (!value.empty()) text(field, value);
  }
  void raw(std::string_view wire_bytes) { put(wire_bytes); }
  void payload(std::uint32_t field, const ByteSource& bytes);
  template <typename Body>
  void message(std::uint32_t field, Body&& body) {
    if (!writing()) {
      const std::size_t slot = lengths_.size();
      lengths_.push_back(0);
      const std::uint64_t before = measured_;
      body();
      lengths_[slot] = measured_ - before;
      measured_ += varint_size(wire_tag(field, Wire::bytes)) + varint_size(lengths_[slot]);
      return;
    }
    put_varint(wire_tag(field, Wire::bytes));
    put_varint(lengths_[next_length_++]);
    body();
  }

 private:
  bool writing() const { return file_ || text_; }
  static std::uint64_t varint_size(std::uint64_t value);
  void put(std::string_view bytes);
  void put_varint(std::uint64_t value);
  void flush();

  std::uint64_t measured_ = 0;
  std::vector<std::uint64_t> lengths_;  // of messages, in the order they begin
  std::size_t next_length_ = 0;
  FileWriter* file_ = nullptr;
  std::string* text_ = nullptr;
  std::string buffer_;  // before file_
  SourceCopier copier_;
  std::optional<Error> error_;
};

}  // namespace mk
