#include "build/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "base/json.h"
#include "base/sha256.h"
#include "base/staging.h"
#include "base/system.h"
#include "build/cache_key.h"
#include "export/side_files.h"
#include "export/source_files.h"
#include "hub/content_id.h"

namespace mk {
namespace {

using Clock = std::chrono::steady_clock;

Path named(const BuildRequest& request, std::string_view name) {
  return request.folder / path_from_utf8(request.prefix + std::string(name));
}

Result<std::vector<Path>> source_files(const ResolvedModel& model) {
  return model.is_onnx() ? onnx_files(model.onnx) : checkpoint_files(model.folder);
}

// What the calibration data is made of: one file, or those in a folder.
Result<std::vector<Path>> calibration_files(const BuildConfig& config) {
  if (!config.quant || !config.quant->calibration_data) return std::vector<Path>{};
  const Path path = path_from_utf8(*config.quant->calibration_data);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return std::vector<Path>{path};
  std::vector<Path> files;
  for (std::filesystem::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    if (at->is_regular_file(error)) files.push_back(at->path());
  }
  if (error) return fail(ErrorCode::failed, "the calibration data cannot be listed: " + error.message(), to_utf8(path));
  std::ranges::sort(files);
  return files;
}

Result<BuildInputs> inputs_of(const BuildRequest& request) {
  Json said{{"config", config_hash(request.config)},
            {"shapes", request.shapes},
            {"float_type", request.float_type ? name_of(*request.float_type) : ""},
            {"then_float16", request.then_float16},
            {"intermediates", request.keep_intermediates}};
  if (!request.submodel.empty()) said["submodel"] = request.submodel;
  BuildInputs inputs{.tool_version = MODELKIT_VERSION,
                     .config_hash = sha256_hex(dump_json(said, -1)).substr(0, 16),
                     .target = request.target};
  const ContentIds ids = ContentIds::from_environment();
  MK_TRY(const std::vector<Path> files, source_files(request.model));
  for (const Path& file : files) {
    MK_TRY(inputs.sources[to_utf8(file.lexically_relative(request.model.folder))], ids.sha256(file));
  }
  MK_TRY(const std::vector<Path> samples, calibration_files(request.config));
  for (const Path& file : samples) {
    MK_TRY(inputs.sources["calibration: " + to_utf8(file)], ids.sha256(file));
  }
  return inputs;
}

// What is wrong with the artefacts that a manifest lists; empty where they are as they were written.
std::string damage(const Path& folder, const Manifest& manifest) {
  const ContentIds ids = ContentIds::from_environment();
  for (const ArtifactRecord& artifact : manifest.artifacts) {
    const Path path = folder / path_from_utf8(artifact.name);
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (error) return artifact.name + " is missing";
    if (artifact.role == "side") continue;
    if (size != artifact.bytes) return artifact.name + " has another size than when it was built";
    const auto hash = ids.sha256(path);
    if (!hash || *hash != artifact.sha256) return artifact.name + " has been changed since it was built";
  }
  return {};
}

Status refuse_stage(std::string_view stage) {
  return fail(ErrorCode::usage,
              fmt::format("the config asks for a {} stage, which this version of winml does not have", stage),
              fmt::format("#/{}", stage), fmt::format("Set it to null, or pass --no-{}", stage));
}

Status check_request(const BuildRequest& request) {
  MK_CHECK(validate(request.config));
  if (request.config.compile) return refuse_stage("compile");
  if (request.model.is_onnx() && request.config.exporting) {
    return fail(ErrorCode::usage, "the config has an export section, but the model is an ONNX file", "#/export",
                "Set it to null");
  }
  if (!request.model.is_onnx() && !request.config.exporting) {
    return fail(ErrorCode::usage, "the config is for an ONNX file, but the model is a checkpoint", "#/export",
                "Give it an export section");
  }
  MK_TRY(const std::vector<Path> sources, source_files(request.model));
  const Path model = named(request, "model.onnx");
  std::vector<Path> outputs{model, with_suffix(model, ".data")};
  if (request.keep_intermediates) {
    for (const char* name : {"export.onnx", "optimized.onnx", "quantized.onnx"}) {
      outputs.push_back(named(request, name));
      outputs.push_back(with_suffix(outputs.back(), ".data"));
    }
  }
  return keep_sources(sources, outputs);
}

// The old state of the output folder, and what to do about it.
struct Before {
  std::optional<Manifest> manifest;
  bool model_there = false;
};

// As it is between publications: another build may be moving its files into the folder.
Result<Before> look(const BuildRequest& request, std::string& problem) {
  MK_TRY(const FolderLock lock, wait_for_lock(request.folder));
  std::error_code ignored;
  return Before{.manifest = find_manifest(request.folder, request.prefix, problem),
                .model_there = std::filesystem::exists(named(request, "model.onnx"), ignored)};
}

Status refuse_foreign(const Path& model) {
  return fail(ErrorCode::exists, "the folder has a model that no build made", to_utf8(model),
              "Choose another folder with -o, or pass --rebuild to replace it");
}

Status commit(Publication& publication) {
  Status status = publication.commit();
  if (!status && status.error().code == ErrorCode::exists)
    status.error().hint = "Another process has written it meanwhile; run again, with --rebuild to replace it";
  return status;
}

Result<ArtifactRecord> artifact(const BuildState& state, const Path& path, std::string_view role) {
  const Path staged = state.publication.staged(path);
  MK_TRY(const auto file, File::open(staged.empty() ? path : staged));
  MK_TRY(std::string hash, sha256_hex(*file));
  return ArtifactRecord{to_utf8(path.lexically_relative(state.request.folder)), std::string(role), file->size(),
                        std::move(hash)};
}

// Data and intermediates of the old model that the new one does not have.
void remove_old_files(BuildState& state, const std::optional<Manifest>& before) {
  if (!before) return;
  const ContentIds ids = ContentIds::from_environment();
  for (const ArtifactRecord& old : before->artifacts) {
    if (old.role != "data" && old.role != "intermediate") continue;
    const Path path = state.request.folder / path_from_utf8(old.name);
    const bool stays = std::ranges::find(state.files, path) != state.files.end() ||
                       std::ranges::find(state.intermediates, path) != state.intermediates.end();
    if (stays) continue;
    // An intermediate that is no longer what a build wrote is the user's.
    const auto hash = old.role == "intermediate" ? ids.sha256(path) : Result<std::string>(old.sha256);
    if (hash && *hash == old.sha256) state.publication.remove_on_commit(path);
  }
}

std::uint64_t model_bytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const ArtifactRecord& a : manifest.artifacts) bytes += a.role == "model" || a.role == "data" ? a.bytes : 0;
  return bytes;
}

BuildReport reused(const BuildRequest& request, Manifest manifest, Clock::time_point start) {
  BuildReport report{.model_id = request.model.name(),
                     .reused = true,
                     .reason = "the source, the config and the target are those of the last build",
                     .final_artifact = named(request, "model.onnx"),
                     .config_path = named(request, "winml_build_config.json"),
                     .manifest_path = manifest_path(request.folder, request.prefix),
                     .manifest = std::move(manifest)};
  report.bytes = model_bytes(report.manifest);
  report.elapsed_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

}  // namespace

Status check_build(const BuildRequest& request) {
  MK_CHECK(check_request(request));
  std::string problem;
  MK_TRY(const Before before, look(request, problem));
  if (!before.model_there || before.manifest || request.rebuild) return {};
  return refuse_foreign(named(request, "model.onnx"));
}

Result<BuildReport> build_model(const BuildRequest& request, Progress& progress) {
  const auto start = Clock::now();
  sweep_leftovers(request.folder);
  MK_CHECK(check_request(request));
  const Path final_path = named(request, "model.onnx");
  std::string problem;
  MK_TRY(Before before, look(request, problem));
  if (!problem.empty()) progress.warn("the manifest of an older build is not used: " + problem);

  std::optional<BuildInputs> known_inputs;
  std::string reason;
  if (before.model_there) {
    if (request.rebuild) {
      reason = "--rebuild";
    } else if (!before.manifest) {
      return tl::make_unexpected(refuse_foreign(final_path).error());
    } else {
      MK_TRY(known_inputs, inputs_of(request));
      reason = difference(before.manifest->inputs, *known_inputs);
      if (reason.empty()) reason = damage(request.folder, *before.manifest);
      if (reason.empty()) return reused(request, std::move(*before.manifest), start);
      progress.note("building again: " + reason);
    }
  }

  BuildState state{.request = request, .progress = progress, .config = request.config, .final_path = final_path};
  if (before.manifest) state.old_intermediates = artifacts_of(*before.manifest, "intermediate");
  // Hashing the source takes as long as reading it: beside the writing, once the graph is known to be good.
  std::future<Result<BuildInputs>> hashing;
  state.graph_is_good = [&] {
    if (!known_inputs) hashing = std::async(std::launch::async, [&request] { return inputs_of(request); });
  };
  MK_TRY(std::vector<StageRecord> records, run_stages(state, build_stages()));
  if (!known_inputs) {
    MK_TRY(known_inputs, hashing.get());
  }

  Manifest manifest{.source = request.model.is_onnx() ? "onnx" : "hf",
                    .final_artifact = to_utf8(final_path.filename()),
                    .stages = std::move(records),
                    .model_id = request.model.name(),
                    .task = state.plan ? std::optional(state.plan->head.task) : request.config.loader.task,
                    .cache_key = request.cache_key,
                    .timestamp = utc_timestamp(),
                    .inputs = std::move(*known_inputs)};
  if (!request.model.commit.empty()) {
    const ResolvedModel& model = request.model;
    manifest.revision = model.commit;
    Json hub{{"repository", model.ref.id}, {"revision", model.commit}};
    if (model.is_onnx()) hub["artifact"] = to_utf8(model.onnx.lexically_relative(model.folder));
    manifest.extras = std::make_shared<const Json>(Json{{"hub", std::move(hub)}});
  }
  if (request.model.is_onnx()) manifest.input_onnx = to_utf8(request.model.onnx);
  for (StageRecord& record : manifest.stages) {
    if (record.name == "finish") record.filename = manifest.final_artifact;
  }

  const Path config_path = named(request, "winml_build_config.json");
  state.config.automatic = false;
  MK_TRY(const std::vector<std::string> sides,
         add_side_files(request.model.folder, request.folder,
                        before.manifest ? artifacts_of(*before.manifest, "side") : std::vector<std::string>{}, true,
                        state.publication, progress));
  MK_CHECK(state.publication.add_text(config_path, dump_json(to_json(state.config)), true));
  for (std::size_t i = 0; i < state.files.size(); ++i) {
    MK_TRY(manifest.artifacts.emplace_back(), artifact(state, state.files[i], i == 0 ? "model" : "data"));
  }
  for (const Path& file : state.intermediates) {
    MK_TRY(manifest.artifacts.emplace_back(), artifact(state, file, "intermediate"));
  }
  MK_TRY(manifest.artifacts.emplace_back(), artifact(state, config_path, "config"));
  for (const std::string& side : sides) {
    MK_TRY(manifest.artifacts.emplace_back(), artifact(state, request.folder / path_from_utf8(side), "side"));
  }
  remove_old_files(state, before.manifest);
  manifest.elapsed_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  const Path manifest_file = manifest_path(request.folder, request.prefix);
  MK_CHECK(state.publication.add_text(manifest_file, dump_json(to_json(manifest)), true));
  // A folder with a model has its manifest.
  state.publication.publish_last(final_path);
  MK_CHECK(commit(state.publication));

  BuildReport report{.model_id = request.model.name(),
                     .reason = reason,
                     .final_artifact = final_path,
                     .config_path = config_path,
                     .manifest_path = manifest_file,
                     .manifest = std::move(manifest)};
  report.bytes = model_bytes(report.manifest);
  report.elapsed_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return report;
}

Json to_json(const BuildReport& report) {
  Json json{{"model_id", report.model_id},
            {"final_artifact", to_utf8(report.final_artifact)},
            {"build_config", to_utf8(report.config_path)},
            {"manifest", to_utf8(report.manifest_path)},
            {"reused", report.reused},
            {"reason", report.reason.empty() ? Json(nullptr) : Json(report.reason)},
            {"bytes", report.bytes},
            {"elapsed_seconds", report.elapsed_seconds},
            {"stages", to_json(report.manifest)["stages"]}};
  return json;
}

}  // namespace mk
