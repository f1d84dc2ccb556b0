#include "export/model_metadata.h"

#include "base/json.h"

namespace mk {

void add_model_metadata(Model& model, const ExportPlan& plan) {
  model.producer_name = "ModelKit";
  model.producer_version = MODELKIT_VERSION;
  set(model.metadata, "winml.io.inputs", dump_json(to_json(plan.inputs), -1));
  Json outputs = Json::array();
  for (const std::string& name : plan.outputs) outputs.push_back(Json{{"name", name}});
  set(model.metadata, "winml.io.outputs", dump_json(outputs, -1));
  set(model.metadata, "winml.task", plan.head.task);
  set(model.metadata, "winml.model_type", plan.head.model_type);
  set(model.metadata, "winml.model_class", plan.head.class_name);
}

void finish_tags(Model& model, const ExportConfig& config) {
  if (config.hierarchy_tag_format != "module_only") return;
  for_each_node(*model.graph, [](Node& node) {
    const std::string* tag = find(node.metadata, "winml.hierarchy.tag");
    if (tag == nullptr) return;
    set(node.metadata, "winml.hierarchy.tag", tag->substr(tag->rfind('/')));
    set(node.metadata, "winml.hierarchy.depth", "1");
  });
}

std::size_t tagged_node_count(const Model& model) {
  std::size_t count = 0;
  for_each_node(*model.graph, [&](const Node& node) { count += find(node.metadata, "winml.hierarchy.tag") ? 1 : 0; });
  return count;
}

std::uint64_t model_bytes(const Model& model) {
  std::uint64_t bytes = 0;
  for (const Value* value : model.graph->initializers()) bytes += value->initializer()->byte_count();
  return bytes;
}

}  // namespace mk
