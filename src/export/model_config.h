#pragma once
// A model folder's config.json with its model type, told from names where the file does not say it (hub/model_type.h).

#include <string_view>

#include "base/path.h"
#include "base/result.h"
#include "checkpoint/config.h"

namespace mk {

// `model` is the reference as the user wrote it; an id of the Hub counts for its name, anything else is the folder.
// Errors are those of ModelConfig::read. A type that stays unknown stays empty: whoever needs it says so.
Result<ModelConfig> read_model_config(const Path& folder, std::string_view model);

}  // namespace mk
