#include "build/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/file.h"
#include "base/json.h"

namespace mk {
namespace {

constexpr std::int64_t schema_version = 1;
constexpr std::array<std::string_view, 13> known_keys{
    "schema_version", "source",      "final_artifact", "stages",          "model_id",  "revision", "task",
    "cache_key",      "config_hash", "input_onnx",     "elapsed_seconds", "timestamp", "inputs"};

double milliseconds(double seconds) { return std::round(seconds * 1000.0) / 1000.0; }

template <typename T>
void put(Json& json, const char* key, const std::optional<T>& value) {
  if (value) json[key] = *value;
}

Result<std::optional<std::string>> text_at(const JsonView& json, std::string_view key) {
  if (!json.has(key)) return std::nullopt;
  MK_TRY(std::string text, json.at(key).string());
  return text;
}

Result<StageRecord> parse_stage(const JsonView& json) {
  StageRecord stage;
  MK_TRY(stage.name, json.at("name").string());
  MK_TRY(const std::string status, json.at("status").string());
  stage.completed = status == "completed";
  MK_TRY(stage.filename, text_at(json, "filename"));
  MK_TRY(stage.reason, text_at(json, "reason"));
  if (json.has("elapsed_seconds")) {
    MK_TRY(stage.elapsed_seconds, json.at("elapsed_seconds").number());
  }
  if (json.has("details")) stage.details = std::make_shared<Json>(json.at("details").json());
  return stage;
}

Result<ArtifactRecord> parse_artifact(const JsonView& json) {
  ArtifactRecord artifact;
  MK_TRY(artifact.name, json.at("name").string());
  MK_TRY(artifact.role, json.at("role").string());
  MK_TRY(const std::int64_t bytes, json.at("bytes").integer());
  artifact.bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(0, bytes));
  MK_TRY(artifact.sha256, json.at("sha256").string());
  if (!stays_inside(path_from_utf8(artifact.name))) {
    return tl::make_unexpected(json.at("name").error("an artefact's name may not leave the folder"));
  }
  return artifact;
}

Result<BuildInputs> parse_inputs(const JsonView& json) {
  BuildInputs inputs;
  MK_TRY(inputs.tool_version, json.at("tool_version").string());
  MK_TRY(inputs.config_hash, json.at("config_hash").string());
  MK_TRY(inputs.target, json.at("target").string());
  const JsonView sources = json.at("sources");
  if (!sources.is_object()) return tl::make_unexpected(sources.expected("an object"));
  for (const auto& item : sources.json().items()) {
    MK_TRY(inputs.sources[item.key()], sources.at(item.key()).string());
  }
  return inputs;
}

}  // namespace

Json to_json(const Manifest& m) {
  Json json{{"schema_version", schema_version}, {"source", m.source}, {"final_artifact", m.final_artifact}};
  Json& stages = json["stages"] = Json::array();
  for (const StageRecord& record : m.stages) {
    Json stage{{"name", record.name}, {"status", record.completed ? "completed" : "skipped"}};
    put(stage, "filename", record.filename);
    if (record.elapsed_seconds) stage["elapsed_seconds"] = milliseconds(*record.elapsed_seconds);
    if (record.details) stage["details"] = *record.details;
    put(stage, "reason", record.reason);
    stages.push_back(std::move(stage));
  }
  put(json, "model_id", m.model_id);
  put(json, "revision", m.revision);
  put(json, "task", m.task);
  put(json, "cache_key", m.cache_key);
  if (m.cache_key) json["config_hash"] = m.cache_key->substr(m.cache_key->rfind('_') + 1);
  put(json, "input_onnx", m.input_onnx);
  json["elapsed_seconds"] = milliseconds(m.elapsed_seconds);
  json["timestamp"] = m.timestamp;
  json["inputs"] = {{"tool_version", m.inputs.tool_version},
                    {"config_hash", m.inputs.config_hash},
                    {"target", m.inputs.target},
                    {"sources", Json::object()}};
  for (const auto& [name, hash] : m.inputs.sources) json["inputs"]["sources"][name] = hash;
  Json& artifacts = json["artifacts"] = Json::array();
  for (const ArtifactRecord& a : m.artifacts) {
    artifacts.push_back(Json{{"name", a.name}, {"role", a.role}, {"bytes", a.bytes}, {"sha256", a.sha256}});
  }
  if (m.extras) json.update(*m.extras);
  return json;
}

Result<Manifest> parse_manifest(const Json& json, const std::string& name) {
  const JsonView view(json, name);
  if (!view.is_object()) return tl::make_unexpected(view.expected("an object"));
  MK_TRY(const std::int64_t version, view.at("schema_version").integer());
  if (version != schema_version) return tl::make_unexpected(view.at("schema_version").expected("1"));
  Manifest m;
  MK_TRY(m.source, view.at("source").string());
  MK_TRY(m.final_artifact, view.at("final_artifact").string());
  if (!stays_inside(path_from_utf8(m.final_artifact))) {
    return tl::make_unexpected(view.at("final_artifact").error("the artefact's name may not leave the folder"));
  }
  for (std::size_t i = 0; i < view.at("stages").size(); ++i) {
    MK_TRY(m.stages.emplace_back(), parse_stage(view.at("stages").at(i)));
  }
  MK_TRY(m.model_id, text_at(view, "model_id"));
  MK_TRY(m.revision, text_at(view, "revision"));
  MK_TRY(m.task, text_at(view, "task"));
  MK_TRY(m.cache_key, text_at(view, "cache_key"));
  MK_TRY(m.input_onnx, text_at(view, "input_onnx"));
  if (view.has("elapsed_seconds")) {
    MK_TRY(m.elapsed_seconds, view.at("elapsed_seconds").number());
  }
  if (view.has("timestamp")) {
    MK_TRY(m.timestamp, view.at("timestamp").string());
  }
  if (view.has("inputs")) {
    MK_TRY(m.inputs, parse_inputs(view.at("inputs")));
  }
  for (std::size_t i = 0; i < view.at("artifacts").size(); ++i) {
    MK_TRY(m.artifacts.emplace_back(), parse_artifact(view.at("artifacts").at(i)));
  }
  Json extras = Json::object();
  for (const auto& item : json.items()) {
    const bool known = item.key() == "artifacts" || std::ranges::find(known_keys, item.key()) != known_keys.end();
    if (!known) extras[item.key()] = item.value();
  }
  if (!extras.empty()) m.extras = std::make_shared<const Json>(std::move(extras));
  return m;
}

Path manifest_path(const Path& folder, std::string_view prefix) {
  return folder / path_from_utf8(std::string(prefix) + "build_manifest.json");
}

std::optional<Manifest> find_manifest(const Path& folder, std::string_view prefix, std::string& problem) {
  const Path path = manifest_path(folder, prefix);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  const auto json = read_json(path);
  if (!json) {
    problem = json.error().to_string();
    return std::nullopt;
  }
  auto manifest = parse_manifest(*json, to_utf8(path));
  if (!manifest) {
    problem = manifest.error().to_string();
    return std::nullopt;
  }
  return std::move(*manifest);
}

std::vector<std::string> artifacts_of(const Manifest& manifest, std::string_view role) {
  std::vector<std::string> names;
  for (const ArtifactRecord& artifact : manifest.artifacts) {
    if (artifact.role == role) names.push_back(artifact.name);
  }
  return names;
}

std::string difference(const BuildInputs& before, const BuildInputs& now) {
  if (before.tool_version.empty()) return "its manifest does not say what it was built from";
  if (before.tool_version != now.tool_version) {
    return fmt::format("winml is {}, it was built by {}", now.tool_version, before.tool_version);
  }
  if (before.config_hash != now.config_hash) return "the config is another one";
  if (before.target != now.target)
    return fmt::format("the target is {}, it was built for {}", now.target, before.target);
  for (const auto& [name, hash] : now.sources) {
    const auto found = before.sources.find(name);
    if (found == before.sources.end()) return fmt::format("{} is new in the source", name);
    if (found->second != hash) return fmt::format("{} has changed", name);
  }
  for (const auto& [name, hash] : before.sources) {
    if (!now.sources.contains(name)) return fmt::format("{} is no longer in the source", name);
  }
  return {};
}

}  // namespace mk
