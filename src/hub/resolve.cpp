#include "hub/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "checkpoint/gguf.h"

namespace mk {
namespace {

constexpr std::string_view manifest_suffix = "build_manifest.json";
constexpr std::string_view default_model = "model.onnx";

bool is_there(const Path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// What of interest a model folder has; names are relative to it.
struct Contents {
  bool has_config = false;
  bool has_weights = false;
  bool has_gguf = false;
  std::vector<Path> manifests;
  std::vector<Path> onnx;  // at the top, sorted
};

Result<Contents> look_into(const Path& folder) {
  MK_TRY(const auto names, list_folder(folder));
  Contents contents;
  const auto weights = weight_file_names();
  for (const Path& path : names) {
    const std::string name = to_utf8(path);
    contents.has_config |= name == "config.json";
    contents.has_weights |= std::find(weights.begin(), weights.end(), name) != weights.end();
    contents.has_gguf |= is_gguf(path);
    if (name.ends_with(manifest_suffix)) contents.manifests.push_back(path);
    if (path.extension() == ".onnx") contents.onnx.push_back(path);
  }
  return contents;
}

std::string listed(const std::vector<Path>& names) {
  std::vector<std::string> texts;
  texts.reserve(names.size());
  for (const Path& name : names) texts.push_back(to_utf8(name));
  return fmt::format("{}", fmt::join(texts, ", "));
}

// The graph that a build left: the only manifest's final artefact, else model.onnx, else the only graph. Empty where
// there is none; usage where there are several.
Result<Path> graph_in(const Path& folder, const Contents& contents) {
  std::vector<Path> final_artefacts;
  for (const Path& manifest : contents.manifests) {
    const auto json = read_json(folder / manifest);
    if (!json) continue;
    const auto name = JsonView(*json, {}).at("final_artifact").string();
    if (!name) continue;
    const Path file(std::u8string(name->begin(), name->end()));
    if (stays_inside(file) && is_there(folder / file)) final_artefacts.push_back(file);
  }
  if (final_artefacts.size() == 1) return final_artefacts.front();
  const std::vector<Path>& candidates = final_artefacts.empty() ? contents.onnx : final_artefacts;
  if (std::find(candidates.begin(), candidates.end(), Path(default_model)) != candidates.end())
    return Path(default_model);
  if (candidates.size() > 1)
    return fail(ErrorCode::usage, fmt::format("the folder has several models: {}", listed(candidates)), to_utf8(folder),
                "Name one of the files");
  return candidates.empty() ? Path() : candidates.front();
}

Result<ResolvedModel> resolve_folder(ResolvedModel model, WantedModel wanted) {
  const std::string where = to_utf8(model.folder);
  Contents contents;
  if (is_gguf(model.folder)) {
    contents.has_gguf = true;
  } else {
    MK_TRY(contents, look_into(model.folder));
  }
  const bool is_checkpoint =
      contents.has_gguf || (contents.has_config && (contents.has_weights || contents.onnx.empty()));
  const bool is_built = !contents.manifests.empty() || !is_checkpoint;
  if (wanted == WantedModel::onnx || (wanted == WantedModel::any && is_built)) {
    auto graph = graph_in(model.folder, contents);
    if (graph && !graph->empty()) {
      model.onnx = model.folder / *graph;
      return model;
    }
    // Of several graphs with one config.json, some commands need no more than that.
    if (!graph && (wanted == WantedModel::onnx || !contents.has_config))
      return tl::make_unexpected(std::move(graph).error());
  }
  if (wanted == WantedModel::onnx)
    return fail(ErrorCode::usage, "the folder has no ONNX model", where,
                fmt::format("Build one first: winml build -m {} -o FOLDER", model.name()));
  if (is_checkpoint || (wanted == WantedModel::any && contents.has_config)) return model;
  if (!contents.onnx.empty())
    return fail(ErrorCode::usage,
                fmt::format("the folder has ONNX models ({}) and no checkpoint", listed(contents.onnx)), where,
                "Give a folder with config.json and weights");
  return fail(ErrorCode::not_found, "the folder is no model: it has no config.json", where,
              "Give a folder with config.json and weights, or one that `winml build` made");
}

// All graphs of a snapshot, relative to it, sorted.
std::vector<Path> graphs_below(const Path& folder) {
  std::vector<Path> graphs;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".onnx") graphs.push_back(entry->path().lexically_relative(folder));
  std::sort(graphs.begin(), graphs.end());
  return graphs;
}

tl::unexpected<Error> not_a_checkpoint(std::string_view what, const Path& where) {
  return fail(ErrorCode::usage, fmt::format("{} is an ONNX model already; a checkpoint is wanted here", what),
              to_utf8(where), "Give a folder with config.json and weights, or an id of the Hub");
}

// A repository may publish one ONNX file and no transformers model; of several, one must be named.
Result<ResolvedModel> resolve_id(ResolvedModel model, WantedModel wanted) {
  const Path& folder = model.folder;
  const std::string& id = model.ref.id;
  if (is_there(folder / "config.json")) return resolve_folder(std::move(model), wanted);
  const auto graphs = graphs_below(folder);
  if (const auto contents = look_into(folder); graphs.empty() && contents && contents->has_gguf)
    return resolve_folder(std::move(model), wanted);
  if (graphs.empty())
    return fail(ErrorCode::not_found,
                fmt::format("the cached snapshot of {} has neither config.json nor an ONNX file", id), to_utf8(folder),
                "Give another id, or a folder with config.json and weights");
  if (graphs.size() > 1)
    return fail(ErrorCode::usage, fmt::format("{} has several ONNX files: {}", id, listed(graphs)), to_utf8(folder),
                fmt::format("Name one: {}/{}", id, to_utf8(graphs.front())));
  if (wanted == WantedModel::checkpoint) return not_a_checkpoint(id, folder);
  model.onnx = folder / graphs.front();
  return model;
}

// One file of a repository: a graph, or a GGUF file, which is a checkpoint by itself.
Result<ResolvedModel> resolve_hub_file(ResolvedModel model, WantedModel wanted) {
  const Path file = path_from_utf8(model.ref.file);
  if (is_gguf(file) && is_there(model.folder / file)) {
    model.folder /= file;
    return resolve_folder(std::move(model), wanted);
  }
  if (wanted == WantedModel::checkpoint && !is_gguf(file)) return not_a_checkpoint(model.ref.raw, {});
  model.onnx = model.folder / file;
  if (is_there(model.onnx)) return model;
  const auto graphs = graphs_below(model.folder);
  return fail(ErrorCode::not_found, fmt::format("the cached snapshot of {} has no {}", model.ref.id, model.ref.file),
              to_utf8(model.folder), graphs.empty() ? "" : fmt::format("It has {}", listed(graphs)));
}

}  // namespace

Result<ResolvedModel> resolve_model(const ModelRef& ref, WantedModel wanted, Hub& hub, Fetch fetch) {
  ResolvedModel model{.ref = ref};
  if (ref.kind == ModelRefKind::local_onnx) {
    if (wanted == WantedModel::checkpoint) return not_a_checkpoint(to_utf8(ref.local_path.filename()), ref.local_path);
    model.onnx = ref.local_path;
    model.folder = ref.local_path.has_parent_path() ? ref.local_path.parent_path() : Path(".");
    return model;
  }
  if (ref.kind == ModelRefKind::folder) {
    model.folder = ref.local_path;
    return resolve_folder(std::move(model), wanted);
  }
  MK_TRY(Snapshot snapshot, hub.snapshot(ref, wanted, fetch));
  model.folder = std::move(snapshot.folder);
  model.commit = std::move(snapshot.commit);
  return ref.kind == ModelRefKind::hub_onnx ? resolve_hub_file(std::move(model), wanted)
                                            : resolve_id(std::move(model), wanted);
}

Result<ResolvedModel> resolve_model(std::string_view text, WantedModel wanted, Hub& hub, Fetch fetch) {
  MK_TRY(const ModelRef ref, parse_model_ref(text));
  return resolve_model(ref, wanted, hub, fetch);
}

Result<ResolvedModel> resolve_local_model(std::string_view text, WantedModel wanted) {
  HubSettings settings;
  settings.roots = HubCache::from_environment().roots();
  settings.offline = "This command";
  Hub hub(std::move(settings), silent_progress());
  return resolve_model(text, wanted, hub);
}

}  // namespace mk
