#include "winml/runnable_model.h"

#include <random>

#include "build/build.h"
#include "build/cache_key.h"
#include "build/generate.h"
#include "export/model_config.h"
#include "winml/export_options.h"

namespace mk::cli {
namespace {

struct TemporaryFolder {
  explicit TemporaryFolder(Path folder) : path(std::move(folder)) {}
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  Path path;
};

Result<std::shared_ptr<TemporaryFolder>> temporary_folder() {
  std::error_code error;
  const Path parent = std::filesystem::temp_directory_path(error);
  std::random_device random;
  for (int tries = 0; !error && tries < 100; ++tries) {
    Path path = parent / ("winml_" + std::to_string(random()));
    if (std::filesystem::create_directory(path, error)) return std::make_shared<TemporaryFolder>(std::move(path));
  }
  return fail(ErrorCode::failed, "no temporary folder can be made: " + error.message(), to_utf8(parent));
}

Result<BuildConfig> config_of(const ResolvedModel& model, const CheckpointBuild& build,
                              std::map<std::string, std::int64_t>& shapes, Context& context) {
  GenerateRequest request;
  request.model_id = model.name();
  request.task = build.task;
  MK_TRY(request.policy, target_policy_of(build.target));
  request.target_typed = build.target.typed();
  request.resolve = target_resolver(build.target, context);
  MK_CHECK(apply_export_files(request.exporting, request.shapes, build.files, context.progress));
  if (!build.shapes.empty()) request.shapes = build.shapes;
  if (build.batch) {
    request.exporting.batch_size = *build.batch;
    request.exporting.present.emplace_back("batch_size");
  }
  shapes = request.shapes;
  MK_TRY(const ModelConfig config, read_model_config(model.folder, model.name()));
  return generate_config(config, model.folder, request, context.progress);
}

}  // namespace

Result<RunnableModel> runnable_model(const ResolvedModel& model, const CheckpointBuild& build, Context& context) {
  if (model.is_onnx()) return RunnableModel{model.onnx, {}, {}};
  BuildRequest request;
  request.model = model;
  MK_TRY(request.config, config_of(model, build, request.shapes, context));
  request.target = build.target.ep.value_or("auto") + "/" + build.target.device.value_or("auto");
  request.rebuild = build.rebuild;
  request.ort = build.target.ort;
  std::shared_ptr<TemporaryFolder> folder;
  if (build.use_cache) {
    request.cache_key = cache_key(request.config.loader.task.value_or(""), request.config);
    request.folder = artifact_folder(model.ref);
    request.prefix = *request.cache_key + "_";
  } else {
    MK_TRY(folder, temporary_folder());
    request.folder = folder->path;
  }
  MK_TRY(const auto report, build_model(request, context.progress));
  return RunnableModel{report.final_artifact, request.config.loader.task, std::move(folder)};
}

}  // namespace mk::cli
