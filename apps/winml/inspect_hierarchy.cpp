// The module tree of a model, from the walk that builds its graph. Weights are not read.

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "winml/inspect_model.h"

namespace mk::cli {
namespace {

std::string parent_of(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? std::string() : path.substr(0, dot);
}

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// Elements of the parameters at or below every module path.
std::map<std::string, std::int64_t> parameters_by_path(const BuiltGraph& built) {
  std::map<std::string, std::int64_t> counts;
  for (const Value* value : built.model->graph->initializers()) {
    const auto elements = static_cast<std::int64_t>(value->initializer()->element_count());
    for (std::string path = parent_of(value->name()); !path.empty(); path = parent_of(path)) counts[path] += elements;
  }
  return counts;
}

Json node_json(const ModuleNode& node) {
  Json children = Json::array();
  for (const ModuleNode& child : node.children) children.push_back(node_json(child));
  return {{"name", node.name},   {"class_name", node.class_name},     {"module_path", node.path},
          {"depth", node.depth}, {"num_parameters", node.parameters}, {"children", std::move(children)}};
}

std::string node_text(const ModuleNode& node, std::size_t indent) {
  std::string text =
      fmt::format("{}{}{} ({})\n", std::string(2 * indent, ' '), node.name.empty() ? "" : node.name + ": ",
                  node.class_name, short_count(static_cast<double>(node.parameters)));
  for (const ModuleNode& child : node.children) text += node_text(child, indent + 1);
  return text;
}

}  // namespace

namespace {

Hierarchy tree_of(const BuiltGraph& built, const ExportPlan& plan) {
  const auto counts = parameters_by_path(built);
  Hierarchy hierarchy;
  hierarchy.root.class_name = plan.head.class_name;
  hierarchy.root.parameters = built.parameter_count;
  hierarchy.modules = 1;
  for (const ModuleRecord& record : built.modules) {
    if (record.path.empty()) continue;
    if (record.plain) {
      ++hierarchy.plain_modules;
      continue;
    }
    ++hierarchy.modules;
    // The nearest module on the way to the root: lists of modules have no record of their own.
    ModuleNode* place = &hierarchy.root;
    for (bool deeper = true; deeper;) {
      deeper = false;
      for (ModuleNode& child : place->children) {
        if (record.path.size() > child.path.size() && record.path.starts_with(child.path) &&
            record.path[child.path.size()] == '.') {
          place = &child;
          deeper = true;
          break;
        }
      }
    }
    const auto count = counts.find(record.path);
    place->children.push_back({.name = last_part(record.path),
                               .class_name = record.class_name,
                               .path = record.path,
                               .depth = place->depth + 1,
                               .parameters = count == counts.end() ? 0 : count->second});
  }
  return hierarchy;
}

}  // namespace

Result<GraphLook> look_at_graph(const ModelConfig& config, const ExportPlan& plan, const Path& folder, bool hierarchy) {
  Checkpoint checkpoint;
  bool has_weights = false;
  if (!folder.empty()) {
    auto opened = Checkpoint::open(folder);
    has_weights = opened.has_value();
    if (has_weights)
      checkpoint = std::move(*opened);
    else if (opened.error().code != ErrorCode::not_found)
      return tl::make_unexpected(std::move(opened).error());
  }
  BuildOptions options;
  options.assume_weights = !has_weights;
  MK_TRY(const BuiltGraph built, build_graph(config, plan.head, checkpoint, plan.inputs, options));
  const std::map<std::string, std::int64_t, std::less<>> sizes(plan.symbol_sizes.begin(), plan.symbol_sizes.end());
  GraphLook look{built.parameter_count, cost_of(*built.model->graph, sizes), {}};
  if (hierarchy) look.hierarchy = tree_of(built, plan);
  return look;
}

Json to_json(const Hierarchy& hierarchy) {
  return {{"root_class", hierarchy.root.class_name},
          {"total_parameters", hierarchy.root.parameters},
          {"hf_module_count", hierarchy.modules},
          {"nn_module_count", hierarchy.plain_modules},
          {"hf_modules", Json::array({node_json(hierarchy.root)})}};
}

std::string to_text(const Hierarchy& hierarchy) { return node_text(hierarchy.root, 1); }

}  // namespace mk::cli
