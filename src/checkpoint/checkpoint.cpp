#include "checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>
#include <tuple>

#include "base/json.h"
#include "checkpoint/gguf_model.h"
#include "checkpoint/pytorch.h"
#include "checkpoint/safetensors.h"

namespace mk {
namespace {

// Weight files in the order of preference, each with the index that stands for its shards.
struct WeightFile {
  std::string_view name;
  Result<Checkpoint> (*open)(const Path& file);
};
constexpr WeightFile weight_files[] = {
    {"model.safetensors", Checkpoint::open_safetensors},
    {"pytorch_model.bin", Checkpoint::open_pytorch},
};

// Files that hold weights of a kind we do not read, by the end of their name, and what to do about them.
struct ForeignFile {
  std::string_view ending;
  std::string_view what;
};
constexpr ForeignFile foreign_files[] = {
    {"adapter_model.safetensors",
     "an adapter without its base model: merge it (merge_and_unload()) and save_pretrained() the result"},
    {"adapter_model.bin",
     "an adapter without its base model: merge it (merge_and_unload()) and save_pretrained() the result"},
    {".h5", "TensorFlow weights: load them with from_tf=True in transformers and save_pretrained()"},
    {".msgpack", "Flax weights: load them with from_flax=True in transformers and save_pretrained()"},
    {".ckpt", "a training checkpoint: load it with its own code and save_pretrained() the model"},
    {".safetensors",
     "not under a name that transformers loads: rename it to model.safetensors if it is the whole model"},
    {".bin", "not under a name that transformers loads: rename it to pytorch_model.bin if it is the whole model"},
    {".pt", "not under a name that transformers loads: rename it to pytorch_model.bin if it is a state dict"},
    {".pth", "not under a name that transformers loads: rename it to pytorch_model.bin if it is a state dict"},
};

bool is_there(const Path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// Without the meaning that a user's "~" has.
Path relative_path(const std::string& text) { return std::u8string(text.begin(), text.end()); }

Path index_of(const Path& file) { return with_suffix(file, ".index.json"); }

// What to say where a folder has none of the weight files.
Error no_weights(const Path& folder) {
  Error error{ErrorCode::not_found, "the folder has no weights: looked for", to_utf8(folder), {}};
  std::string_view separator = " ";
  for (const WeightFile& candidate : weight_files) {
    error.message += fmt::format("{}{}, {}.index.json", separator, candidate.name, candidate.name);
    separator = ", ";
  }
  const auto names = list_folder(folder);
  if (!names) return names.error();
  for (const Path& path : *names) {
    const std::string name = to_utf8(path.filename());
    std::error_code ignored;
    // A broken link of the Hub's cache: the file was never fetched to its end.
    if (std::filesystem::is_symlink(folder / path, ignored) && !is_there(folder / path) && error.hint.empty() &&
        std::any_of(std::begin(weight_files), std::end(weight_files),
                    [&](const WeightFile& file) { return name.starts_with(file.name); }))
      error.hint = fmt::format("{} is a link to a file that is not there: download the model again", name);
  }
  for (const ForeignFile& foreign : foreign_files) {
    if (!error.hint.empty()) break;
    for (const Path& path : *names)
      if (const std::string name = to_utf8(path.filename()); error.hint.empty() && name.ends_with(foreign.ending))
        error.hint = fmt::format("{} is {}", name, foreign.what);
  }
  if (error.hint.empty()) error.hint = "Put the weights beside config.json, as save_pretrained() does";
  return error;
}

}  // namespace

struct CheckpointReaders {
  static Result<Checkpoint> open_index(const Path& index, Result<Checkpoint> (*open_shard)(const Path&)) {
    MK_TRY(const Json json, read_json(index));
    const JsonView view(json, to_utf8(index));
    if (!view.is_object()) return tl::make_unexpected(view.expected("an object"));
    const JsonView map = view.at("weight_map");
    if (!map.is_object()) return tl::make_unexpected(map.expected("an object of shard names by tensor"));
    if (map.size() == 0) return tl::make_unexpected(map.error("the index names no tensor", "Download it again"));
    std::map<std::string, std::string, std::less<>> shard_of;
    std::set<std::string> shards;
    for (const auto& [name, shard] : map.json().items()) {
      if (!shard.is_string() || !stays_inside(relative_path(shard.get<std::string>())))
        return tl::make_unexpected(map.error(fmt::format("the shard of '{}' is no file name", name)));
      shards.insert(shard_of[name] = shard.get<std::string>());
    }

    Checkpoint whole;
    for (const std::string& shard : shards) {
      auto part = open_shard(index.parent_path() / relative_path(shard));
      if (!part) {
        Error error = std::move(part).error();
        if (error.code == ErrorCode::not_found)
          error = {error.code, fmt::format("the shard {} is missing", shard), to_utf8(index),
                   "Download or copy the whole model"};
        return tl::make_unexpected(std::move(error));
      }
      for (auto& [name, tensor] : part->tensors_) {
        const auto listed = shard_of.find(name);
        if (listed != shard_of.end() && listed->second != shard) continue;
        if (!whole.tensors_.emplace(name, std::move(tensor)).second)
          return fail(ErrorCode::malformed, fmt::format("tensor '{}' is in two shards and not in the index", name),
                      to_utf8(index));
      }
      whole.files_.insert(whole.files_.end(), part->files_.begin(), part->files_.end());
      whole.metadata_.merge(part->metadata_);
    }
    for (const auto& [name, shard] : shard_of)
      if (!whole.find(name))
        return fail(ErrorCode::malformed, fmt::format("tensor '{}' is not in its shard {}", name, shard),
                    to_utf8(index));
    return whole;
  }

  static Result<Checkpoint> open_safetensors(const Path& path) {
    MK_TRY(auto file, File::open(path));
    MK_TRY(auto header, read_safetensors_header(*file));
    Checkpoint checkpoint;
    for (SafetensorsEntry& entry : header.entries) {
      Bytes bytes = file_bytes({file, header.data_begin + entry.begin, entry.end - entry.begin});
      checkpoint.tensors_.emplace_hint(checkpoint.tensors_.end(), entry.name,
                                       make_tensor(entry.name, entry.type, std::move(entry.dims), std::move(bytes)));
    }
    checkpoint.files_ = {path};
    checkpoint.metadata_ = std::move(header.metadata);
    return checkpoint;
  }

  static Result<Checkpoint> open_gguf(const Path& path) {
    MK_TRY(const GgufFile file, read_gguf(path));
    Checkpoint checkpoint;
    MK_TRY(GgufWeights weights, gguf_weights(file));
    checkpoint.tensors_ = std::move(weights.tensors);
    checkpoint.quantized_ = std::move(weights.quantized);
    checkpoint.files_ = {path};
    return checkpoint;
  }

  static Result<Checkpoint> open_pytorch(const Path& path) {
    MK_TRY(auto file, File::open(path));
    Checkpoint checkpoint;
    MK_TRY(checkpoint.tensors_, read_pytorch(file));
    checkpoint.files_ = {path};
    return checkpoint;
  }
};

Result<Checkpoint> Checkpoint::open(const Path& folder) {
  for (const WeightFile& candidate : weight_files) {
    const Path file = folder / candidate.name;
    if (is_there(file)) return candidate.open(file);
    if (is_there(index_of(file))) return CheckpointReaders::open_index(index_of(file), candidate.open);
  }
  MK_TRY(const Path gguf, gguf_of(folder));
  if (!gguf.empty()) return CheckpointReaders::open_gguf(gguf);
  return tl::make_unexpected(no_weights(folder));
}

Result<Checkpoint> Checkpoint::open_safetensors(const Path& file) { return CheckpointReaders::open_safetensors(file); }
Result<Checkpoint> Checkpoint::open_pytorch(const Path& file) { return CheckpointReaders::open_pytorch(file); }

const Tensor* Checkpoint::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const QuantizedMatrix* Checkpoint::quantized(std::string_view name) const {
  const auto found = quantized_.find(name);
  return found == quantized_.end() ? nullptr : &found->second;
}

std::uint64_t Checkpoint::total_bytes() const {
  std::set<std::tuple<const File*, std::uint64_t, std::uint64_t>> seen;
  std::uint64_t total = 0;
  for (const auto& [name, tensor] : tensors_) {
    const auto range = tensor.data->file_range();
    if (!range || seen.emplace(range->file.get(), range->offset, range->length).second) total += tensor.byte_count();
  }
  return total;
}

}  // namespace mk
