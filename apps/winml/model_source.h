#pragma once
// What a command that makes configs or looks at models was pointed to: -m, or only --model-type or --model-class.

#include <optional>
#include <string>

#include "base/result.h"
#include "checkpoint/config.h"
#include "hub/resolve.h"

namespace mk::cli {

struct ModelSource {
  std::optional<std::string> model;
  std::optional<std::string> model_type;
  std::optional<std::string> model_class;

  bool empty() const { return !model && !model_type && !model_class; }
  std::string name() const { return model ? *model : model_type ? *model_type : model_class.value_or(""); }
};

// config.json of the folder, or, without a folder, one made up from the type or the class (its fields are then
// transformers' defaults). usage for an unknown type or class, or a type that the model is not of.
Result<ModelConfig> config_of(const ModelSource& source, const std::optional<ResolvedModel>& resolved);

}  // namespace mk::cli
