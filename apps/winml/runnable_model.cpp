#include "winml/runnable_model.h"

#include "build/build.h"
#include "build/cache_key.h"

namespace mk::cli {

Result<Path> runnable_model(const ResolvedModel& model, const std::string& task, std::int64_t batch,
                            Progress& progress) {
  if (model.is_onnx()) return model.onnx;
  BuildRequest request;
  request.model = model;
  request.config.loader.task = task;
  request.config.exporting->batch_size = batch;
  request.cache_key = cache_key(task, request.config);
  request.folder = artifact_folder(model.name());
  request.prefix = *request.cache_key + "_";
  request.target = "auto/auto";
  MK_TRY(const auto report, build_model(request, progress));
  return report.final_artifact;
}

}  // namespace mk::cli
