#pragma once
// The files that travel with a model: what tokenizers, preprocessors and generation read beside the weights.

#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/result.h"

namespace mk {

// Whether a file of a model folder, named relative to it, belongs beside an exported or built model.
bool is_side_file(std::string_view name);

// Those that the folder has, relative to it, sorted; the chat templates of a sub-folder, too.
Result<std::vector<Path>> side_files_in(const Path& folder);

}  // namespace mk
