#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>

#include "runtime/npz.h"

namespace mk {
namespace {

struct Header {
  std::string descr;
  bool column_major = false;
  std::vector<std::int64_t> shape;
};

// The header is a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  std::optional<Header> parse() {
    Header header;
    bool has_descr = false, has_order = false, has_shape = false;
    if (!take('{')) return std::nullopt;
    while (!take('}')) {
      const auto key = quoted();
      if (!key || !take(':')) return std::nullopt;
      if (*key == "descr") {
        const auto descr = quoted();
        if (!descr) return std::nullopt;
        header.descr = *descr;
        has_descr = true;
      } else if (*key == "fortran_order") {
        header.column_major = word("True");
        if (!header.column_major && !word("False")) return std::nullopt;
        has_order = true;
      } else if (*key == "shape") {
        if (!tuple(header.shape)) return std::nullopt;
        has_shape = true;
      } else {
        return std::nullopt;
      }
      if (!take(',') && (skip_spaces(), rest_.empty() || rest_.front() != '}')) return std::nullopt;
    }
    return has_descr && has_order && has_shape ? std::optional(header) : std::nullopt;
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
  }
  bool word(std::string_view expected) {
    skip_spaces();
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  bool take(char c) { return word({&c, 1}); }
  std::optional<std::string> quoted() {
    skip_spaces();
    if (rest_.empty() || (rest_.front() != '\'' && rest_.front() != '"')) return std::nullopt;
    const auto end = rest_.find(rest_.front(), 1);
    if (end == std::string_view::npos) return std::nullopt;
    std::string text(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return text;
  }
  bool tuple(std::vector<std::int64_t>& values) {
    if (!take('(')) return false;
    while (!take(')')) {
      skip_spaces();
      std::int64_t value = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (error != std::errc{} || value < 0) return false;
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      values.push_back(value);
      if (!take(',') && (skip_spaces(), rest_.empty() || rest_.front() != ')')) return false;
    }
    return true;
  }
  std::string_view rest_;
};

struct TypeRow {
  std::string_view descr;  // without the byte order
  DataType type;
};
constexpr std::array<TypeRow, 12> types{{{"f2", DataType::float16},
                                         {"f4", DataType::float32},
                                         {"f8", DataType::float64},
                                         {"i1", DataType::int8},
                                         {"i2", DataType::int16},
                                         {"i4", DataType::int32},
                                         {"i8", DataType::int64},
                                         {"u1", DataType::uint8},
                                         {"u2", DataType::uint16},
                                         {"u4", DataType::uint32},
                                         {"u8", DataType::uint64},
                                         {"b1", DataType::boolean}}};

Error malformed(std::string_view name, std::string message) {
  return {ErrorCode::malformed, std::move(message), std::string(name), {}};
}

void swap_bytes(std::span<std::byte> data, std::size_t width) {
  for (std::size_t i = 0; i + width <= data.size(); i += width)
    std::reverse(data.begin() + static_cast<std::ptrdiff_t>(i), data.begin() + static_cast<std::ptrdiff_t>(i + width));
}

// Column-major values to row-major ones.
std::vector<std::byte> row_major(const std::vector<std::byte>& data, const std::vector<std::int64_t>& dims,
                                 std::size_t width) {
  std::vector<std::byte> turned(data.size());
  std::vector<std::size_t> strides(dims.size(), 1), index(dims.size(), 0);
  for (std::size_t axis = 1; axis < dims.size(); ++axis)
    strides[axis] = strides[axis - 1] * static_cast<std::size_t>(dims[axis - 1]);
  std::size_t source = 0;
  for (std::size_t target = 0; target < data.size() / width; ++target) {
    std::memcpy(turned.data() + target * width, data.data() + source * width, width);
    for (std::size_t axis = dims.size(); axis-- > 0;) {  // the next index in row-major order
      source += strides[axis];
      if (++index[axis] < static_cast<std::size_t>(dims[axis])) break;
      source -= strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return turned;
}

}  // namespace

Result<HostTensor> parse_npy(std::span<const std::byte> bytes, std::string_view name) {
  constexpr std::string_view magic = "\x93NUMPY";
  const auto byte = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
  if (bytes.size() < 10 || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return tl::make_unexpected(malformed(name, "not an array that numpy saved"));
  const std::size_t version = byte(6);
  const std::size_t start = version == 1 ? 10 : 12;
  if (version < 1 || version > 3 || bytes.size() < start)
    return tl::make_unexpected(malformed(name, "unknown version of the .npy format"));
  std::size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > bytes.size() - start) return tl::make_unexpected(malformed(name, "the .npy header is cut short"));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + start, length);
  const auto header = HeaderParser(text).parse();
  if (!header) return tl::make_unexpected(malformed(name, "the .npy header cannot be read"));

  const bool has_order =
      !header->descr.empty() && std::string_view("<>|=").find(header->descr[0]) != std::string_view::npos;
  const std::string_view kind = std::string_view(header->descr).substr(has_order ? 1 : 0);
  const auto* row = std::find_if(types.begin(), types.end(), [&](const TypeRow& r) { return r.descr == kind; });
  if (row == types.end())
    return fail(ErrorCode::unsupported, "arrays of dtype '" + header->descr + "' cannot be fed to a model",
                std::string(name), "Save numbers or bools");
  MK_TRY(auto tensor, zero_tensor(std::string(name), row->type, header->shape));
  const auto data = bytes.subspan(start + length);
  if (data.size() != tensor.data.size())
    return tl::make_unexpected(malformed(name, "the array has " + std::to_string(data.size()) +
                                                   " bytes, its shape needs " + std::to_string(tensor.data.size())));
  std::copy(data.begin(), data.end(), tensor.data.begin());
  const auto width = static_cast<std::size_t>(bits_of(row->type)) / 8;
  if (header->descr[0] == '>') swap_bytes(tensor.data, width);
  if (header->column_major && header->shape.size() > 1) tensor.data = row_major(tensor.data, header->shape, width);
  if (row->type == DataType::boolean)
    for (std::byte& value : tensor.data) value = value == std::byte{0} ? std::byte{0} : std::byte{1};
  return tensor;
}

}  // namespace mk
