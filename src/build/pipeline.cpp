#include "build/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/json.h"
#include "base/system.h"
#include "build/check_run.h"
#include "build/optimize_stage.h"
#include "build/quantize_stage.h"
#include "export/model_metadata.h"
#include "export/side_files.h"
#include "graph/model_acceptance.h"
#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "graph/summary.h"

namespace mk {
namespace {

using Skip = std::optional<std::string>;

Skip unless_checkpoint(const BuildState& state) {
  return state.request.model.is_onnx() ? Skip("the source is an ONNX file") : Skip();
}

Skip unless_onnx(const BuildState& state) {
  return state.request.model.is_onnx() ? Skip() : Skip("the source is a checkpoint");
}

bool is_quantized(const Model& model) {
  bool found = false;
  for_each_node(*model.graph, [&](const Node& node) { found |= is_quantized_operator(node.op_type); });
  return found;
}

Skip unless_optimized(const BuildState& state) {
  if (state.config.skip_optimize) return "skip_optimize is set in the config";
  return is_compiled(*state.graph) ? Skip("the model is compiled") : Skip();
}

Skip unless_quantized(const BuildState& state) {
  if (!state.config.quant) return "no quant section";
  if (is_compiled(*state.graph)) return "the model is compiled";
  const bool keeps_integers = state.config.quant->mode == "fp16";  // what is still float becomes float16
  return !keeps_integers && is_quantized(*state.graph) ? Skip("the model is quantized already") : Skip();
}

Skip unless_asked(const BuildState& state) {
  if (!state.request.verify) return "--no-verify";
  if (!state.changed) return "nothing in the graph has changed";
  return std::nullopt;
}

Skip never(const BuildState&) { return std::nullopt; }

std::string megabytes(std::uint64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

Status keep_intermediate(BuildState& state, std::string_view name) {
  if (!state.request.keep_intermediates) return {};
  const std::string file = state.request.prefix + std::string(name);
  const Path path = state.request.folder / path_from_utf8(file);
  const auto& ours = state.old_intermediates;
  const bool replace = state.request.rebuild || std::find(ours.begin(), ours.end(), file) != ours.end();
  auto kept = write_onnx(*state.graph, path, state.publication, replace);
  if (!kept && kept.error().code == ErrorCode::exists) {
    kept.error().hint = "No build of this folder made it. Move it away, or pass --rebuild to replace it";
  }
  MK_TRY(const WrittenModel written, std::move(kept));
  state.intermediates.insert(state.intermediates.end(), written.files.begin(), written.files.end());
  return {};
}

Result<StageOutcome> export_stage(BuildState& state) {
  const BuildRequest& request = state.request;
  ExportRequest exporting{.folder = request.model.folder,
                          .model_id = request.model.name(),
                          .task = request.config.loader.task,
                          .model_class = request.config.loader.model_class.value_or(""),
                          .submodel = request.submodel,
                          .config = *request.config.exporting,
                          .shapes = request.shapes,
                          .float_type = request.float_type};
  // A component's own task may be that of another graph, too.
  if (!request.submodel.empty()) exporting.task = request.pipeline, exporting.model_class.clear();
  MK_TRY(ExportedGraph exported, export_graph(exporting, state.progress));
  state.graph = std::move(exported.built.model);
  state.plan = std::move(exported.plan);
  finish_tags(*state.graph, exporting.config);
  state.changed = true;
  MK_CHECK(keep_intermediate(state, "export.onnx"));
  return StageOutcome{fmt::format("{}, opset {}, {} nodes", state.plan->head.class_name, state.graph->opset(),
                                  state.graph->graph->node_count())};
}

Result<StageOutcome> read_stage(BuildState& state) {
  MK_TRY(state.graph, read_onnx(state.request.model.onnx, {.progress = &state.progress}));
  MK_TRY(const bool mended, accept_model(*state.graph, state.progress));
  // Data moves to one file beside the model, under our name.
  state.changed = mended || !state.graph->external_locations.empty();
  return StageOutcome{fmt::format("opset {}, {} nodes", state.graph->opset(), state.graph->graph->node_count())};
}

Result<StageOutcome> optimize_stage(BuildState& state) {
  MK_TRY(OptimizeStage done, run_optimize(state));
  if (done.fired) {
    state.changed = true;
    MK_CHECK(keep_intermediate(state, "optimized.onnx"));
  }
  return std::move(done.outcome);
}

Result<StageOutcome> quantize_stage(BuildState& state) {
  MK_TRY(StageOutcome outcome, run_quantize(state));
  state.changed = true;
  MK_CHECK(keep_intermediate(state, "quantized.onnx"));
  return outcome;
}

Result<std::uint64_t> write_model(BuildState& state) {
  if (state.changed) {
    MK_TRY(const WrittenModel written, write_onnx(*state.graph, state.final_path, state.publication, true));
    state.files = written.files;
    return written.bytes;
  }
  MK_TRY(const auto source, File::open(state.request.model.onnx));
  MK_TRY(FileWriter writer, state.publication.add(state.final_path, true));
  MK_CHECK(writer.copy_from(*source, 0, source->size()));
  MK_CHECK(writer.close());
  state.files = {state.final_path};
  return source->size();
}

Result<StageOutcome> write_stage(BuildState& state) {
  state.graph_is_good();
  MK_TRY(const std::uint64_t bytes, write_model(state));
  return StageOutcome{fmt::format("{}, {}", to_utf8(state.final_path.filename()), megabytes(bytes))};
}

Result<StageOutcome> check_stage(BuildState& state) {
  const auto sizes = state.plan ? state.plan->symbol_sizes : std::map<std::string, std::int64_t>();
  MK_TRY(std::string seen,
         check_run(state.publication.staged(state.final_path), state.request.ort, sizes, state.progress));
  return StageOutcome{std::move(seen)};
}

// clang-format off
constexpr std::array stages{
    BuildStage{"export", unless_checkpoint, export_stage},
    BuildStage{"read", unless_onnx, read_stage},
    BuildStage{"optimize", unless_optimized, optimize_stage},
    BuildStage{"quantize", unless_quantized, quantize_stage},
    BuildStage{"finish", never, write_stage},
    BuildStage{"verify", unless_asked, check_stage},
};
// clang-format on

}  // namespace

std::span<const BuildStage> build_stages() { return stages; }

Result<std::vector<StageRecord>> run_stages(BuildState& state, std::span<const BuildStage> list) {
  std::vector<StageRecord> records;
  std::vector<std::pair<std::size_t, std::function<Json()>>> details;
  for (const BuildStage& stage : list) {
    if (interrupted()) return fail(ErrorCode::interrupted, "interrupted");
    const Skip reason = stage.skip(state);
    // What the kind of source rules out is no stage of this build.
    if (reason && (stage.run == export_stage || stage.run == read_stage)) continue;
    StageRecord& record = records.emplace_back(StageRecord{.name = std::string(stage.name)});
    auto line = state.progress.stage(stage.name);
    if (reason) {
      record.completed = false;
      record.reason = reason;
      line->skipped(*reason);
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    MK_TRY(const StageOutcome outcome, stage.run(state));
    record.elapsed_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (outcome.details) details.emplace_back(records.size() - 1, outcome.details);
    line->done(outcome.summary);
  }
  for (const auto& [index, of_stage] : details) records[index].details = std::make_shared<Json>(of_stage());
  return records;
}

}  // namespace mk
