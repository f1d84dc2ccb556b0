#include "checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "base/json.h"

namespace mk {
namespace {

constexpr std::uint64_t max_header_bytes = 100'000'000;

struct TypeName {
  std::string_view name;
  DataType type;
};
constexpr TypeName type_names[] = {
    {"F64", DataType::float64},
    {"F32", DataType::float32},
    {"F16", DataType::float16},
    {"BF16", DataType::bfloat16},
    {"I64", DataType::int64},
    {"I32", DataType::int32},
    {"I16", DataType::int16},
    {"I8", DataType::int8},
    {"U64", DataType::uint64},
    {"U32", DataType::uint32},
    {"U16", DataType::uint16},
    {"U8", DataType::uint8},
    {"BOOL", DataType::boolean},
    {"C64", DataType::complex64},
    {"F8_E4M3", DataType::float8e4m3fn},
    {"F8_E5M2", DataType::float8e5m2},
    {"F8_E4M3FNUZ", DataType::float8e4m3fnuz},
    {"F8_E5M2FNUZ", DataType::float8e5m2fnuz},
    {"F8_E8M0", DataType::float8e8m0},
    {"F4", DataType::float4e2m1},
};

constexpr std::string_view get_it_again = "Download or copy it again, or save it anew with the safetensors library";

std::string known_types() {
  std::string list = "Known are";
  for (const TypeName& type : type_names) list.append(list.ends_with("are") ? " " : ", ").append(type.name);
  return list;
}

// Where in the header's JSON the reader is.
enum class Place { start, names, tensor, dtype, shape, offsets, metadata, finished };

// Builds the entries while nlohmann's parser reads, so that no document of the header's size is ever in memory.
class HeaderReader {
 public:
  HeaderReader(SafetensorsHeader& header, std::string where) : header_(header), where_(std::move(where)) {}

  bool null() { return scalar("null"); }
  bool boolean(bool) { return scalar("a boolean"); }
  bool number_integer(std::int64_t) { return scalar("a negative number"); }
  bool number_float(double, const std::string&) { return scalar("a fraction or a number beyond 64 bits"); }
  bool binary(nlohmann::json::binary_t&) { return scalar("binary"); }

  bool number_unsigned(std::uint64_t value) {
    if (place_ == Place::shape && in_list_) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return reject(fmt::format("has a dimension of {}", value));
      entry_.dims.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ == Place::offsets && in_list_) {
      if (offsets_seen_ < 2) (offsets_seen_ == 0 ? entry_.begin : entry_.end) = value;
      ++offsets_seen_;
      return true;
    }
    return scalar("a number");
  }

  bool string(std::string& value) {
    if (place_ == Place::dtype) {
      const auto* found = std::find_if(std::begin(type_names), std::end(type_names),
                                       [&](const TypeName& candidate) { return candidate.name == value; });
      if (found == std::end(type_names))
        return reject(fmt::format("has the unknown dtype {}", value), ErrorCode::unsupported, known_types());
      entry_.type = found->type;
      return go_to(Place::tensor);
    }
    if (place_ == Place::metadata) {
      header_.metadata[key_] = std::move(value);
      return true;
    }
    return scalar("a string");
  }

  bool start_object(std::size_t) {
    if (opens_skipped()) return true;
    if (place_ == Place::start) return go_to(Place::names);
    if (place_ != Place::names) return misplaced("an object");
    if (key_ == "__metadata__") return go_to(Place::metadata);
    entry_ = {};
    entry_.name = key_;
    fields_seen_ = {};
    offsets_seen_ = 0;
    return go_to(Place::tensor);
  }

  bool key(std::string& value) {
    if (skipping_ > 0) return true;
    if (place_ == Place::tensor) {
      constexpr std::array<std::pair<std::string_view, Place>, 3> fields{
          {{"dtype", Place::dtype}, {"shape", Place::shape}, {"data_offsets", Place::offsets}}};
      for (std::size_t i = 0; i < fields.size(); ++i) {
        if (fields[i].first != value) continue;
        if (fields_seen_[i]) return reject(fmt::format("has {} twice", value));
        fields_seen_[i] = true;
        return go_to(fields[i].second);
      }
      unknown_field_ = true;
      return true;
    }
    key_ = std::move(value);
    return true;
  }

  bool end_object() {
    if (closes_skipped()) return true;
    if (place_ == Place::metadata) return go_to(Place::names);
    if (place_ == Place::names) return go_to(Place::finished);
    if (!fields_seen_[0] || !fields_seen_[1] || !fields_seen_[2]) return reject("needs dtype, shape and data_offsets");
    if (offsets_seen_ != 2) return reject(fmt::format("has {} data_offsets instead of two", offsets_seen_));
    header_.entries.push_back(std::move(entry_));
    return go_to(Place::names);
  }

  bool start_array(std::size_t) {
    if (opens_skipped()) return true;
    if ((place_ != Place::shape && place_ != Place::offsets) || in_list_) return misplaced("a list");
    in_list_ = true;
    return true;
  }

  bool end_array() {
    if (closes_skipped()) return true;
    in_list_ = false;
    return go_to(Place::tensor);
  }

  // The header follows the eight bytes of its length; the parser counts from one.
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) {
    return fail_header(fmt::format("the header is no valid JSON at byte {} of the file", position + 7));
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  bool go_to(Place place) {
    place_ = place;
    return true;
  }

  // In a field that the format does not define, anything goes.
  bool opens_skipped() {
    if (unknown_field_) ++skipping_;
    return unknown_field_;
  }
  bool closes_skipped() {
    if (!unknown_field_) return false;
    unknown_field_ = --skipping_ > 0;
    return true;
  }
  // A value of a kind that has no place where the reader is, unless it is such a field's.
  bool scalar(std::string_view what) {
    if (!unknown_field_) return misplaced(what);
    unknown_field_ = skipping_ > 0;
    return true;
  }

  bool misplaced(std::string_view what) {
    switch (place_) {
      case Place::start:
        return fail_header(fmt::format("the header is {} instead of an object", what));
      case Place::names:
        return fail_header(fmt::format("the header's entry '{}' is {} instead of an object", key_, what));
      case Place::metadata:
        return fail_header(fmt::format("__metadata__ has {} under '{}'; only strings are allowed", what, key_));
      case Place::dtype:
        return reject(fmt::format("has {} as its dtype", what));
      case Place::shape:
        return reject(fmt::format("has {} in its shape", what));
      default:
        return reject(fmt::format("has {} in its data_offsets", what));
    }
  }

  bool reject(std::string what, ErrorCode code = ErrorCode::malformed, std::string hint = std::string(get_it_again)) {
    error_ = Error{code, fmt::format("tensor '{}' {}", entry_.name, what), where_, std::move(hint)};
    return false;
  }
  bool fail_header(std::string message) {
    error_ = Error{ErrorCode::malformed, std::move(message), where_, std::string(get_it_again)};
    return false;
  }

  SafetensorsHeader& header_;
  std::string where_;
  Place place_ = Place::start;
  std::string key_;
  SafetensorsEntry entry_;
  std::array<bool, 3> fields_seen_{};
  int offsets_seen_ = 0;
  bool in_list_ = false;
  bool unknown_field_ = false;  // the next value is of a field that the format does not define, or inside one
  std::size_t skipping_ = 0;    // depth inside such a value
  std::optional<Error> error_;
};

// Bytes that the shape and type take; null on overflow or where the last byte would be shared.
std::optional<std::uint64_t> bytes_of(const SafetensorsEntry& entry) {
  std::uint64_t elements = 1;
  for (const std::int64_t dim : entry.dims) {
    const auto factor = static_cast<std::uint64_t>(dim);
    if (factor != 0 && elements > std::numeric_limits<std::uint64_t>::max() / factor) return std::nullopt;
    elements *= factor;
  }
  if (bits_of(entry.type) == 4 && elements % 2 != 0) return std::nullopt;
  return byte_size(entry.type, elements);
}

Status check_layout(const SafetensorsHeader& header, std::uint64_t data_size, const std::string& where) {
  const auto malformed = [&](std::string message) {
    return fail(ErrorCode::malformed, std::move(message), where, std::string(get_it_again));
  };
  const auto& entries = header.entries;
  const auto twice =
      std::adjacent_find(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return a.name == b.name; });
  if (twice != entries.end()) return malformed(fmt::format("tensor '{}' is there twice", twice->name));

  std::vector<const SafetensorsEntry*> by_offset;
  by_offset.reserve(entries.size());
  for (const auto& entry : entries) by_offset.push_back(&entry);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const auto* a, const auto* b) { return std::pair(a->begin, a->end) < std::pair(b->begin, b->end); });
  std::uint64_t position = 0;
  for (const auto* entry : by_offset) {
    const auto size = bytes_of(*entry);
    if (!size)
      return malformed(fmt::format("tensor '{}' has the shape [{}], whose size is no number of bytes", entry->name,
                                   fmt::join(entry->dims, ", ")));
    if (entry->end < entry->begin || entry->end - entry->begin != *size)
      return malformed(fmt::format("tensor '{}' of shape [{}] needs {} bytes, but its data_offsets are [{}, {}]",
                                   entry->name, fmt::join(entry->dims, ", "), *size, entry->begin, entry->end));
    if (entry->begin != position)
      return malformed(fmt::format("tensor '{}' begins at byte {} of the data instead of {}: {}", entry->name,
                                   entry->begin, position,
                                   entry->begin > position ? "there is a hole before it" : "it overlaps another"));
    position = entry->end;
  }
  if (position > data_size)
    return fail(
        ErrorCode::malformed,
        fmt::format("the file is cut off: its tensors need {} bytes of data, {} are there", position, data_size), where,
        std::string(get_it_again));
  if (position < data_size) return malformed(fmt::format("{} bytes follow the last tensor", data_size - position));
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::uint64_t data_size,
                                                   const std::string& where) {
  SafetensorsHeader header;
  if (json.empty() || json.front() != '{')
    return fail(ErrorCode::malformed, "the header does not begin with '{' at byte 8; this is no safetensors file",
                where, std::string(get_it_again));
  HeaderReader reader(header, where);
  if (!nlohmann::json::sax_parse(json.begin(), json.end(), &reader))
    return tl::make_unexpected(reader.error().value_or(
        Error{ErrorCode::malformed, "the header is no valid JSON", where, std::string(get_it_again)}));
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  MK_CHECK(check_layout(header, data_size, where));
  return header;
}

Result<SafetensorsHeader> read_safetensors_header(const File& file) {
  const std::string where = to_utf8(file.path());
  if (file.size() < 8)
    return fail(ErrorCode::malformed, fmt::format("a safetensors file has at least 8 bytes, this one {}", file.size()),
                where, std::string(get_it_again));
  std::array<std::byte, 8> length_bytes;
  MK_CHECK(file.read(0, length_bytes));
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | std::to_integer<std::uint64_t>(length_bytes[i]);
  if (length > max_header_bytes)
    return fail(
        ErrorCode::malformed,
        fmt::format("the header's length of {} bytes is over the format's limit of {}", length, max_header_bytes),
        where, "Is this a safetensors file?");
  if (length > file.size() - 8)
    return fail(ErrorCode::malformed,
                fmt::format("the file is cut off: its header needs {} bytes, the file has {}", length + 8, file.size()),
                where, "Download or copy it again");
  std::string json(length, '\0');
  MK_CHECK(file.read(8, std::as_writable_bytes(std::span(json))));
  MK_TRY(auto header, parse_safetensors_header(json, file.size() - 8 - length, where));
  header.data_begin = 8 + length;
  return header;
}

}  // namespace mk
