#include "hub/hub_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json.h"
#include "base/text.h"
#include "checkpoint/gguf.h"
#include "graph/onnx_reader.h"
#include "hub/side_files.h"

namespace mk {
namespace {

constexpr std::string_view config_name = "config.json";
constexpr std::string_view index_suffix = ".index.json";
constexpr std::string_view weight_names[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                             "pytorch_model.bin.index.json"};
// Weights of other libraries, by what their names end with.
constexpr std::string_view foreign_weights[] = {".safetensors", ".bin", ".gguf", ".h5",  ".msgpack",
                                                ".ckpt",        ".pth", ".pt",   ".onnx"};

constexpr std::string_view configs[] = {
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
    "feature_extractor_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
};

bool is_config(std::string_view name) {
  return std::find(std::begin(configs), std::end(configs), name) != std::end(configs);
}

bool is_graph(std::string_view name) { return lower_case(name).ends_with(".onnx"); }

std::vector<std::string> graphs_of(const HubRepositoryInfo& repository) {
  std::vector<std::string> graphs;
  for (const HubFile& file : repository.files)
    if (is_graph(file.name)) graphs.push_back(file.name);
  return graphs;
}

// Checkpoints by themselves.
std::vector<std::string> ggufs_of(const HubRepositoryInfo& repository) {
  std::vector<std::string> files;
  for (const HubFile& file : repository.files)
    if (is_gguf(path_from_utf8(file.name)) && file.name.find('/') == std::string::npos) files.push_back(file.name);
  return files;
}

std::string listed(const std::vector<std::string>& names, const std::string& before = {}) {
  constexpr std::size_t most = 12;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most; ++i)
    text += fmt::format("{}{}{}", i > 0 ? ", " : "", before, names[i]);
  return names.size() > most ? fmt::format("{} and {} more", text, names.size() - most) : text;
}

tl::unexpected<Error> no_weights(const HubRepositoryInfo& repository, const std::string& id) {
  const auto graphs = graphs_of(repository);
  if (!graphs.empty())
    return fail(ErrorCode::usage, fmt::format("{} has no weights, but ONNX models: {}", id, listed(graphs, id + "/")),
                id, "Give one of them as the model");
  std::vector<std::string> others;
  for (const HubFile& file : repository.files)
    if (std::any_of(std::begin(foreign_weights), std::end(foreign_weights),
                    [&](std::string_view suffix) { return file.name.ends_with(suffix); }))
      others.push_back(file.name);
  if (others.empty()) return fail(ErrorCode::not_found, fmt::format("{} has no weights", id), id);
  return fail(ErrorCode::unsupported, fmt::format("{} has weights of other kinds only: {}", id, listed(others)), id,
              fmt::format("Readable are {}", fmt::join(weight_names, ", ")));
}

void add_side_files(const HubRepositoryInfo& repository, Fetch fetch, std::vector<std::string>& files) {
  for (const HubFile& file : repository.files)
    if (is_config(file.name) || (fetch != Fetch::configs && is_side_file(file.name))) files.push_back(file.name);
}

tl::unexpected<Error> several(std::string_view kind, const std::string& id, const std::vector<std::string>& files) {
  return fail(ErrorCode::usage, fmt::format("{} has several {} files: {}", id, kind, listed(files)), id,
              fmt::format("Name one: {}/{}", id, files.front()));
}

Result<std::vector<std::string>> for_file(const HubRepositoryInfo& repository, const ModelRef& ref) {
  std::vector<std::string> files;
  if (repository.find(ref.file) == nullptr) {
    const auto graphs = graphs_of(repository);
    return fail(ErrorCode::not_found, fmt::format("{} has no file {}", ref.id, ref.file), ref.id,
                graphs.empty() ? "It has no ONNX file at all" : fmt::format("It has {}", listed(graphs, ref.id + "/")));
  }
  add_side_files(repository, Fetch::side_files, files);
  files.push_back(ref.file);
  return files;
}

Result<std::vector<std::string>> for_graph(const HubRepositoryInfo& repository, const ModelRef& ref,
                                           WantedModel wanted) {
  const auto graphs = graphs_of(repository), ggufs = ggufs_of(repository);
  if (graphs.empty() && ggufs.size() > 1) return several("GGUF", ref.id, ggufs);
  if (graphs.empty() && !ggufs.empty() && wanted != WantedModel::onnx) return ggufs;
  if (graphs.empty())
    return fail(ErrorCode::not_found, fmt::format("{} has neither config.json nor an ONNX file", ref.id), ref.id,
                "Give another id, or a folder with config.json and weights");
  if (graphs.size() > 1) return several("ONNX", ref.id, graphs);
  if (wanted == WantedModel::checkpoint)
    return fail(ErrorCode::usage, fmt::format("{} is an ONNX model already; a checkpoint is wanted here", ref.id),
                ref.id, "Give a folder with config.json and weights, or an id of the Hub");
  std::vector<std::string> files;
  add_side_files(repository, Fetch::side_files, files);
  files.push_back(graphs.front());
  return files;
}

}  // namespace

std::span<const std::string_view> weight_file_names() { return weight_names; }

Result<std::vector<std::string>> files_to_fetch(const HubRepositoryInfo& repository, const ModelRef& ref,
                                                WantedModel wanted, Fetch fetch) {
  if (ref.kind == ModelRefKind::hub_onnx) return for_file(repository, ref);
  if (repository.find(config_name) == nullptr) return for_graph(repository, ref, wanted);
  if (wanted == WantedModel::onnx) {
    const auto graphs = graphs_of(repository);
    return fail(ErrorCode::usage, fmt::format("{} is a checkpoint; an ONNX model is wanted here", ref.id), ref.id,
                graphs.empty() ? fmt::format("Build one first: winml build -m {} -o FOLDER", ref.raw)
                               : fmt::format("It has {}", listed(graphs, ref.id + "/")));
  }
  std::vector<std::string> files;
  add_side_files(repository, fetch, files);
  if (fetch != Fetch::all) return files;
  const auto weights = std::find_if(std::begin(weight_names), std::end(weight_names),
                                    [&](std::string_view name) { return repository.find(name) != nullptr; });
  if (weights != std::end(weight_names)) {
    files.emplace_back(*weights);
    return files;
  }
  const auto ggufs = ggufs_of(repository);
  if (ggufs.empty()) return no_weights(repository, ref.id);
  if (ggufs.size() > 1) return several("GGUF", ref.id, ggufs);
  files.push_back(ggufs.front());
  return files;
}

Result<std::vector<std::string>> files_named_by(const Path& snapshot, const std::vector<std::string>& fetched,
                                                const HubRepositoryInfo& repository) {
  std::set<std::string> named;
  for (const std::string& name : fetched) {
    if (is_graph(name)) {
      // What is wrong with a graph is for those to say who use it.
      const auto graph = read_onnx(snapshot / path_from_utf8(name), {.require_external_data = false});
      if (!graph) continue;
      const std::string folder = name.substr(0, name.rfind('/') + 1);
      for (const std::string& location : (*graph)->external_locations)
        if (repository.find(folder + location) != nullptr) named.insert(folder + location);
    } else if (name.ends_with(index_suffix)) {
      MK_TRY(const Json json, read_json(snapshot / path_from_utf8(name)));
      const JsonView shards = JsonView(json, name).at("weight_map");
      if (!shards.is_object()) return tl::make_unexpected(shards.expected("an object"));
      for (const auto& [tensor, shard] : shards.json().items()) {
        MK_TRY(std::string file, shards.at(tensor).string());
        if (repository.find(file) == nullptr)
          return fail(ErrorCode::malformed, fmt::format("the index names {}, which the repository does not have", file),
                      fmt::format("{}#/weight_map", name));
        named.insert(std::move(file));
      }
    }
  }
  return std::vector<std::string>(named.begin(), named.end());
}

}  // namespace mk
