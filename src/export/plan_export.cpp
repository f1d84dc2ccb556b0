#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/spelling.h"
#include "export/export.h"
#include "export/model_config.h"
#include "images/processor.h"

namespace mk {
namespace {

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
      if (!shape[axis].is_symbolic()) continue;
      if (before[axis].is_known())
        sizes.try_emplace(shape[axis].symbol, before[axis].value);
      else if (axis < own[i].typical.size())
        sizes.try_emplace(shape[axis].symbol, own[i].typical[axis]);
    }
  }
  return sizes;
}

// What the caches and the states of a decoder have is theirs: only inputs of two axes or more have rows of a batch.
void note_other_batches(const ExportPlan& plan, std::int64_t batch_size, Progress& progress) {
  for (const InputSpec& input : plan.inputs) {
    if (input.shape.size() < 2 || !input.shape[0].is_known() || input.shape[0].value == batch_size) continue;
    progress.info(fmt::format("'{}' has {} rows, batch_size is {}", input.name, input.shape[0].value, batch_size));
  }
}

// An architecture's own graph, before anything that the request says of its tensors.
Result<ExportPlan> own_plan(const ModelConfig& config, const ExportRequest& request, const ComponentChoice& graph,
                            const std::string& task_source, const PreprocessorFacts& preprocessor) {
  ExportPlan plan{.component = graph.name, .head = graph.head, .task_source = task_source};
  const ShapeRequest shapes{request.config.batch_size, request.shapes};
  MK_TRY(plan.inputs, default_inputs(config, plan.head, shapes, preprocessor));
  MK_TRY(plan.outputs, output_names(config, plan.head));
  return plan;
}

// `asked` is what the request says of this graph's tensors.
Status finish_plan(ExportPlan& plan, const ModelConfig& config, const ExportRequest& request, const ExportConfig& asked,
                   Progress& progress) {
  MK_CHECK(rename_outputs(plan.outputs, asked.output_tensors, progress));
  const std::vector<InputSpec> own = plan.inputs;
  const auto ids = std::ranges::find(own, "input_ids", &InputSpec::name);
  const Shape shape_before = ids == own.end() ? Shape() : ids->shape;
  MK_TRY(const auto optional, optional_inputs(config, plan.head));
  for (const TensorPatch& patch : asked.input_tensors) {
    const bool there = std::ranges::find(plan.inputs, patch.name, &InputSpec::name) != plan.inputs.end();
    if (there || std::ranges::find(optional, patch.name) == optional.end()) continue;
    plan.inputs.push_back({patch.name, DataType::int32, shape_before, std::nullopt});
  }
  MK_CHECK(apply_patches(plan.inputs, asked.input_tensors, progress));
  for (const InputSpec& input : plan.inputs) {
    if (std::ranges::find(plan.outputs, input.name) == plan.outputs.end()) continue;
    return fail(ErrorCode::usage, fmt::format("'{}' is the name of an input and of an output", input.name),
                "output_tensors", "Name the output differently");
  }
  MK_CHECK(apply_dynamic_axes(plan.inputs, asked.dynamic_axes, plan.outputs));
  let_text_inputs_follow(plan.inputs, asked, shape_before);
  plan.symbol_sizes = sizes_of_symbols(plan.inputs, own);
  note_other_batches(plan, request.config.batch_size, progress);
  remark_on_shapes(config, plan, request);
  return {};
}

bool has_tensor(const ExportPlan& plan, const std::string& name) {
  return std::ranges::find(plan.inputs, name, &InputSpec::name) != plan.inputs.end() ||
         std::ranges::find(plan.outputs, name) != plan.outputs.end();
}

// What a request says of the tensors of one graph of several: what speaks of another graph's is left out. What no graph
// has stays, for the first one to refuse.
ExportConfig share_of(const ExportConfig& config, const std::vector<ExportPlan>& plans, const ExportPlan& plan) {
  if (plans.size() == 1) return config;
  const auto is_others = [&](const std::string& name) {
    if (has_tensor(plan, name)) return false;
    return &plan != &plans.front() ||
           std::ranges::any_of(plans, [&](const ExportPlan& other) { return has_tensor(other, name); });
  };
  ExportConfig share = config;
  std::erase_if(share.input_tensors, [&](const TensorPatch& patch) { return is_others(patch.name); });
  std::erase_if(share.dynamic_axes, [&](const auto& axes) { return is_others(axes.first); });
  return share;
}

Result<ExportPlans> plan_with(const ModelConfig& config, GraphChoices choices, const ExportRequest& request,
                              Progress& progress) {
  ExportPlans plans{.choices = std::move(choices), .graphs = {}};
  const std::vector<ComponentChoice>& graphs = plans.choices.graphs;
  if (graphs.size() > 1 && !request.config.output_tensors.empty())
    return fail(ErrorCode::usage, "output_tensors is for one graph, and the model is exported as several",
                "output_tensors", "Choose one with --submodel, or leave output_tensors out");
  warn_of_unknown_shapes(request, progress);
  const PreprocessorFacts preprocessor = preprocessor_facts(request.folder, progress);
  for (const ComponentChoice& graph : graphs) {
    MK_TRY(plans.graphs.emplace_back(), own_plan(config, request, graph, plans.choices.task_source, preprocessor));
  }
  std::vector<ExportConfig> shares;
  for (const ExportPlan& plan : plans.graphs) shares.push_back(share_of(request.config, plans.graphs, plan));
  for (std::size_t i = 0; i < shares.size(); ++i)
    MK_CHECK(finish_plan(plans.graphs[i], config, request, shares[i], progress));
  return plans;
}

GraphsRequest graphs_request(const ExportRequest& request) {
  return {request.task.value_or(""), request.model_class, request.model_id, request.submodel};
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

ExportConfig share_of(const ExportConfig& config, const ExportPlan& plan) {
  ExportConfig share = config;
  std::erase_if(share.input_tensors, [&](const TensorPatch& patch) { return !has_tensor(plan, patch.name); });
  std::erase_if(share.dynamic_axes, [&](const auto& axes) { return !has_tensor(plan, axes.first); });
  return share;
}

Result<ExportPlans> plan_exports(const ModelConfig& config, const ExportRequest& request, Progress& progress) {
  MK_TRY(GraphChoices choices, choose_graphs(config, graphs_request(request)));
  return plan_with(config, std::move(choices), request, progress);
}

Result<ExportPlan> plan_export(const ModelConfig& config, const ExportRequest& request, Progress& progress) {
  MK_TRY(GraphChoices choice, choose_graph(config, graphs_request(request)));
  MK_TRY(ExportPlans plans, plan_with(config, std::move(choice), request, progress));
  return std::move(plans.graphs.front());
}

Result<ExportPlan> plan_export(const ExportRequest& request, Progress& progress) {
  MK_TRY(const ModelConfig config, read_model_config(request.folder, request.model_id));
  return plan_export(config, request, progress);
}

}  // namespace mk
