#include "export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "base/json.h"
#include "base/system.h"
#include "export/model_config.h"
#include "export/model_metadata.h"
#include "export/report_files.h"
#include "export/side_files.h"
#include "export/source_files.h"
#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "graph/shape_inference.h"
#include "graph/verifier.h"

namespace mk {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// `names` are the plan's, in the outputs' order.
void name_outputs(Graph& graph, const std::vector<std::string>& names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    Value* const output = graph.outputs()[i];
    if (output->name() == names[i]) continue;
    if (Value* const other = graph.find(names[i])) graph.rename(other, graph.unique_name(names[i]));
    graph.rename(output, names[i]);
  }
}

// Whether the model that is there has this file for its external data.
bool names_data(const Path& model, const Path& data) {
  const auto old = read_onnx(model, {.require_external_data = false});
  return old &&
         std::ranges::find((*old)->external_locations, to_utf8(data.filename())) != (*old)->external_locations.end();
}

// Weights that float16 cannot hold would become infinite. One pass over them, only where float16 was asked for.
Status check_float16_range(const Model& model) {
  constexpr std::size_t block = 1u << 20;
  std::vector<std::byte> buffer(block);
  std::vector<std::string> names;
  for (const Value* value : model.graph->initializers()) {
    const Tensor& tensor = *value->initializer();
    if (tensor.type != DataType::float16 || tensor.data == nullptr || tensor.data->in_memory()) continue;
    bool infinite = false;
    for (std::uint64_t at = 0; at < tensor.data->size() && !infinite; at += block) {
      const std::span<std::byte> part(buffer.data(), std::min<std::uint64_t>(block, tensor.data->size() - at));
      MK_CHECK(tensor.data->read(at, part));
      for (std::size_t i = 0; i + 1 < part.size(); i += 2) {
        const auto bits = std::to_integer<unsigned>(part[i]) | std::to_integer<unsigned>(part[i + 1]) << 8;
        infinite = infinite || (bits & 0x7FFF) == 0x7C00;
      }
    }
    if (infinite) names.push_back(tensor.name);
  }
  if (names.empty()) return {};
  return fail(
      ErrorCode::unsupported,
      fmt::format("{} tensors have values beyond float16's 65504, the first is {}", names.size(), names.front()), {},
      "Export as fp32");
}

// The checked graph of a plan.
Result<ExportedGraph> build_planned(const ModelConfig& config, const Checkpoint& checkpoint,
                                    const ExportRequest& request, ExportPlan plan, Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  ExportedGraph result{.plan = std::move(plan), .built = {}};
  const BuildOptions options{.opset = request.config.opset_version,
                             .hierarchy_tags = request.config.enable_hierarchy_tags && !request.config.clean_onnx,
                             .float_type = request.float_type,
                             .progress = &progress,
                             .keep_quantized = request.keep_quantized};
  MK_TRY(result.built, build_graph(config, result.plan.head, checkpoint, result.plan.inputs, options));
  Model& model = *result.built.model;
  name_outputs(*model.graph, result.plan.outputs);
  add_model_metadata(model, result.plan);
  MK_TRY(const InferenceReport inference, infer_shapes(model));
  for (const InferenceNote& note : inference.notes) progress.debug(fmt::format("{}: {}", note.node, note.message));
  MK_CHECK(verify(model));
  MK_CHECK(check_onnx(model));
  if (request.float_type == DataType::float16) MK_CHECK(check_float16_range(model));
  result.seconds = seconds_since(start);
  return result;
}

// The files of one graph.
struct GraphPaths {
  Path model, data, metadata, markdown;
};

// "out/m.onnx" for a lone graph, "out/m_encoder.onnx" for one of several.
GraphPaths paths_of(const Path& output, const std::string& component) {
  Path model = output;
  if (!component.empty()) {
    model = output.parent_path() / output.stem();
    model += path_from_utf8("_" + component);
    model += output.has_extension() ? output.extension() : Path(".onnx");
  }
  const Path stem = model.parent_path() / model.stem();
  return {model, with_suffix(model, ".data"), with_suffix(stem, "_htp_metadata.json"),
          with_suffix(stem, "_htp_export_report.md")};
}

// All answers that a user may have to give come before any work.
Status check_destination(const ExportRequest& request, const ExportDestination& destination,
                         const std::vector<GraphPaths>& paths) {
  std::vector<Path> outputs;
  for (const GraphPaths& path : paths) {
    outputs.insert(outputs.end(), {path.model, path.data});
    std::error_code ignored;
    if (destination.overwrite) continue;
    for (const Path* file : {&path.model, &path.metadata, &path.markdown}) {
      if (file != &path.model && !destination.with_report) continue;
      if (!std::filesystem::exists(*file, ignored)) continue;
      return fail(ErrorCode::exists, "Output already exists", to_utf8(*file), "Re-run with --overwrite to replace it");
    }
  }
  MK_TRY(const std::vector<Path> sources, checkpoint_files(request.folder));
  return keep_sources(sources, outputs);
}

// Puts a graph's files into the publication.
Result<GraphReport> write_graph(const ExportedGraph& exported, const ExportRequest& request,
                                const ExportDestination& destination, const GraphPaths& paths,
                                Publication& publication) {
  const auto start = std::chrono::steady_clock::now();
  const bool overwrite = destination.overwrite;
  Model& model = *exported.built.model;
  GraphReport report{.plan = exported.plan,
                     .opset = model.opset(),
                     .nodes = model.graph->node_count(),
                     .initializers = model.graph->initializers().size(),
                     .parameters = exported.built.parameter_count,
                     .unused = exported.built.unused,
                     .tied = exported.built.tied};
  std::vector<Path> reports;
  if (destination.with_report) {
    const ReportFacts facts{request.model_id,   paths.model,
                            model_bytes(model), exported.seconds,
                            utc_timestamp(),    request.config.enable_hierarchy_tags && !request.config.clean_onnx};
    MK_CHECK(publication.add_text(paths.metadata, dump_json(metadata_report(exported, facts)) + "\n", overwrite));
    MK_CHECK(publication.add_text(paths.markdown, markdown_report(exported, facts), overwrite));
    reports = {paths.metadata, paths.markdown};
  }
  finish_tags(model, request.config);
  report.tagged_nodes = tagged_node_count(model);
  MK_TRY(const WrittenModel written, write_onnx(model, paths.model, publication, overwrite));
  if (written.files.size() == 1 && names_data(paths.model, paths.data)) publication.remove_on_commit(paths.data);
  report.files = written.files;
  report.files.insert(report.files.end(), reports.begin(), reports.end());
  report.bytes = written.bytes;
  report.seconds = exported.seconds + seconds_since(start);
  return report;
}

// Tensors of the checkpoint that no graph uses.
std::vector<std::string> unused_by_all(const std::vector<GraphReport>& graphs) {
  std::vector<std::string> names = graphs.front().unused;
  for (const GraphReport& graph : graphs)
    std::erase_if(names, [&](const std::string& name) { return !std::ranges::binary_search(graph.unused, name); });
  return names;
}

}  // namespace

Result<ExportedGraph> export_graph(const ExportRequest& request, Progress& progress) {
  MK_TRY(const ModelConfig config, read_model_config(request.folder, request.model_id));
  MK_TRY(ExportPlan plan, plan_export(config, request, progress));
  for (const std::string& remark : plan.remarks) progress.note(remark);
  warn_of_idle_flags(request.config, progress);
  MK_TRY(const Checkpoint checkpoint, Checkpoint::open(request.folder));
  return build_planned(config, checkpoint, request, std::move(plan), progress);
}

Result<ExportReport> export_model(const ExportRequest& request, const ExportDestination& destination,
                                  Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const Path folder = destination.output.has_parent_path() ? destination.output.parent_path() : Path(".");
  sweep_leftovers(folder);
  MK_TRY(const ModelConfig config, read_model_config(request.folder, request.model_id));
  MK_TRY(const ExportPlans plans, plan_exports(config, request, progress));
  std::vector<GraphPaths> paths;
  for (const ExportPlan& plan : plans.graphs) paths.push_back(paths_of(destination.output, plan.component));
  MK_CHECK(check_destination(request, destination, paths));
  warn_of_idle_flags(request.config, progress);

  ExportReport report{.model_id = request.model_id, .choices = plans.choices};
  Publication publication;
  MK_TRY(const Checkpoint checkpoint, Checkpoint::open(request.folder));
  std::set<std::string> remarks;
  for (std::size_t i = 0; i < plans.graphs.size(); ++i) {
    const ExportPlan& plan = plans.graphs[i];
    for (const std::string& remark : plan.remarks)
      if (remarks.insert(remark).second) progress.note(remark);
    const std::string of = plan.component.empty() ? "" : " " + plan.component;
    auto stage = progress.stage("export" + of);
    MK_TRY(const ExportedGraph exported, build_planned(config, checkpoint, request, plan, progress));
    MK_TRY(GraphReport graph, write_graph(exported, request, destination, paths[i], publication));
    stage->done(fmt::format("{} nodes, {:.1f} MB", graph.nodes, static_cast<double>(graph.bytes) / 1e6));
    if (destination.check) {
      auto line = progress.stage("verify" + of);
      MK_TRY(graph.check, destination.check(publication.staged(paths[i].model), plan));
      line->done(*graph.check);
    }
    report.graphs.push_back(std::move(graph));
  }
  MK_TRY(const std::vector<std::string> sides,
         add_side_files(request.folder, folder, destination.ours, destination.overwrite, publication, progress));
  MK_CHECK(publication.commit());

  for (const GraphReport& graph : report.graphs) {
    report.bytes += graph.bytes;
    report.files.insert(report.files.end(), graph.files.begin(), graph.files.end());
  }
  for (const std::string& side : sides) report.files.push_back(folder / side);
  report.unused = unused_by_all(report.graphs);
  report.seconds = seconds_since(start);
  return report;
}

namespace {

// What a graph's entry and a lone graph's report have in common.
void add_graph(Json& json, const GraphReport& graph) {
  json["inputs"] = to_json(graph.plan.inputs);
  Json& outputs = json["outputs"] = Json::array();
  for (const std::string& name : graph.plan.outputs) outputs.push_back(Json{{"name", name}});
  json["opset_version"] = graph.opset;
  json["onnx_nodes"] = graph.nodes;
  json["tagged_nodes"] = graph.tagged_nodes;
  json["initializers"] = graph.initializers;
  json["parameters"] = graph.parameters;
}

Json names_json(const std::vector<Path>& paths) {
  Json names = Json::array();
  for (const Path& path : paths) names.push_back(to_utf8(path));
  return names;
}

Json verify_json(const GraphReport& graph) { return graph.check ? Json(*graph.check) : Json(nullptr); }

Json component_json(const GraphReport& graph) {
  Json json{{"task", graph.plan.head.task}, {"model_class", graph.plan.head.class_name}};
  add_graph(json, graph);
  json["tied_tensors"] = graph.tied;
  json["verify"] = verify_json(graph);
  json["bytes"] = graph.bytes;
  json["export_time"] = graph.seconds;
  json["files"] = names_json(graph.files);
  return json;
}

}  // namespace

Json to_json(const ExportReport& report) {
  const GraphReport& first = report.graphs.front();
  Json json{{"model_id", report.model_id},
            {"model_type", first.plan.head.model_type},
            {"task", report.choices.task},
            {"task_source", report.choices.task_source}};
  if (report.choices.is_composite()) {
    json["pipeline_tasks"] = report.choices.pipeline_tasks;
    Json& components = json["components"] = Json::object();
    for (const GraphReport& graph : report.graphs) components[graph.plan.component] = component_json(graph);
    json["unused_tensors"] = report.unused;
  } else {
    json["model_class"] = first.plan.head.class_name;
    add_graph(json, first);
    json["unused_tensors"] = report.unused;
    json["tied_tensors"] = first.tied;
    json["verify"] = verify_json(first);
  }
  json["bytes"] = report.bytes;
  json["export_time"] = report.seconds;
  json["files"] = names_json(report.files);
  return json;
}

}  // namespace mk
