#include "graph/wire_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace mk {
namespace {

// The window is small after a jump over a payload, and grows while bytes are taken one after the other.
constexpr std::uint64_t smallest_window = 4u << 10;
constexpr std::uint64_t largest_window = 64u << 10;
constexpr int varint_bytes = 10;

}  // namespace

WireReader::WireReader(std::shared_ptr<const File> file)
    : file_(std::move(file)), next_window_(smallest_window), size_(file_->size()), limit_(size_) {
  buffer_ = std::make_unique_for_overwrite<std::byte[]>(largest_window);
  window_ = cursor_ = window_end_ = buffer_.get();
}

WireReader::WireReader(std::span<const std::byte> bytes)
    : window_(bytes.data()),
      cursor_(bytes.data()),
      window_end_(bytes.data() + bytes.size()),
      next_window_(0),
      size_(bytes.size()),
      limit_(size_) {}

Status WireReader::status() const {
  if (error_) return tl::make_unexpected(*error_);
  return {};
}

void WireReader::set_error(std::string message, std::string_view where, std::string hint) {
  std::string place = file_ ? to_utf8(file_->path()) + ", byte " : std::string("byte ");
  place += std::to_string(position());
  if (!where.empty()) place.append(", ").append(where);
  set_error(Error{ErrorCode::malformed, std::move(message), std::move(place), std::move(hint)});
}

void WireReader::set_error(Error error) {
  if (!error_) error_ = std::move(error);
}

bool WireReader::refill(std::size_t bytes) {
  const auto at_hand = static_cast<std::size_t>(window_end_ - cursor_);
  if (at_hand >= bytes) return true;
  const std::uint64_t here = position();
  if (!file_ || here + bytes > size_) return false;
  const auto length = static_cast<std::size_t>(std::min(next_window_, size_ - here));
  if (Status read = file_->read(here, {buffer_.get(), length}); !read) {
    set_error(std::move(read).error());
    return false;
  }
  next_window_ = std::min(largest_window, next_window_ * 2);
  window_start_ = here;
  cursor_ = window_;
  window_end_ = window_ + length;
  return true;
}

void WireReader::skip(std::uint64_t bytes) {
  const auto at_hand = static_cast<std::uint64_t>(window_end_ - cursor_);
  if (bytes <= at_hand) {
    cursor_ += bytes;
    return;
  }
  window_start_ = position() + bytes;
  cursor_ = window_end_ = window_;
  next_window_ = smallest_window;
}

void WireReader::copy(std::span<std::byte> out) {
  const std::size_t first = std::min(out.size(), static_cast<std::size_t>(window_end_ - cursor_));
  if (first > 0) std::memcpy(out.data(), cursor_, first);
  cursor_ += first;
  out = out.subspan(first);
  if (out.empty()) return;
  if (Status read = file_->read(position(), out); !read) return set_error(std::move(read).error());
  window_start_ = position() + out.size();
  cursor_ = window_end_ = window_;
}

std::uint64_t WireReader::raw_varint() {
  if (failed()) return 0;
  const std::uint64_t left = limit_ - position();
  const auto most = static_cast<int>(std::min<std::uint64_t>(left, varint_bytes));
  if (!refill(static_cast<std::size_t>(most))) {
    set_error("the file ends within a number");
    return 0;
  }
  std::uint64_t value = 0;
  for (int i = 0; i < most; ++i) {
    const auto byte = std::to_integer<std::uint64_t>(*cursor_++);
    value |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) return value;
  }
  set_error(most < varint_bytes ? "a number goes past the end of its message" : "a number has more than 10 bytes");
  return 0;
}

std::uint64_t WireReader::raw_fixed(std::uint32_t width) {
  if (failed()) return 0;
  if (limit_ - position() < width || !refill(width)) {
    set_error("a number goes past the end of its message");
    return 0;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, cursor_, width);
  cursor_ += width;
  return value;
}

bool WireReader::next(WireField& field) {
  if (failed() || position() >= limit_) return false;
  field.start = position();
  const std::uint64_t tag = raw_varint();
  if (failed()) return false;
  const auto wire = static_cast<std::uint32_t>(tag & 7);
  field.number = static_cast<std::uint32_t>(tag >> 3);
  field.wire = static_cast<Wire>(wire);
  const bool known = wire == 0 || wire == 1 || wire == 2 || wire == 5;
  if (!known || field.number == 0 || (tag >> 32) != 0) {
    set_error("not a field of a protobuf message", {}, "Is it an ONNX file?");
    return false;
  }
  return true;
}

bool WireReader::expect(const WireField& field, Wire wire) {
  if (failed()) return false;
  if (field.wire == wire) return true;
  set_error("field " + std::to_string(field.number) + " has wire type " +
            std::to_string(static_cast<std::uint32_t>(field.wire)) + ", expected " +
            std::to_string(static_cast<std::uint32_t>(wire)));
  return false;
}

std::uint64_t WireReader::length() {
  const std::uint64_t bytes = raw_varint();
  if (failed()) return 0;
  if (bytes > limit_ - position()) {
    set_error(
        "a length of " + std::to_string(bytes) + " bytes where " + std::to_string(limit_ - position()) + " are left",
        {}, "Is it an ONNX file, and complete?");
    return 0;
  }
  return bytes;
}

std::optional<std::uint64_t> WireReader::enter(const WireField& field) {
  if (!expect(field, Wire::bytes)) return std::nullopt;
  const std::uint64_t bytes = length();
  if (failed()) return std::nullopt;
  if (++depth_ > depth_limit) {
    set_error("messages are nested more than " + std::to_string(depth_limit) + " deep");
    return std::nullopt;
  }
  return std::exchange(limit_, position() + bytes);
}

void WireReader::leave(std::uint64_t outer) {
  limit_ = outer;
  --depth_;
}

std::uint64_t WireReader::varint(const WireField& field) { return expect(field, Wire::varint) ? raw_varint() : 0; }

float WireReader::real(const WireField& field) {
  if (!expect(field, Wire::fixed32)) return 0;
  return std::bit_cast<float>(static_cast<std::uint32_t>(raw_fixed(4)));
}

std::string WireReader::text(const WireField& field) {
  std::string result;
  if (!expect(field, Wire::bytes)) return result;
  result.resize(static_cast<std::size_t>(length()));
  copy(std::as_writable_bytes(std::span(result)));
  return result;
}

Bytes WireReader::payload(const WireField& field, std::uint64_t copy_below) {
  if (!expect(field, Wire::bytes)) return owned_bytes({});
  const std::uint64_t bytes = length();
  if (file_ && bytes >= copy_below) {
    Bytes range = file_bytes({file_, position(), bytes});
    skip(bytes);
    return range;
  }
  std::vector<std::byte> result(static_cast<std::size_t>(bytes));
  copy(result);
  return owned_bytes(std::move(result));
}

Bytes WireReader::fixed(const WireField& field, std::uint32_t width, std::uint64_t copy_below) {
  if (field.wire == Wire::bytes) {
    Bytes packed = payload(field, copy_below);
    if (packed->size() % width != 0) set_error("packed numbers of another width than " + std::to_string(width));
    return packed;
  }
  if (!expect(field, width == 4 ? Wire::fixed32 : Wire::fixed64)) return owned_bytes({});
  const std::uint64_t value = raw_fixed(width);
  std::vector<std::byte> bytes(width);
  std::memcpy(bytes.data(), &value, width);
  return owned_bytes(std::move(bytes));
}

void WireReader::drop(const WireField& field, std::string_view message) {
  if (!failed()) ++dropped_["field " + std::to_string(field.number) + " of " + std::string(message)];
  if (field.wire == Wire::bytes) return skip(length());
  std::string ignored;
  keep(field, ignored);
}

void WireReader::keep(const WireField& field, std::string& into) {
  if (failed()) return;
  append_varint(into, wire_tag(field.number, field.wire));
  if (field.wire == Wire::varint) return append_varint(into, raw_varint());
  std::uint64_t bytes = field.wire == Wire::fixed32 ? 4 : 8;
  if (field.wire == Wire::bytes) {
    bytes = length();
    append_varint(into, bytes);
  } else if (limit_ - position() < bytes) {
    return set_error("a number goes past the end of its message");
  }
  const std::size_t before = into.size();
  into.resize(before + static_cast<std::size_t>(bytes));
  copy(std::as_writable_bytes(std::span(into)).subspan(before));
}

}  // namespace mk
