#include "winml/model_source.h"

#include <fmt/format.h>

#include <vector>

#include "base/json.h"
#include "base/spelling.h"
#include "export/model_config.h"
#include "models/registry.h"

namespace mk::cli {
namespace {

Result<std::string> type_of_class(const std::string& name) {
  std::vector<std::string_view> known;
  for (const ModelTypeInfo& info : model_types()) {
    for (const HeadInfo& head : info.heads) {
      if (head.class_name == name) return std::string(info.model_type);
      known.push_back(head.class_name);
    }
  }
  const auto near = nearest(name, known);
  return fail(ErrorCode::usage, fmt::format("unknown model class '{}'", name), "--model-class",
              near ? fmt::format("Did you mean {}?", *near) : "");
}

Result<std::string> known_type(const std::string& name) {
  if (const auto info = find_model_type(name)) return std::string(info->model_type);
  std::vector<std::string_view> known;
  const auto types = model_types();
  known.reserve(types.size());
  for (const ModelTypeInfo& info : types) known.push_back(info.model_type);
  const auto near = nearest(name, known);
  return fail(ErrorCode::usage, fmt::format("unknown model type '{}'", name), "--model-type",
              near ? fmt::format("Did you mean {}?", *near) : fmt::format("Known are {}", fmt::join(known, ", ")));
}

}  // namespace

Result<ModelConfig> config_of(const ModelSource& source, const std::optional<ResolvedModel>& resolved) {
  if (resolved) {
    MK_TRY(ModelConfig config, read_model_config(resolved->folder, resolved->name()));
    if (source.model_type) {
      const auto asked = find_model_type(*source.model_type), found = find_model_type(config.model_type());
      if (!asked || !found || asked->model_type != found->model_type)
        return fail(ErrorCode::usage,
                    fmt::format("the model is of type '{}', not '{}'", config.model_type(), *source.model_type),
                    config.name(), "Leave --model-type out");
    }
    return config;
  }
  std::string type;
  if (source.model_type) {
    MK_TRY(type, known_type(*source.model_type));
  } else {
    MK_TRY(type, type_of_class(*source.model_class));
  }
  Json json = {{"model_type", type}};
  if (source.model_class) json["architectures"] = Json::array({*source.model_class});
  return ModelConfig::parse(dump_json(json), "--model-type " + type);
}

}  // namespace mk::cli
