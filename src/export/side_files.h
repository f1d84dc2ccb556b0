#pragma once
// Files that travel with a model, so that eval and run work from its folder alone: config.json (with the label names),
// preprocessor_config.json, the tokenizer's files.

#include <span>
#include <string>
#include <vector>

#include "base/path.h"
#include "base/progress.h"
#include "base/publish.h"
#include "base/result.h"

namespace mk {

// Adds the side files of `source` to the publication, beside the model in `target`. One that is there already and
// differs stays, with a warning that names it, unless `overwrite` is given and `ours` (what a manifest in the target
// folder lists) has it. Returns the names that the folder will have from `source`.
Result<std::vector<std::string>> add_side_files(const Path& source, const Path& target,
                                                std::span<const std::string> ours, bool overwrite,
                                                Publication& publication, Progress& progress);

}  // namespace mk
