#include "graph/wire_writer.h"

#include <bit>
#include <cstring>

namespace mk {
namespace {

constexpr std::size_t buffer_bytes = 32u << 10;

}  // namespace

void WireWriter::start(FileWriter& file) {
  file_ = &file;
  buffer_.reserve(buffer_bytes);
}

void WireWriter::start(std::string& text) {
  text_ = &text;
  text.reserve(text.size() + static_cast<std::size_t>(measured_));
}

Status WireWriter::finish() {
  flush();
  return status();
}

Status WireWriter::status() const {
  if (error_) return tl::make_unexpected(*error_);
  return {};
}

void WireWriter::set_error(Error error) {
  if (!error_) error_ = std::move(error);
}

std::uint64_t WireWriter::varint_size(std::uint64_t value) {
  return (static_cast<std::uint64_t>(std::bit_width(value | 1)) + 6) / 7;
}

void WireWriter::flush() {
  if (!file_ || buffer_.empty()) return;
  if (!error_) {
    if (Status written = file_->write(buffer_); !written) set_error(std::move(written).error());
  }
  buffer_.clear();
}

void WireWriter::put(std::string_view bytes) {
  if (text_) {
    *text_ += bytes;
  } else if (file_) {
    buffer_ += bytes;
    if (buffer_.size() >= buffer_bytes) flush();
  } else {
    measured_ += bytes.size();
  }
}

void WireWriter::put_varint(std::uint64_t value) {
  if (!writing()) {
    measured_ += varint_size(value);
    return;
  }
  char bytes[10];
  std::size_t count = 0;
  for (; value >= 0x80; value >>= 7) bytes[count++] = static_cast<char>(0x80 | (value & 0x7f));
  bytes[count++] = static_cast<char>(value);
  put({bytes, count});
}

void WireWriter::varint(std::uint32_t field, std::uint64_t value) {
  put_varint(wire_tag(field, Wire::varint));
  put_varint(value);
}

void WireWriter::real(std::uint32_t field, float value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  put_varint(wire_tag(field, Wire::fixed32));
  put({bytes, sizeof value});
}

void WireWriter::text(std::uint32_t field, std::string_view value) {
  put_varint(wire_tag(field, Wire::bytes));
  put_varint(value.size());
  put(value);
}

void WireWriter::payload(std::uint32_t field, const ByteSource& bytes) {
  put_varint(wire_tag(field, Wire::bytes));
  put_varint(bytes.size());
  if (!writing()) {
    measured_ += bytes.size();
    return;
  }
  if (error_) return;
  if (const auto memory = bytes.in_memory()) {
    return put({reinterpret_cast<const char*>(memory->data()), memory->size()});
  }
  Status copied;
  if (file_) {
    flush();
    copied = copier_.copy(bytes, *file_);
  } else {
    const std::size_t before = text_->size();
    text_->resize(before + static_cast<std::size_t>(bytes.size()));
    copied = bytes.read(0, std::as_writable_bytes(std::span(*text_)).subspan(before));
  }
  if (!copied) set_error(std::move(copied).error());
}

}  // namespace mk
