#include "checkpoint/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "checkpoint/gguf_blocks.h"

namespace mk {
namespace {

constexpr std::uint64_t most_items = 1u << 26;  // of an array, of the facts, of the tensors
constexpr std::uint64_t longest_text = 64u << 20;

// Reads forward through a buffer; after an error, values are zero and status() has it.
class Cursor {
 public:
  explicit Cursor(const File& file) : file_(file) {}

  template <typename T>
  T number() {
    T value{};
    bytes(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  std::string text() {
    const auto length = number<std::uint64_t>();
    if (length > std::min(longest_text, file_.size() - std::min(file_.size(), at_))) {
      refuse(fmt::format("a text of {} bytes", length));
      return {};
    }
    std::string value(static_cast<std::size_t>(length), '\0');
    bytes(std::as_writable_bytes(std::span(value)));
    return value;
  }

  // A number of items that take at least `width` bytes each.
  std::uint64_t count(std::uint64_t width) {
    const auto value = number<std::uint64_t>();
    const std::uint64_t left = file_.size() - std::min(file_.size(), at_);
    if (value <= most_items && value * width <= left) return value;
    refuse(fmt::format("{} items", value));
    return 0;
  }

  void refuse(const std::string& what) {
    if (status_)
      status_ = fail(ErrorCode::malformed, fmt::format("{} at byte {} of the header", what, at_), to_utf8(file_.path()),
                     "Download the file again");
  }
  std::uint64_t at() const { return at_; }
  const Status& status() const { return status_; }

 private:
  void bytes(std::span<std::byte> out) {
    while (status_ && !out.empty()) {
      if (at_ < begin_ || at_ >= begin_ + buffer_.size()) {
        constexpr std::uint64_t block = 1u << 18;
        const std::uint64_t left = at_ < file_.size() ? file_.size() - at_ : 0;
        if (left == 0) {
          refuse("the file ends");
          return;
        }
        buffer_.resize(static_cast<std::size_t>(std::min(block, left)));
        begin_ = at_;
        status_ = file_.read(begin_, buffer_);
        if (!status_) return;
      }
      const auto from = static_cast<std::size_t>(at_ - begin_);
      const std::size_t part = std::min(out.size(), buffer_.size() - from);
      std::memcpy(out.data(), buffer_.data() + from, part);
      out = out.subspan(part);
      at_ += part;
    }
  }

  const File& file_;
  std::vector<std::byte> buffer_;
  std::uint64_t begin_ = 0, at_ = 0;
  Status status_;
};

enum Kind : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, array, u64, i64, f64 };

template <typename T>
std::int64_t whole(Cursor& in) {
  return static_cast<std::int64_t>(in.number<T>());
}

std::int64_t integer(Cursor& in, std::uint32_t kind) {
  switch (kind) {
    case u8:
      return whole<std::uint8_t>(in);
    case i8:
      return whole<std::int8_t>(in);
    case u16:
      return whole<std::uint16_t>(in);
    case i16:
      return whole<std::int16_t>(in);
    case u32:
      return whole<std::uint32_t>(in);
    case i32:
      return whole<std::int32_t>(in);
    case boolean:
      return whole<std::uint8_t>(in) != 0 ? 1 : 0;
    default:
      return whole<std::int64_t>(in);
  }
}

double real(Cursor& in, std::uint32_t kind) {
  return kind == f32 ? static_cast<double>(in.number<float>()) : in.number<double>();
}

GgufValue array_of(Cursor& in) {
  const auto kind = in.number<std::uint32_t>();
  const std::uint64_t count = in.count(kind == text ? 8 : 1);
  std::vector<std::string> texts;
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  for (std::uint64_t i = 0; i < count && in.status(); ++i) {
    if (kind == text)
      texts.push_back(in.text());
    else if (kind == f32 || kind == f64)
      reals.push_back(real(in, kind));
    else if (kind < array || kind == u64 || kind == i64)
      integers.push_back(integer(in, kind));
    else
      in.refuse("an array of arrays");
  }
  if (kind == text) return texts;
  if (kind == f32 || kind == f64) return reals;
  return integers;
}

GgufValue value_of(Cursor& in) {
  const auto kind = in.number<std::uint32_t>();
  if (kind > f64) {
    in.refuse(fmt::format("a value of kind {}", kind));
    return std::int64_t{0};
  }
  if (kind == array) return array_of(in);
  if (kind == text) return in.text();
  if (kind == f32 || kind == f64) return real(in, kind);
  const std::int64_t number = integer(in, kind);
  if (kind == boolean) return number != 0;
  return number;
}

GgufTensor tensor_of(Cursor& in) {
  constexpr std::uint32_t most_axes = 4;
  GgufTensor tensor;
  tensor.name = in.text();
  const auto axes = in.number<std::uint32_t>();
  if (axes > most_axes) in.refuse(fmt::format("a tensor of {} axes", axes));
  for (std::uint32_t i = 0; i < axes && in.status(); ++i) {
    const auto dim = in.number<std::uint64_t>();
    if (dim == 0 || dim > INT32_MAX) in.refuse(fmt::format("an axis of {}", dim));
    tensor.dims.insert(tensor.dims.begin(), static_cast<std::int64_t>(dim));
  }
  tensor.type = in.number<std::uint32_t>();
  tensor.offset = in.number<std::uint64_t>();
  return tensor;
}

// Gives a tensor its place in the file.
Status place(GgufTensor& tensor, std::uint64_t data, const File& file) {
  const std::string where = to_utf8(file.path());
  const GgufType* type = find_gguf_type(tensor.type);
  if (!type)
    return fail(ErrorCode::unsupported,
                fmt::format("{} is of ggml's type {}, which is not read", tensor.name, tensor.type), where,
                "Types that are: " + gguf_type_names());
  std::uint64_t elements = 1;
  for (const std::int64_t dim : tensor.dims) {
    if (elements > UINT64_MAX / 16 / static_cast<std::uint64_t>(dim))
      elements = UINT64_MAX / 16;
    else
      elements *= static_cast<std::uint64_t>(dim);
  }
  const std::uint64_t row = tensor.dims.empty() ? 1 : static_cast<std::uint64_t>(tensor.dims.back());
  tensor.bytes = elements / type->elements * type->bytes;
  if (row % type->elements != 0 || elements >= UINT64_MAX / 16 || tensor.offset > file.size() ||
      data + tensor.offset > file.size() || tensor.bytes > file.size() - data - tensor.offset)
    return fail(ErrorCode::malformed, fmt::format("{} does not lie in the file as its shape says", tensor.name), where,
                "Download the file again");
  tensor.offset += data;
  return {};
}

}  // namespace

const GgufTensor* GgufFile::tensor(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& one) { return one.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

bool is_gguf(const Path& path) {
  std::error_code ignored;
  return path.extension() == ".gguf" && !std::filesystem::is_directory(path, ignored);
}

Result<GgufFile> read_gguf(const Path& path) {
  constexpr std::uint32_t magic = 0x46554747, oldest = 2, newest = 3;
  GgufFile result;
  MK_TRY(result.file, File::open(path));
  Cursor in(*result.file);
  if (in.number<std::uint32_t>() != magic)
    return fail(ErrorCode::malformed, "the file does not begin with GGUF", to_utf8(path), "Download it again");
  const auto version = in.number<std::uint32_t>();
  if (version < oldest || version > newest)
    return fail(ErrorCode::unsupported, fmt::format("GGUF of version {:#x} is not read", version), to_utf8(path),
                "Convert it with llama.cpp to a little-endian file of version 3");
  const std::uint64_t tensors = in.count(24), facts = in.count(12);
  for (std::uint64_t i = 0; i < facts && in.status(); ++i) {
    std::string key = in.text();
    result.facts.insert_or_assign(std::move(key), value_of(in));
  }
  std::set<std::string_view> names;
  for (std::uint64_t i = 0; i < tensors && in.status(); ++i) result.tensors.push_back(tensor_of(in));
  MK_CHECK(in.status());

  const auto* given = result.fact<std::int64_t>("general.alignment");
  const std::uint64_t alignment = given && *given > 0 ? static_cast<std::uint64_t>(*given) : 32;
  if (alignment > (1u << 20))
    return fail(ErrorCode::malformed, fmt::format("general.alignment is {}", alignment), to_utf8(path),
                "Download the file again");
  const std::uint64_t data = (in.at() + alignment - 1) / alignment * alignment;
  for (GgufTensor& tensor : result.tensors) {
    if (!names.insert(tensor.name).second)
      return fail(ErrorCode::malformed, fmt::format("{} is there twice", tensor.name), to_utf8(path),
                  "Download the file again");
    MK_CHECK(place(tensor, data, *result.file));
  }
  return result;
}

}  // namespace mk
