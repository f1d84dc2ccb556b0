#include "export/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/json.h"
#include "base/spelling.h"
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
#include "hub/tasks.h"
#include "images/processor.h"

namespace mk {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

PreprocessorFacts preprocessor_facts(const Path& folder, Progress& progress) {
  const auto size = preprocessed_size(folder);
  if (!size) progress.warn(size.error().to_string());
  if (!size || !*size) return {};
  return {(*size)->height, (*size)->width};
}

// The default length of a text input says when it cuts what the model could take.
void remark_on_shapes(const ModelConfig& config, ExportPlan& plan, const ExportRequest& request) {
  if (request.shapes.contains("sequence_length")) return;
  const auto longest = config.integer("max_position_embeddings", 0);
  if (!longest || *longest <= 0) return;
  for (const InputSpec& input : plan.inputs) {
    if (input.name != "input_ids" || input.shape.size() != 2 || !input.shape[1].is_known()) continue;
    if (input.shape[1].value == 1024 && *longest > 1024) {
      plan.remarks.push_back(fmt::format(
          "sequence_length is 1024, the model's limit is {}; --shape-config {{\"sequence_length\": N}} chooses another",
          *longest));
    }
  }
}

// Names that --shape-config may have for some architecture (spec: export, shapes).
constexpr std::array<std::string_view, 12> shape_names{"sequence_length",
                                                       "height",
                                                       "width",
                                                       "num_channels",
                                                       "num_choices",
                                                       "feature_size",
                                                       "nb_max_frames",
                                                       "audio_sequence_length",
                                                       "max_cache_len",
                                                       "seq_len",
                                                       "point_batch_size",
                                                       "nb_points_per_image"};

void warn_of_unknown_shapes(const ExportRequest& request, Progress& progress) {
  for (const auto& [name, value] : request.shapes) {
    if (std::ranges::find(shape_names, name) != shape_names.end()) continue;
    const auto near = nearest(name, shape_names);
    progress.warn(fmt::format("the shape '{}' is no dimension of any model and is ignored{}", name,
                              near ? fmt::format("; did you mean '{}'?", *near) : ""));
  }
}

// Text inputs have one shape: those that nobody speaks of follow input_ids.
void let_text_inputs_follow(std::vector<InputSpec>& inputs, const ExportConfig& config, const Shape& shape_before) {
  const auto spoken_of = [&](const std::string& name) {
    const auto patch = std::ranges::find(config.input_tensors, name, &TensorPatch::name);
    return config.dynamic_axes.contains(name) || (patch != config.input_tensors.end() && patch->shape);
  };
  const auto ids = std::ranges::find(inputs, "input_ids", &InputSpec::name);
  if (ids == inputs.end() || !spoken_of("input_ids")) return;
  for (InputSpec& input : inputs) {
    if (!spoken_of(input.name) && input.shape == shape_before) input.shape = ids->shape;
  }
}

// `own` has the inputs' shapes before patches and dynamic axes.
std::map<std::string, std::int64_t> sizes_of_symbols(const std::vector<InputSpec>& inputs,
                                                     const std::vector<InputSpec>& own) {
  std::map<std::string, std::int64_t> sizes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape &shape = inputs[i].shape, &before = own[i].shape;
    for (std::size_t axis = 0; axis < shape.size() && shape.size() == before.size(); ++axis) {
      if (shape[axis].is_symbolic() && before[axis].is_known())
        sizes.try_emplace(shape[axis].symbol, before[axis].value);
    }
  }
  return sizes;
}

Result<ExportPlan> plan_with(const ModelConfig& config, const ExportRequest& request, Progress& progress) {
  ExportPlan plan;
  TaskRequest asked{.task = request.task.value_or(""),
                    .model_class = request.model_class,
                    .model_id = request.model_id,
                    .first_task = {}};
  if (const auto type = find_model_type(config.model_type()); type && !type->heads.empty()) {
    asked.first_task = type->heads.front().task;
  }
  MK_TRY(const TaskChoice task, choose_task(config, asked));
  plan.task_source = name_of(task.source);
  MK_TRY(plan.head, choose_head(config, task.task));
  ShapeRequest shapes{request.config.batch_size, request.shapes};
  MK_TRY(plan.inputs, default_inputs(config, plan.head, shapes, preprocessor_facts(request.folder, progress)));
  MK_TRY(plan.outputs, output_names(config, plan.head));
  MK_CHECK(rename_outputs(plan.outputs, request.config.output_tensors, progress));
  warn_of_unknown_shapes(request, progress);
  const std::vector<InputSpec> own = plan.inputs;
  const auto ids = std::ranges::find(own, "input_ids", &InputSpec::name);
  const Shape shape_before = ids == own.end() ? Shape() : ids->shape;
  MK_CHECK(apply_patches(plan.inputs, request.config.input_tensors, progress));
  for (const InputSpec& input : plan.inputs) {
    if (std::ranges::find(plan.outputs, input.name) == plan.outputs.end()) continue;
    return fail(ErrorCode::usage, fmt::format("'{}' is the name of an input and of an output", input.name),
                "output_tensors", "Name the output differently");
  }
  MK_CHECK(apply_dynamic_axes(plan.inputs, request.config.dynamic_axes, plan.outputs));
  let_text_inputs_follow(plan.inputs, request.config, shape_before);
  plan.symbol_sizes = sizes_of_symbols(plan.inputs, own);
  for (const InputSpec& input : plan.inputs) {
    if (!input.shape.empty() && input.shape[0].is_known() && input.shape[0].value != request.config.batch_size) {
      progress.info(fmt::format("'{}' has {} rows, batch_size is {}", input.name, input.shape[0].value,
                                request.config.batch_size));
    }
  }
  remark_on_shapes(config, plan, request);
  return plan;
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

}  // namespace

Status check_export_shapes(const std::map<std::string, std::int64_t>& shapes, std::string_view where) {
  for (const auto& [name, value] : shapes) {
    const std::string place = fmt::format("{}#/{}", where, name);
    if (value <= 0) return fail(ErrorCode::usage, fmt::format("expected a positive integer, got {}", value), place);
    if (std::ranges::find(shape_names, name) != shape_names.end()) continue;
    const auto near = nearest(name, shape_names);
    return fail(
        ErrorCode::usage, fmt::format("the shape '{}' is no dimension of any model", name), place,
        near ? fmt::format("Did you mean '{}'?", *near) : fmt::format("Known are {}", fmt::join(shape_names, ", ")));
  }
  return {};
}

Result<ExportPlan> plan_export(const ModelConfig& config, const ExportRequest& request, Progress& progress) {
  return plan_with(config, request, progress);
}

Result<ExportPlan> plan_export(const ExportRequest& request, Progress& progress) {
  MK_TRY(const ModelConfig config, read_model_config(request.folder, request.model_id));
  return plan_with(config, request, progress);
}

Result<ExportedGraph> export_graph(const ExportRequest& request, Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  ExportedGraph result;
  MK_TRY(const ModelConfig config, read_model_config(request.folder, request.model_id));
  MK_TRY(result.plan, plan_with(config, request, progress));
  for (const std::string& remark : result.plan.remarks) progress.note(remark);
  warn_of_idle_flags(request.config, progress);

  MK_TRY(const Checkpoint checkpoint, Checkpoint::open(request.folder));
  BuildOptions options{.opset = request.config.opset_version,
                       .hierarchy_tags = request.config.enable_hierarchy_tags && !request.config.clean_onnx,
                       .float_type = request.float_type,
                       .progress = &progress};
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

Result<ExportReport> export_model(const ExportRequest& request, const ExportDestination& destination,
                                  Progress& progress) {
  const auto start = std::chrono::steady_clock::now();
  const auto& [output, overwrite, with_report, ours, check] = destination;
  const Path folder = output.has_parent_path() ? output.parent_path() : Path(".");
  sweep_leftovers(folder);
  std::error_code ignored;
  if (std::filesystem::exists(output, ignored) && !overwrite) {
    return fail(ErrorCode::exists, "Output already exists", to_utf8(output), "Re-run with --overwrite to replace it");
  }
  MK_TRY(const std::vector<Path> sources, checkpoint_files(request.folder));
  const Path data = with_suffix(output, ".data");
  MK_CHECK(keep_sources(sources, std::vector<Path>{output, data}));
  auto stage = progress.stage("export");
  MK_TRY(const ExportedGraph exported, export_graph(request, progress));
  Publication publication;
  MK_TRY(const std::vector<std::string> sides,
         add_side_files(request.folder, folder, ours, overwrite, publication, progress));

  const Model& model = *exported.built.model;
  const Path stem = folder / output.stem();
  const Path metadata_path = with_suffix(stem, "_htp_metadata.json");
  const Path markdown_path = with_suffix(stem, "_htp_export_report.md");
  ReportFacts facts{request.model_id,   output,
                    model_bytes(model), seconds_since(start),
                    utc_timestamp(),    request.config.enable_hierarchy_tags && !request.config.clean_onnx};
  if (with_report) {
    MK_CHECK(publication.add_text(metadata_path, dump_json(metadata_report(exported, facts)) + "\n", overwrite));
    MK_CHECK(publication.add_text(markdown_path, markdown_report(exported, facts), overwrite));
  }
  finish_tags(*exported.built.model, request.config);
  MK_TRY(const WrittenModel written, write_onnx(model, output, publication, overwrite));
  if (written.files.size() == 1 && names_data(output, data)) publication.remove_on_commit(data);
  stage->done(fmt::format("{} nodes, {:.1f} MB", model.graph->node_count(), static_cast<double>(written.bytes) / 1e6));
  std::optional<std::string> seen;
  if (check) {
    auto line = progress.stage("verify");
    MK_TRY(seen, check(publication.staged(output), exported.plan));
    line->done(*seen);
  }
  MK_CHECK(publication.commit());

  ExportReport report{.model_id = request.model_id,
                      .plan = exported.plan,
                      .files = written.files,
                      .bytes = written.bytes,
                      .opset = model.opset(),
                      .nodes = model.graph->node_count(),
                      .tagged_nodes = tagged_node_count(model),
                      .initializers = model.graph->initializers().size(),
                      .parameters = exported.built.parameter_count,
                      .unused = exported.built.unused,
                      .tied = exported.built.tied,
                      .check = seen,
                      .seconds = seconds_since(start)};
  for (const std::string& side : sides) report.files.push_back(folder / side);
  if (with_report) report.files.insert(report.files.end(), {metadata_path, markdown_path});
  return report;
}

Json to_json(const ExportReport& report) {
  Json json{{"model_id", report.model_id},
            {"model_type", report.plan.head.model_type},
            {"task", report.plan.head.task},
            {"task_source", report.plan.task_source},
            {"model_class", report.plan.head.class_name},
            {"inputs", to_json(report.plan.inputs)}};
  Json& outputs = json["outputs"] = Json::array();
  for (const std::string& name : report.plan.outputs) outputs.push_back(Json{{"name", name}});
  json["opset_version"] = report.opset;
  json["onnx_nodes"] = report.nodes;
  json["tagged_nodes"] = report.tagged_nodes;
  json["initializers"] = report.initializers;
  json["parameters"] = report.parameters;
  json["unused_tensors"] = report.unused;
  json["tied_tensors"] = report.tied;
  json["verify"] = report.check ? Json(*report.check) : Json(nullptr);
  json["bytes"] = report.bytes;
  json["export_time"] = report.seconds;
  Json& files = json["files"] = Json::array();
  for (const Path& file : report.files) files.push_back(to_utf8(file));
  return json;
}

}  // namespace mk
