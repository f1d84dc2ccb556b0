#include "build/composite.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "base/publish.h"

namespace mk {
namespace {

Result<Path> write_manifest(const CompositeRequest& request, const CompositeReport& report) {
  const BuildRequest& first = request.components.front();
  Json components = Json::object();
  for (const auto& [name, built] : report.components) components[name] = to_utf8(built.final_artifact.filename());
  const Json manifest{{"schema_version", 1},
                      {"model_id", first.model.name()},
                      {"model_type", first.config.loader.model_type ? Json(*first.config.loader.model_type) : Json()},
                      {"pipeline_tasks", request.pipeline_tasks},
                      {"components", components}};
  Path path = first.folder / "composite_manifest.json";
  Publication publication;
  MK_CHECK(publication.add_text(path, dump_json(manifest) + "\n", true));
  MK_CHECK(publication.commit());
  return path;
}

}  // namespace

Result<CompositeReport> build_composite(const CompositeRequest& request, Progress& progress) {
  for (const BuildRequest& component : request.components) MK_CHECK(check_build(component));
  CompositeReport report{.components = {}, .pipeline_tasks = request.pipeline_tasks, .manifest_path = {}};
  std::vector<std::string> done;
  for (const BuildRequest& component : request.components) {
    progress.note(fmt::format("{} ({})", component.submodel, component.config.loader.task.value_or("")));
    auto built = build_model(component, progress);
    if (!built) {
      if (!done.empty())
        progress.warn(
            fmt::format("the build of {} failed; {} is complete and stays", component.submodel, fmt::join(done, ", ")));
      return tl::make_unexpected(std::move(built).error());
    }
    report.elapsed_seconds += built->elapsed_seconds;
    done.push_back(component.submodel);
    report.components.emplace_back(component.submodel, std::move(*built));
  }
  if (request.whole) {
    MK_TRY(report.manifest_path, write_manifest(request, report));
  }
  return report;
}

Json to_json(const CompositeReport& report) {
  Json components = Json::object();
  for (const auto& [name, built] : report.components) components[name] = to_json(built);
  return {{"pipeline_tasks", report.pipeline_tasks},
          {"components", std::move(components)},
          {"composite_manifest", report.manifest_path.empty() ? Json(nullptr) : Json(to_utf8(report.manifest_path))},
          {"elapsed_seconds", report.elapsed_seconds}};
}

}  // namespace mk
