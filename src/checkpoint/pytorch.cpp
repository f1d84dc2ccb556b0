#include "checkpoint/pytorch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/utf8.h"
#include "checkpoint/strided.h"
#include "checkpoint/zip_directory.h"

namespace mk {
namespace {

using Node = Pickle::Node;
using Kind = Pickle::Kind;

constexpr std::uint64_t max_pickle_bytes = 64u << 20;
constexpr std::string_view save_again_hint =
    "Load it in PyTorch and save it again with torch.save(model.state_dict(), ...) or as safetensors";

struct NamedType {
  std::string_view name;
  DataType type;
};
constexpr NamedType storage_types[] = {
    {"torch.FloatStorage", DataType::float32},
    {"torch.DoubleStorage", DataType::float64},
    {"torch.HalfStorage", DataType::float16},
    {"torch.BFloat16Storage", DataType::bfloat16},
    {"torch.LongStorage", DataType::int64},
    {"torch.IntStorage", DataType::int32},
    {"torch.ShortStorage", DataType::int16},
    {"torch.CharStorage", DataType::int8},
    {"torch.ByteStorage", DataType::uint8},
    {"torch.BoolStorage", DataType::boolean},
    {"torch.ComplexFloatStorage", DataType::complex64},
    {"torch.ComplexDoubleStorage", DataType::complex128},
    {"torch.storage.UntypedStorage", DataType::uint8},
    {"torch.UntypedStorage", DataType::uint8},
};
constexpr NamedType element_types[] = {
    {"torch.float32", DataType::float32},
    {"torch.float64", DataType::float64},
    {"torch.float16", DataType::float16},
    {"torch.bfloat16", DataType::bfloat16},
    {"torch.int64", DataType::int64},
    {"torch.int32", DataType::int32},
    {"torch.int16", DataType::int16},
    {"torch.int8", DataType::int8},
    {"torch.uint8", DataType::uint8},
    {"torch.uint16", DataType::uint16},
    {"torch.uint32", DataType::uint32},
    {"torch.uint64", DataType::uint64},
    {"torch.bool", DataType::boolean},
    {"torch.complex64", DataType::complex64},
    {"torch.complex128", DataType::complex128},
    {"torch.float8_e4m3fn", DataType::float8e4m3fn},
    {"torch.float8_e4m3fnuz", DataType::float8e4m3fnuz},
    {"torch.float8_e5m2", DataType::float8e5m2},
    {"torch.float8_e5m2fnuz", DataType::float8e5m2fnuz},
    {"torch.float8_e8m0fnu", DataType::float8e8m0},
};
constexpr std::string_view other_names[] = {
    "collections.OrderedDict",
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._tensor._rebuild_from_type_v2",
    "torch.Tensor",
    "torch.nn.parameter.Parameter",
    "torch.Size",
    "torch.device",
    // Named in an error where a tensor is one.
    "torch._utils._rebuild_qtensor",
    "torch._utils._rebuild_sparse_tensor",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch.QInt8Storage",
    "torch.QUInt8Storage",
    "torch.QInt32Storage",
    "torch.per_tensor_affine",
    "torch.per_channel_affine",
    "torch.sparse_coo",
    "torch.serialization._get_layout",
};

template <std::size_t N>
std::optional<DataType> type_of(const NamedType (&table)[N], std::string_view name) {
  for (const auto& row : table)
    if (row.name == name) return row.type;
  return std::nullopt;
}

bool is_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

class StateDictReader {
 public:
  StateDictReader(const Pickle& pickle, const StorageLookup& storage, std::string where)
      : pickle_(pickle), storage_(storage), where_(std::move(where)) {}

  Result<TensorMap> read() {
    MK_TRY(const Node* dict, state_dict());
    TensorMap tensors;
    for (std::size_t i = 0; i + 1 < dict->items.size(); i += 2) {
      const Node& key = pickle_.at(dict->items[i]);
      const Node& value = pickle_.at(dict->items[i + 1]);
      if (!is_tensor(value)) continue;
      if (key.kind != Kind::text || !is_utf8(key.text))
        return fail(ErrorCode::malformed,
                    fmt::format("a tensor of the state dict has {} as its name",
                                key.kind == Kind::text ? "invalid UTF-8" : name_of(key.kind)),
                    where_);
      auto tensor = read_tensor(value);
      if (!tensor) {
        Error error = std::move(tensor).error();
        error.message = fmt::format("tensor '{}' {}", key.text, error.message);
        error.where = where_;
        return tl::make_unexpected(std::move(error));
      }
      tensor->name = key.text;
      tensors.insert_or_assign(tensor->name, std::move(*tensor));
    }
    return tensors;
  }

 private:
  // The dict that has tensors as values.
  Result<const Node*> state_dict() const {
    const Node& root = pickle_.root();
    const auto has_tensors = [this](const Node& node) {
      if (node.kind != Kind::dict) return false;
      for (std::size_t i = 1; i < node.items.size(); i += 2)
        if (is_tensor(pickle_.at(node.items[i]))) return true;
      return false;
    };
    if (has_tensors(root) || (root.kind == Kind::dict && root.items.empty())) return &root;
    std::string keys;
    if (root.kind == Kind::dict) {
      for (const std::string_view key : {"state_dict", "model_state_dict", "model"})
        if (const Node* inner = pickle_.find(root, key); inner && has_tensors(*inner)) return inner;
      for (std::size_t i = 0; i < root.items.size() && i < 16; i += 2)
        keys += fmt::format("{}{}", keys.empty() ? ": its keys are " : ", ", pickle_.at(root.items[i]).text);
    }
    return fail(ErrorCode::unsupported,
                fmt::format("the file has {} without tensors instead of a state dict{}", name_of(root.kind), keys),
                where_, std::string(save_again_hint));
  }

  std::string_view callee(const Node& node) const {
    return node.kind == Kind::call ? pickle_.at(node.items[0]).text : std::string_view{};
  }
  bool is_tensor(const Node& node) const {
    return callee(node).starts_with("torch._utils._rebuild") || callee(node).starts_with("torch._tensor._rebuild");
  }

  // The errors of what follows read on from "tensor 'name' ".
  Result<Tensor> read_tensor(const Node& call) const {
    std::string_view function = callee(call);
    const Node* arguments = &pickle_.at(call.items[1]);
    // Wrappers: a Parameter around a tensor, a tensor with attributes.
    for (int depth = 0; depth < 4; ++depth) {
      if (function.starts_with("torch._utils._rebuild_parameter")) {
        if (arguments->items.empty()) return broken("is a Parameter of nothing");
        const Node& inner = pickle_.at(arguments->items[0]);
        function = callee(inner);
        if (inner.kind == Kind::call) arguments = &pickle_.at(inner.items[1]);
      } else if (function == "torch._tensor._rebuild_from_type_v2") {
        if (arguments->items.size() < 3 || pickle_.at(arguments->items[2]).kind != Kind::tuple)
          return broken("is a tensor with attributes of nothing");
        function = pickle_.at(arguments->items[0]).text;
        arguments = &pickle_.at(arguments->items[2]);
      }
    }
    const bool names_type = function == "torch._utils._rebuild_tensor_v3";
    const bool plain = function == "torch._utils._rebuild_tensor" || function == "torch._utils._rebuild_tensor_v2";
    if (!names_type && !plain)
      return fail(ErrorCode::unsupported, fmt::format("is of a kind that is not supported: {}", function), {},
                  "Quantized, sparse and data-less tensors cannot be read; save the model with plain tensors");
    if (arguments->items.size() < (names_type ? 7u : 4u)) return broken("has too few fields");
    std::array<const Node*, 4> fields;
    for (std::size_t i = 0; i < fields.size(); ++i) fields[i] = &pickle_.at(arguments->items[i]);

    MK_TRY(auto storage, read_storage(*fields[0]));
    if (names_type) {
      const Node& type = pickle_.at(arguments->items[6]);
      const auto found = type_of(element_types, type.text);
      if (!found) return fail(ErrorCode::unsupported, fmt::format("has the element type {}", type.text));
      storage.type = *found;
    }
    const std::size_t flags = names_type ? 7 : 6;
    if (arguments->items.size() > flags && !pickle_.at(arguments->items[flags]).items.empty())
      return fail(ErrorCode::unsupported, "is a conjugate or negative view", {},
                  "Save it after .resolve_conj().resolve_neg()");
    if (fields[1]->kind != Kind::integer || fields[1]->integer < 0) return broken("has no offset");
    StridedView view{.storage = storage.range,
                     .width = static_cast<std::uint64_t>(bits_of(storage.type)) / 8,
                     .offset = static_cast<std::uint64_t>(fields[1]->integer)};
    MK_TRY(view.sizes, integers(*fields[2]));
    MK_TRY(view.strides, integers(*fields[3]));
    MK_TRY(auto bytes, strided_bytes(view));
    return make_tensor({}, storage.type, std::move(view.sizes), std::move(bytes));
  }

  struct Storage {
    FileRange range;
    DataType type;
  };
  // ('storage', type, key, location, elements)
  Result<Storage> read_storage(const Node& node) const {
    const Node* id = node.kind == Kind::persistent ? &pickle_.at(node.items[0]) : nullptr;
    if (!id || id->kind != Kind::tuple || id->items.size() < 5 || pickle_.at(id->items[0]).text != "storage")
      return broken("has no storage");
    const Node &type_name = pickle_.at(id->items[1]), &key = pickle_.at(id->items[2]),
               &count = pickle_.at(id->items[4]);
    const auto type = type_of(storage_types, type_name.text);
    if (!type) return fail(ErrorCode::unsupported, fmt::format("has a storage of the type {}", type_name.text));
    if (key.kind != Kind::text || count.kind != Kind::integer || count.integer < 0)
      return broken("has a storage without key or size");
    MK_TRY(FileRange range, storage_(key.text));
    const auto size = byte_size(*type, static_cast<std::uint64_t>(count.integer));
    if (size != range.length)
      return broken(fmt::format("has a storage of {} elements of {}, but data/{} has {} bytes", count.integer,
                                name_of(*type), key.text, range.length));
    return Storage{std::move(range), *type};
  }

  Result<std::vector<std::int64_t>> integers(const Node& node) const {
    std::vector<std::int64_t> values;
    const Node* list = &node;
    if (callee(node) == "torch.Size") {
      const Node& arguments = pickle_.at(node.items[1]);
      if (!arguments.items.empty()) list = &pickle_.at(arguments.items[0]);
    }
    if (list->kind != Kind::tuple && list->kind != Kind::list)
      return broken(fmt::format("has {} as its size or strides", name_of(list->kind)));
    for (const auto item : list->items) {
      if (pickle_.at(item).kind != Kind::integer)
        return broken(fmt::format("has {} in its size or strides", name_of(pickle_.at(item).kind)));
      values.push_back(pickle_.at(item).integer);
    }
    return values;
  }

  static tl::unexpected<Error> broken(std::string message) { return fail(ErrorCode::malformed, std::move(message)); }

  const Pickle& pickle_;
  const StorageLookup& storage_;
  std::string where_;
};

Status check_kind(const File& file) {
  const std::string where = to_utf8(file.path());
  std::array<std::byte, 16> start{};
  const auto size = std::min<std::uint64_t>(file.size(), start.size());
  MK_CHECK(file.read(0, std::span(start).first(size)));
  const std::string_view text(reinterpret_cast<const char*>(start.data()), size);
  using namespace std::string_view_literals;
  if (text.starts_with("PK\3\4"sv)) return {};
  // The pickled number 0x1950a86a20f9469cfc6c.
  if (text.size() > 4 && text[0] == '\x80' &&
      text.substr(2).starts_with("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv))
    return fail(ErrorCode::unsupported, "the file has PyTorch's form from before 1.6, which is not supported", where,
                std::string(save_again_hint));
  if (text.starts_with("version https://"sv))
    return fail(ErrorCode::malformed, "the file is a Git LFS pointer, not the weights", where,
                "Fetch the weights with `git lfs pull`");
  return fail(ErrorCode::malformed, "the file is no zip file of torch.save", where, std::string(save_again_hint));
}

Result<std::string> small_entry(const ZipDirectory& zip, std::string_view name, std::uint64_t limit,
                                const std::string& where) {
  MK_TRY(const FileRange range, zip.range(name));
  if (range.length > limit)
    return fail(ErrorCode::malformed,
                fmt::format("zip entry '{}' has {} bytes, over the limit of {}", name, range.length, limit), where);
  std::string text(range.length, '\0');
  MK_CHECK(range.file->read(range.offset, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace

bool allowed_in_weights(std::string_view global) {
  return type_of(storage_types, global) || type_of(element_types, global) ||
         std::find(std::begin(other_names), std::end(other_names), global) != std::end(other_names);
}

Result<TensorMap> state_dict_tensors(const Pickle& pickle, const StorageLookup& storage, const std::string& where) {
  return StateDictReader(pickle, storage, where).read();
}

Result<TensorMap> read_pytorch(const std::shared_ptr<const File>& file) {
  const std::string where = to_utf8(file->path());
  MK_CHECK(check_kind(*file));
  MK_TRY(const auto zip, ZipDirectory::read(file));

  // Everything stands in one folder, whose name is the saved file's.
  std::string folder;
  for (const auto& [name, entry] : zip.entries())
    if (const auto slash = name.find('/'); slash != std::string::npos && name.substr(slash) == "/data.pkl")
      folder = name.substr(0, slash + 1);
  if (folder.empty())
    return fail(ErrorCode::malformed, "the zip file has no data.pkl", where, "Was it written by torch.save?");
  if (zip.find(folder + "constants.pkl"))
    return fail(ErrorCode::unsupported, "the file is a TorchScript archive, which is not supported", where,
                std::string(save_again_hint));
  if (zip.find(folder + "byteorder")) {
    MK_TRY(const std::string order, small_entry(zip, folder + "byteorder", 64, where));
    if (order != "little")
      return fail(ErrorCode::unsupported,
                  fmt::format("the file's byte order is '{}'; only 'little' is supported", order), where,
                  "Load it in PyTorch on a little-endian machine and save it again");
  }
  MK_TRY(auto stream, small_entry(zip, folder + "data.pkl", max_pickle_bytes, where));
  MK_TRY(const auto pickle, Pickle::read(std::move(stream), allowed_in_weights, where + ", data.pkl"));
  const StorageLookup storage = [&](std::string_view key) { return zip.range(fmt::format("{}data/{}", folder, key)); };
  return state_dict_tensors(pickle, storage, where);
}

}  // namespace mk
