// TensorProto: the data's many encodings become packed bytes or a range of a file.

#include <charconv>
#include <limits>

#include "graph/element_access.h"
#include "graph/onnx_fields.h"
#include "graph/onnx_reader_parts.h"

namespace mk {
namespace {

// Tensors below this are copied: a range of the file would take as much memory and a read of its own.
constexpr std::uint64_t copy_below = 1024;

enum class Storage : std::uint8_t { none, floats, int32s, strings, int64s, doubles, uint64s, raw };

// How the typed fields store a type (onnx.proto3, TensorProto).
Storage typed_storage(DataType type) {
  switch (type) {
    case DataType::float32:
    case DataType::complex64:
      return Storage::floats;
    case DataType::float64:
    case DataType::complex128:
      return Storage::doubles;
    case DataType::int64:
      return Storage::int64s;
    case DataType::uint32:
    case DataType::uint64:
      return Storage::uint64s;
    case DataType::string:
      return Storage::strings;
    case DataType::undefined:
      return Storage::none;
    default:
      return Storage::int32s;
  }
}

struct TensorDraft {
  Tensor tensor;
  std::vector<Storage> storages;  // of the fields that have data, without repetition
  std::vector<Bytes> parts;       // of raw, float or double data
  std::vector<std::uint64_t> integers;
  bool external = false;

  void saw(Storage storage) {
    for (const Storage seen : storages) {
      if (seen == storage) return;
    }
    storages.push_back(storage);
  }
};

// Each entry's low bits; a sub-byte type has a byte of elements in an entry, but for 6 bits, which have one element.
Bytes pack(DataType type, const std::vector<std::uint64_t>& entries, std::uint64_t bytes) {
  const int bits = bits_of(type);
  std::vector<std::byte> packed(static_cast<std::size_t>(bytes));
  if (bits == 6) {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::size_t position = i * 6;
      const auto shifted = static_cast<std::uint32_t>((entries[i] & 0x3f) << (position % 8));
      packed[position / 8] |= static_cast<std::byte>(shifted);
      if (shifted > 0xff) packed[position / 8 + 1] |= static_cast<std::byte>(shifted >> 8);
    }
    return owned_bytes(std::move(packed));
  }
  const DataType stored = bits < 8 || type == DataType::boolean ? DataType::uint8
                          : bits == 8                           ? DataType::int8
                          : bits == 16                          ? DataType::int16
                          : bits == 32                          ? DataType::int32
                                                                : DataType::int64;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    store_integer(stored, packed.data(), i, static_cast<std::int64_t>(entries[i]));
  }
  return owned_bytes(std::move(packed));
}

std::uint64_t entries_expected(DataType type, std::uint64_t elements, std::uint64_t bytes) {
  const int bits = bits_of(type);
  return bits == 2 || bits == 4 ? bytes : elements;
}

std::optional<std::uint64_t> number(const Metadata& entries, std::string_view key, std::uint64_t otherwise) {
  const std::string* text = find(entries, key);
  if (!text) return otherwise;
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (code != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return value;
}

class Finisher {
 public:
  Finisher(ReadContext& context, TensorDraft draft, std::string_view owner)
      : context_(context), draft_(std::move(draft)), owner_(owner) {}

  Tensor finish() {
    Tensor& tensor = draft_.tensor;
    if (!context_.in.failed()) fill();
    return std::move(tensor);
  }

 private:
  std::string where() const {
    std::string text = "tensor " + (draft_.tensor.name.empty() ? std::string("without a name") : draft_.tensor.name);
    if (!owner_.empty()) text += " of " + std::string(owner_);
    return text;
  }
  void error(std::string message, std::string hint = {}) {
    context_.in.set_error(std::move(message), where(), std::move(hint));
  }

  void fill() {
    Tensor& tensor = draft_.tensor;
    if (!is_known(tensor.type)) {
      return error("element type " + std::to_string(static_cast<std::int32_t>(tensor.type)) + " is not one of ONNX's");
    }
    for (const std::int64_t dim : tensor.dims) {
      if (dim < 0) return error("a dimension of " + std::to_string(dim));
    }
    const std::uint64_t elements = tensor.element_count();
    const std::optional<std::uint64_t> bytes = byte_size(tensor.type, elements);
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!bytes || *bytes > most || elements > most) return error("dimensions whose product passes 64 bits");
    if (draft_.external) return fill_external(*bytes);
    if (draft_.storages.size() > 1) return error("data in more than one field");
    if (draft_.storages.empty()) {
      if (elements > 0) return error("no data", "Was the model saved without its weights?");
      if (tensor.type != DataType::string) tensor.data = owned_bytes({});
      return;
    }
    fill_from(draft_.storages.front(), elements, *bytes);
  }

  void fill_from(Storage storage, std::uint64_t elements, std::uint64_t bytes) {
    Tensor& tensor = draft_.tensor;
    if (storage == Storage::raw ? tensor.type == DataType::string : storage != typed_storage(tensor.type)) {
      return error(std::string(name_of(tensor.type)) + " data in the field of another type");
    }
    if (storage == Storage::strings) {
      if (tensor.strings.size() != elements) error(counts(tensor.strings.size(), elements, "strings"));
      return;
    }
    if (storage == Storage::raw || storage == Storage::floats || storage == Storage::doubles) {
      tensor.data = concatenated(std::move(draft_.parts));
      if (tensor.data->size() != bytes) error(counts(tensor.data->size(), bytes, "bytes"));
      return;
    }
    const std::uint64_t expected = entries_expected(tensor.type, elements, bytes);
    if (draft_.integers.size() != expected) return error(counts(draft_.integers.size(), expected, "numbers"));
    tensor.data = pack(tensor.type, draft_.integers, bytes);
  }

  static std::string counts(std::uint64_t have, std::uint64_t expected, std::string_view what) {
    return std::to_string(have) + " " + std::string(what) + " of data where the shape says " + std::to_string(expected);
  }

  void fill_external(std::uint64_t bytes) {
    Tensor& tensor = draft_.tensor;
    if (!draft_.storages.empty()) return error("data in the model and in an external file");
    if (tensor.type == DataType::string) return error("strings cannot be in an external file");
    const std::string* location = find(tensor.external, "location");
    if (!location || location->empty()) return error("external data without a location");
    const auto offset = number(tensor.external, "offset", 0);
    const auto length = number(tensor.external, "length", bytes);
    if (!offset || !length) return error("external data whose offset or length is not a number");
    if (*length != bytes) return error(counts(*length, bytes, "bytes"));
    auto range = context_.external.range(*location, *offset, *length);
    if (range) {
      tensor.data = std::move(*range);
      return;
    }
    Error problem = std::move(range).error();
    const bool elsewhere = problem.where.empty();  // the location itself is wrong
    problem.where = problem.where.empty() ? context_.file + ", " + where() : problem.where + ", " + where();
    if (context_.options.require_external_data || elsewhere) {
      if (problem.code == ErrorCode::not_found && problem.hint.empty()) {
        problem.hint = "It holds the model's weights: put it beside the model";
      }
      return context_.in.set_error(std::move(problem));
    }
    context_.warn("external data", problem.to_string());
  }

  ReadContext& context_;
  TensorDraft draft_;
  std::string_view owner_;
};

}  // namespace

Tensor read_tensor(ReadContext& context, const WireField& field, std::string_view owner) {
  namespace f = onnx_field::tensor;
  WireReader& in = context.in;
  TensorDraft draft;
  Tensor& tensor = draft.tensor;
  const auto add_integer = [&](std::uint64_t value) { draft.integers.push_back(value); };
  in.message(field, [&](const WireField& part) {
    switch (part.number) {
      case f::dims:
        return in.varints(part, [&](std::uint64_t dim) { tensor.dims.push_back(static_cast<std::int64_t>(dim)); });
      case f::data_type:
        tensor.type = static_cast<DataType>(in.varint(part));
        return;
      case f::segment:
        return in.set_error("a tensor in segments is not supported", "tensor " + tensor.name);
      case f::float_data:
        draft.saw(Storage::floats);
        return draft.parts.push_back(in.fixed(part, 4, copy_below));
      case f::double_data:
        draft.saw(Storage::doubles);
        return draft.parts.push_back(in.fixed(part, 8, copy_below));
      case f::raw_data:
        draft.parts.assign(1, in.payload(part, copy_below));
        if (draft.parts.front()->size() > 0) draft.saw(Storage::raw);
        return;
      case f::int32_data:
        draft.saw(Storage::int32s);
        return in.varints(part, add_integer);
      case f::int64_data:
        draft.saw(Storage::int64s);
        return in.varints(part, add_integer);
      case f::uint64_data:
        draft.saw(Storage::uint64s);
        return in.varints(part, add_integer);
      case f::string_data:
        draft.saw(Storage::strings);
        return tensor.strings.push_back(in.text(part));
      case f::name:
        tensor.name = in.text(part);
        return;
      case f::doc_string:
        tensor.doc_string = in.text(part);
        return;
      case f::external_data:
        return read_entry(in, part, tensor.external);
      case f::data_location:
        draft.external = in.varint(part) == 1;
        return;
      case f::metadata:
        return read_entry(in, part, tensor.metadata);
      default:
        return in.keep(part, tensor.unknown_fields);
    }
  });
  return Finisher(context, std::move(draft), owner).finish();
}

namespace {

// The tensor of a sparse tensor's values: its name and type are read, and all but the name goes to `rest`.
void read_sparse_values(WireReader& in, const WireField& field, Tensor& tensor, std::string& rest) {
  namespace f = onnx_field::tensor;
  in.message(field, [&](const WireField& part) {
    if (part.number == f::name) {
      tensor.name = in.text(part);
    } else if (part.number == f::data_type) {
      tensor.type = static_cast<DataType>(in.varint(part));
      append_varint(rest, wire_tag(f::data_type, Wire::varint));
      append_varint(rest, static_cast<std::uint64_t>(tensor.type));
    } else {
      in.keep(part, rest);
    }
  });
}

}  // namespace

Tensor read_sparse_tensor(ReadContext& context, const WireField& field) {
  namespace f = onnx_field::sparse_tensor;
  WireReader& in = context.in;
  Tensor tensor;
  in.message(field, [&](const WireField& part) {
    if (part.number == f::values) {
      std::string rest;
      read_sparse_values(in, part, tensor, rest);
      if (!rest.empty()) append_bytes(tensor.sparse, f::values, rest);
    } else if (part.number == f::dims) {
      in.varints(part, [&](std::uint64_t dim) { tensor.dims.push_back(static_cast<std::int64_t>(dim)); });
    } else {
      in.keep(part, tensor.sparse);
    }
  });
  if (in.failed()) return tensor;
  if (!is_known(tensor.type)) in.set_error("a sparse initializer without an element type", "tensor " + tensor.name);
  for (const std::int64_t dim : tensor.dims) {
    if (dim < 0) in.set_error("a dimension of " + std::to_string(dim), "tensor " + tensor.name);
  }
  return tensor;
}

}  // namespace mk
