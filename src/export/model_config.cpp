#include "export/model_config.h"

#include <system_error>
#include <vector>

#include "hub/model_type.h"
#include "models/registry.h"

namespace mk {

Result<ModelConfig> read_model_config(const Path& folder, std::string_view model) {
  MK_TRY(ModelConfig config, ModelConfig::read(folder));
  if (!config.model_type().empty()) return config;

  ModelRef ref{.kind = ModelRefKind::folder};
  if (auto parsed = parse_model_ref(model); parsed && parsed->kind == ModelRefKind::hub_id) ref = std::move(*parsed);
  std::error_code ignored;
  ref.local_path = std::filesystem::weakly_canonical(folder, ignored);
  const auto types = model_types();
  std::vector<KnownModelType> known;
  known.reserve(types.size());
  for (const ModelTypeInfo& type : types) {
    auto& entry = known.emplace_back(KnownModelType{type.model_type, {}});
    for (const HeadInfo& head : type.heads) entry.classes.push_back(head.class_name);
  }
  const auto type = infer_model_type(config, ref, known);
  return type ? config.with_model_type(*type) : std::move(config);
}

}  // namespace mk
