#pragma once
// The model type of a config.json that does not say it (spec: loader, HF configuration loading): from names, and never
// against the architectures that the file does say.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "hub/model_ref.h"

namespace mk {

struct KnownModelType {
  std::string_view name;                  // "distilbert"
  std::vector<std::string_view> classes;  // that belong to it
};

// The longest known type that is a part of the model's last name, or of the name that the config was saved under (a
// local folder's own name counts after that one, a Hub id before it; parent folders never). None where there is no such
// type, or where an architecture is not among its classes.
std::optional<std::string> infer_model_type(const ModelConfig& config, const ModelRef& ref,
                                            std::span<const KnownModelType> known);

}  // namespace mk
