#include "export/report_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/json.h"
#include "export/model_metadata.h"

namespace mk {
namespace {

constexpr double megabyte = 1048576.0;

double rounded(double value, double unit) { return std::round(value / unit) * unit; }

std::string tag_of(const Node& node) {
  const std::string* tag = find(node.metadata, "winml.hierarchy.tag");
  return tag ? *tag : std::string();
}

// How the nodes' tags relate to the modules: on the root, or below it; on their own module, or (nodes of a torch.nn
// layer, which has no tag) on the nearest one above.
struct TagCounts {
  std::map<std::string, std::size_t> per_tag;
  std::size_t total = 0;
  std::size_t tagged = 0;
  std::size_t root = 0;
  std::size_t direct = 0;
};

// "/vit/encoder/layer.0/output/dense/MatMul" is of the module "vit.encoder.layer.0.output.dense".
std::string module_path(const Node& node) {
  std::string path = node.name.substr(0, node.name.rfind('/'));
  if (path.starts_with('/')) path.erase(0, 1);
  std::ranges::replace(path, '/', '.');
  return path;
}

TagCounts count_tags(const ExportedGraph& exported) {
  TagCounts counts;
  std::set<std::string_view> tagged_paths;
  for (const ModuleRecord& module : exported.built.modules)
    if (!module.plain || module.path.empty()) tagged_paths.insert(module.path);
  const std::string root = exported.built.modules.empty() ? "" : exported.built.modules.front().tag;
  for_each_node(*exported.built.model->graph, [&](const Node& node) {
    ++counts.total;
    const std::string tag = tag_of(node);
    if (tag.empty()) return;
    ++counts.tagged;
    ++counts.per_tag[tag];
    if (tag == root) ++counts.root;
    if (tagged_paths.contains(module_path(node))) ++counts.direct;
  });
  return counts;
}

double coverage(const TagCounts& counts) {
  return counts.total == 0
             ? 0.0
             : rounded(100.0 * static_cast<double>(counts.tagged) / static_cast<double>(counts.total), 0.01);
}

std::string local_name(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? path : path.substr(dot + 1);
}

bool is_number(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// The tagged modules as a tree, and in the order in which they run: a module, then what is in it.
struct ModuleTree {
  std::vector<const ModuleRecord*> order;
  std::map<const ModuleRecord*, std::vector<const ModuleRecord*>> children;
};

using ModulesByPath = std::map<std::string_view, const ModuleRecord*>;

// The tagged module that holds a module: the nearest path above its own that has one.
const ModuleRecord* parent_of(const ModulesByPath& by_path, const ModuleRecord& module) {
  std::string_view path = module.path;
  while (!path.empty()) {
    const std::size_t dot = path.rfind('.');
    path = dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
    if (const auto found = by_path.find(path); found != by_path.end()) return found->second;
  }
  return nullptr;
}

ModuleTree module_tree(const ExportedGraph& exported) {
  ModuleTree tree;
  ModulesByPath by_path;
  std::vector<const ModuleRecord*> tagged;
  for (const ModuleRecord& module : exported.built.modules) {
    if (module.plain && !module.path.empty()) continue;
    by_path.emplace(module.path, &module);
    tagged.push_back(&module);
  }
  std::vector<const ModuleRecord*> pending;
  for (const ModuleRecord* module : tagged) {
    const ModuleRecord* parent = parent_of(by_path, *module);
    (parent ? tree.children[parent] : pending).push_back(module);
  }
  std::ranges::reverse(pending);
  while (!pending.empty()) {
    const ModuleRecord* module = pending.back();
    pending.pop_back();
    tree.order.push_back(module);
    const auto& inner = tree.children[module];
    pending.insert(pending.end(), inner.rbegin(), inner.rend());
  }
  return tree;
}

Json modules_json(const ModuleTree& tree) {
  std::map<const ModuleRecord*, std::size_t> order;
  for (const ModuleRecord* module : tree.order) order.emplace(module, order.size());
  const auto describe = [&](const auto& self, const ModuleRecord& module) -> Json {
    Json json{{"class_name", module.class_name},
              {"traced_tag", module.tag},
              {"scope", module.path},
              {"execution_order", order.at(&module)}};
    const auto& inner = tree.children.at(&module);
    for (const ModuleRecord* child : inner) {
      const std::string local = local_name(child->path);
      std::string key = child->class_name;
      const bool shared = std::ranges::count(inner, child->class_name, &ModuleRecord::class_name) > 1;
      if (is_number(local) || shared) key += "." + local;
      if (json.contains("children") && json["children"].contains(key)) key = child->class_name + "." + child->path;
      json["children"][key] = self(self, *child);
    }
    return json;
  };
  return tree.order.empty() ? Json::object() : describe(describe, *tree.order.front());
}

Json described_inputs(const ExportPlan& plan) {
  Json json = Json::object();
  for (const InputSpec& input : plan.inputs) {
    Json shape = Json::array();
    for (const Dim& dim : input.shape) shape.push_back(dim.is_known() ? Json(dim.value) : Json(dim.symbol));
    json[input.name] = Json{{"shape", shape}, {"dtype", "torch." + std::string(name_of(input.type))}};
  }
  return json;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string human_count(std::int64_t count) {
  if (count >= 1'000'000'000) return fmt::format("{:.1f}B", static_cast<double>(count) / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.1f}M", static_cast<double>(count) / 1e6);
  if (count >= 1'000) return fmt::format("{:.1f}K", static_cast<double>(count) / 1e3);
  return fmt::format("{}", count);
}

// Nodes of a module and of all below it.
std::size_t nodes_below(const TagCounts& counts, const std::string& tag) {
  std::size_t nodes = 0;
  for (auto i = counts.per_tag.lower_bound(tag); i != counts.per_tag.end() && i->first.starts_with(tag); ++i) {
    if (i->first.size() == tag.size() || i->first[tag.size()] == '/') nodes += i->second;
  }
  return nodes;
}

void write_tree(std::string& text, const std::vector<const ModuleRecord*>& tagged, const TagCounts* counts) {
  for (const ModuleRecord* module : tagged) {
    const auto depth = static_cast<std::size_t>(std::ranges::count(module->tag, '/')) - 1;
    text +=
        fmt::format("{:{}}{} ({})", "", depth * 2, module->class_name, module->path.empty() ? "[ROOT]" : module->path);
    text += counts ? fmt::format(": {} nodes\n", nodes_below(*counts, module->tag)) : "\n";
  }
}

}  // namespace

Json metadata_report(const ExportedGraph& exported, const ReportFacts& facts) {
  const TagCounts counts = count_tags(exported);
  const ModuleTree tree = module_tree(exported);
  const std::vector<const ModuleRecord*>& tagged = tree.order;
  const std::size_t modules = exported.built.modules.size();
  const std::string& class_name = exported.plan.head.class_name;
  const Model& model = *exported.built.model;
  const double size_mb = rounded(static_cast<double>(facts.model_bytes) / megabyte, 0.01);

  Json json;
  json["export_context"] = {{"timestamp", facts.timestamp},
                            {"strategy", "htp"},
                            {"version", "1.0"},
                            {"exporter", "ModelKit"},
                            {"embed_hierarchy_attributes", facts.tags_embedded},
                            {"export_time_seconds", facts.seconds}};
  json["model"] = {{"name_or_path", facts.model_id},
                   {"class_name", class_name},
                   {"framework", "transformers"},
                   {"total_modules", modules},
                   {"total_parameters", exported.built.parameter_count}};
  json["tracing"] = {{"builder", "ModuleTreeBuilder"},
                     {"source", "module_tree"},
                     {"modules_traced", tagged.size()},
                     {"execution_steps", modules},
                     {"model_type", exported.plan.head.model_type},
                     {"task", exported.plan.head.task},
                     {"inputs", described_inputs(exported.plan)}};
  json["modules"] = modules_json(tree);
  Json& nodes = json["nodes"] = Json::object();
  for_each_node(*model.graph, [&](const Node& node) { nodes[node.name] = tag_of(node); });

  json["outputs"]["onnx_model"] = {{"path", to_utf8(facts.output.filename())},
                                   {"size_mb", size_mb},
                                   {"opset_version", model.opset()},
                                   {"output_names", exported.plan.outputs}};
  const std::string stem = to_utf8(facts.output.stem());
  json["outputs"]["metadata"] = {{"path", stem + "_htp_metadata.json"}};
  json["outputs"]["report"] = {{"path", stem + "_htp_export_report.md"}};

  Json& steps = json["report"]["steps"];
  steps["model_preparation"] = {{"completed", true},
                                {"timestamp", facts.timestamp},
                                {"model_class", class_name},
                                {"total_modules", modules},
                                {"total_parameters", exported.built.parameter_count}};
  steps["input_generation"] = {{"timestamp", facts.timestamp},
                               {"method", "from_config"},
                               {"model_type", exported.plan.head.model_type},
                               {"task", exported.plan.head.task},
                               {"inputs", described_inputs(exported.plan)}};
  steps["hierarchy_building"] = {{"completed", true},
                                 {"timestamp", facts.timestamp},
                                 {"source", "module_tree"},
                                 {"modules_traced", tagged.size()},
                                 {"execution_steps", modules}};
  steps["onnx_export"] = {{"timestamp", facts.timestamp},
                          {"opset_version", model.opset()},
                          {"onnx_size_mb", size_mb},
                          {"output_names", exported.plan.outputs}};
  steps["node_tagging"] = {
      {"completed", true},
      {"timestamp", facts.timestamp},
      {"total_nodes", counts.total},
      {"tagged_nodes_count", counts.tagged},
      {"coverage_percentage", coverage(counts)},
      {"statistics",
       {{"root_nodes", counts.root},
        {"scoped_nodes", counts.tagged - counts.root},
        {"unique_scopes", counts.per_tag.size()},
        {"direct_matches", counts.direct},
        {"parent_matches", counts.tagged - counts.direct},
        {"operation_matches", 0},
        {"root_fallbacks", 0}}},
      {"coverage",
       {{"percentage", coverage(counts)}, {"total_onnx_nodes", counts.total}, {"tagged_nodes", counts.tagged}}}};
  steps["tag_injection"] = {
      {"timestamp", facts.timestamp}, {"tags_injected", facts.tags_embedded}, {"tags_stripped", false}};

  std::set<std::string> types;
  for (const ModuleRecord* module : tagged) types.insert(module->class_name);
  json["statistics"] = {{"export_time", facts.seconds},
                        {"hierarchy_modules", modules},
                        {"traced_modules", tagged.size()},
                        {"onnx_nodes", counts.total},
                        {"tagged_nodes", counts.tagged},
                        {"empty_tags", facts.tags_embedded ? counts.total - counts.tagged : 0},
                        {"coverage_percentage", coverage(counts)},
                        {"module_types", types}};
  return json;
}

std::string markdown_report(const ExportedGraph& exported, const ReportFacts& facts) {
  const TagCounts counts = count_tags(exported);
  const ModuleTree tree = module_tree(exported);
  const std::vector<const ModuleRecord*>& tagged = tree.order;
  const Model& model = *exported.built.model;
  std::string text = "# HTP ONNX Export Report\n\n";
  text += fmt::format(
      "**Generated:** {}  \n**Model:** {}  \n**Output:** {}  \n**Strategy:** htp  \n**Export Time:** {:.2f}s\n\n",
      facts.timestamp, escaped(facts.model_id), escaped(to_utf8(facts.output)), facts.seconds);
  text += "## Export Process\n\n### ✅ Step 1/6: Model Preparation\n\n";
  text += fmt::format("- Class: {}\n- Modules: {}\n- Parameters: {}\n\n", exported.plan.head.class_name,
                      exported.built.modules.size(), human_count(exported.built.parameter_count));
  text += "### ✅ Step 2/6: Input Generation\n\n| Input Name | Shape | Data Type |\n|---|---|---|\n";
  for (const InputSpec& input : exported.plan.inputs) {
    text +=
        fmt::format("| {} | {} | {} |\n", escaped(input.name), escaped(to_string(input.shape)), name_of(input.type));
  }
  text += "\n### ✅ Step 3/6: Hierarchy Building\n\n<details><summary>Module tree</summary>\n\n```\n";
  write_tree(text, tagged, nullptr);
  text += fmt::format(
      "```\n</details>\n\n### ✅ Step 4/6: ONNX Export\n\n- Opset: {}\n- Nodes: {}\n- Weights: {:.2f} MB\n\n",
      model.opset(), counts.total, static_cast<double>(facts.model_bytes) / megabyte);
  text += "### ✅ Step 5/6: Node Tagging\n\n| Match Type | Count | Percentage |\n|---|---|---|\n";
  text += fmt::format(
      "| Tagged by their module | {} | {:.1f}% |\n| Root module | {} | {:.1f}% |\n\n", counts.tagged - counts.root,
      counts.total ? 100.0 * static_cast<double>(counts.tagged - counts.root) / static_cast<double>(counts.total) : 0.0,
      counts.root, counts.total ? 100.0 * static_cast<double>(counts.root) / static_cast<double>(counts.total) : 0.0);
  std::vector<std::pair<std::size_t, std::string>> top;
  for (const auto& [tag, count] : counts.per_tag) top.emplace_back(count, tag);
  std::ranges::stable_sort(top, std::greater<>{}, &std::pair<std::size_t, std::string>::first);
  for (std::size_t i = 0; i < std::min<std::size_t>(20, top.size()); ++i) {
    text += fmt::format("{}. `{}`: {} nodes\n", i + 1, top[i].second, top[i].first);
  }
  text += "\n<details><summary>Module tree with node counts</summary>\n\n```\n";
  write_tree(text, tagged, &counts);
  text += fmt::format("```\n</details>\n\n### ✅ Step 6/6: Tag Injection\n\nTags embedded: {}\n\n",
                      facts.tags_embedded ? "yes" : "no");
  text += "## Module Hierarchy\n\n| Execution Order | Class Name | Nodes | Tag | Scope |\n|---|---|---|---|---|\n";
  for (std::size_t i = 0; i < tagged.size(); ++i) {
    const auto direct = counts.per_tag.find(tagged[i]->tag);
    text += fmt::format("| {} | {} | {}/{} | {} | {} |\n", i, tagged[i]->class_name,
                        direct == counts.per_tag.end() ? 0 : direct->second, nodes_below(counts, tagged[i]->tag),
                        tagged[i]->tag, tagged[i]->path.empty() ? "[ROOT]" : tagged[i]->path);
  }
  std::vector<std::string> lines;
  for_each_node(*model.graph,
                [&](const Node& node) { lines.push_back(fmt::format("{} -> {}\n", node.name, tag_of(node))); });
  std::ranges::sort(lines);
  text += "\n## Complete Node Mappings\n\n<details><summary>All nodes</summary>\n\n```\n";
  for (const std::string& line : lines) text += line;
  text += fmt::format(
      "```\n</details>\n\n## Export Summary\n\n- Export time: {:.2f}s\n- Coverage: {:.1f}% ({}/{})\n- Model: {}\n",
      facts.seconds, coverage(counts), counts.tagged, counts.total, escaped(to_utf8(facts.output)));
  return text;
}

}  // namespace mk
