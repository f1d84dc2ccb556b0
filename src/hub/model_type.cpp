#include "hub/model_type.h"

#include <algorithm>

#include "base/text.h"

namespace mk {
namespace {

std::string lower_last_part(std::string_view name) {
  while (name.ends_with('/')) name.remove_suffix(1);
  const auto slash = name.rfind('/');
  return lower_case(slash == std::string_view::npos ? name : name.substr(slash + 1));
}

// The name under which the model was saved, where it is one of the Hub.
std::string saved_name(const ModelConfig& config) {
  const auto name = config.string("_name_or_path", {});
  return name && is_model_id(*name) ? lower_last_part(*name) : std::string();
}

}  // namespace

std::optional<std::string> infer_model_type(const ModelConfig& config, const ModelRef& ref,
                                            std::span<const KnownModelType> known) {
  const bool is_local = ref.kind == ModelRefKind::folder || ref.kind == ModelRefKind::local_onnx;
  std::vector<std::string> names{is_local ? lower_last_part(to_utf8(ref.local_path)) : lower_last_part(ref.id),
                                 saved_name(config)};
  if (is_local) std::swap(names[0], names[1]);

  for (const std::string& name : names) {
    const KnownModelType* best = nullptr;
    for (const KnownModelType& type : known) {
      if (name.find(type.name) == std::string::npos) continue;
      const auto order = [](const KnownModelType& t) {
        return std::pair(-static_cast<std::ptrdiff_t>(t.name.size()), t.name);
      };
      if (!best || order(type) < order(*best)) best = &type;
    }
    if (!best) continue;
    const auto belongs = [&](const std::string& architecture) {
      return std::find(best->classes.begin(), best->classes.end(), architecture) != best->classes.end();
    };
    const auto architectures = config.architectures();
    if (std::all_of(architectures.begin(), architectures.end(), belongs)) return std::string(best->name);
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace mk
