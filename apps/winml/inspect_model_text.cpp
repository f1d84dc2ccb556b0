#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "build/generate.h"
#include "winml/inspect_model.h"

namespace mk::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string range_text(const InputSpec& input) {
  if (!input.range) return "";
  return fmt::format("[{}, {})", input.range->low, input.range->high);
}

std::string export_text(const ModelFacts& facts, const Style& style) {
  std::string text = fmt::format("\n{}\n", style.bold("Export"));
  if (!facts.plan) return text + fmt::format("  {}\n", style.yellow(facts.problem));
  const ExportPlan& plan = *facts.plan;
  text += columns({{"Class", plan.head.class_name},
                   {"Loads as", std::string(auto_class_of(plan.head.task))},
                   {"Opset", std::to_string(facts.opset)}});
  text += "  Inputs\n";
  Rows rows;
  for (const InputSpec& input : plan.inputs)
    rows.push_back({input.name, std::string(name_of(input.type)), to_string(input.shape), range_text(input)});
  text += columns(rows, "    ");
  text += "  Outputs\n";
  rows.clear();
  for (const std::string& name : plan.outputs)
    rows.push_back({name, fmt::format("[{}, ...]", fmt::join(output_axis_names(plan), ", "))});
  text += columns(rows, "    ");
  for (const std::string& remark : plan.remarks) text += fmt::format("  {}\n", style.yellow(remark));
  return text;
}

std::string processing_text(const ModelFacts& facts, const Style& style) {
  Rows rows;
  const auto add = [&](std::string_view label, const Processor& processor) {
    if (!processor.name.empty())
      rows.push_back(
          {std::string(label), processor.name, processor.source == "hub_config" ? "from the model" : "by its type"});
  };
  add("Tokenizer", facts.tokenizer);
  add("Images", facts.image_processor);
  add("Features", facts.feature_extractor);
  return rows.empty() ? "" : fmt::format("\n{}\n{}", style.bold("Data processing"), columns(rows));
}

std::string io_text(const ModelFacts& facts, const Style& style) {
  Rows rows;
  for (const auto& item : facts.io_config->items())
    if (!item.value().is_null() && !item.value().is_object()) rows.push_back({item.key(), dump_json(item.value(), -1)});
  if (const Json& extra = (*facts.io_config)["extra"]; extra.is_object())
    for (const auto& item : extra.items()) rows.push_back({item.key(), dump_json(item.value(), -1)});
  return rows.empty() ? "" : fmt::format("\n{}\n{}", style.bold("Configuration"), columns(rows));
}

std::string weight_facts_text(const WeightFacts& weights, const Style& style) {
  std::string types, files;
  for (const auto& [type, count] : weights.types)
    types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, name_of(type));
  for (const Path& file : weights.files) files += (files.empty() ? "" : ", ") + to_utf8(file.filename());
  std::string text = fmt::format("\n{}\n", style.bold("Weights"));
  text += columns({{"Files", files}, {"Tensors", types}, {"Size", bytes_text(weights.bytes)}});
  if (!weights.tensors.empty()) text += weights_text(weights.tensors);
  return text;
}

std::string cache_text(const ModelFacts& facts, const Style& style) {
  const auto cached = std::ranges::count_if(facts.cache, [](const CachedStage& s) { return s.path.has_value(); });
  std::string text = fmt::format("\n{}\n", style.bold(fmt::format("Cache: {}/{} stages", cached, facts.cache.size())));
  if (cached == 0) return text;
  Rows rows;
  for (const CachedStage& stage : facts.cache)
    rows.push_back({stage.path ? "+" : "-", stage.stage, stage.path ? bytes_text(stage.bytes) : ""});
  return text + columns(rows) + fmt::format("  in {}\n", to_utf8(*facts.cache_folder));
}

}  // namespace

std::string to_text(const ModelFacts& facts, const Context& context) {
  const Style& style = context.style;
  std::string text = fmt::format("{}\n", style.bold(facts.model_id));
  Rows rows{{"Type", facts.model_type.empty() ? "unknown" : facts.model_type}};
  rows.push_back({"Task", facts.task.empty() ? "unknown" : fmt::format("{} (via {})", facts.task, facts.task_source)});
  if (!facts.architectures.empty())
    rows.push_back({"Architectures", fmt::format("{}", fmt::join(facts.architectures, ", "))});
  if (facts.composite) {
    std::vector<std::string> parts;
    for (const ComponentChoice& part : facts.composite->graphs)
      parts.push_back(fmt::format("{} ({})", part.name, part.head.task));
    rows.push_back({"Graphs", fmt::format("{}, together for {}", fmt::join(parts, ", "),
                                          fmt::join(facts.composite->pipeline_tasks, ", "))});
  }
  rows.push_back({"Support", facts.plan ? style.green("Default") : style.red("Unsupported")});
  text += columns(rows);
  text += export_text(facts, style);
  text += processing_text(facts, style);
  text += io_text(facts, style);
  if (facts.weights) text += weight_facts_text(*facts.weights, style);
  if (facts.graph) {
    Rows costs{{"Parameters", short_count(static_cast<double>(facts.graph->parameters))}};
    for (auto& row : cost_rows(facts.graph->cost)) costs.push_back(std::move(row));
    text += fmt::format("\n{}\n{}", style.bold("Cost of a run"), columns(costs));
  }
  if (!facts.targets.empty())
    text += fmt::format("\n{}\n{}", style.bold("What build would do"), to_text(facts.targets));
  if (facts.cache_folder) text += cache_text(facts, style);
  if (facts.graph && facts.graph->hierarchy) {
    const Hierarchy& tree = *facts.graph->hierarchy;
    text += fmt::format(
        "\n{}\n{}",
        style.bold(fmt::format("Modules: {} of transformers, {} plain layers", tree.modules, tree.plain_modules)),
        to_text(tree));
  }
  if (facts.build_config) text += fmt::format("\n{}\n{}\n", style.bold("Build config"), dump_json(*facts.build_config));
  return text;
}

}  // namespace mk::cli
