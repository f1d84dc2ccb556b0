#pragma once
// The files that an export or a build reads. No output may be one of them.

#include <span>
#include <vector>

#include "base/path.h"
#include "base/result.h"

namespace mk {

// Of a checkpoint: its weights, config.json, and the files of its preprocessor and tokenizer.
Result<std::vector<Path>> checkpoint_files(const Path& folder);
// Of an ONNX file: itself, its external data, and the side files beside it.
Result<std::vector<Path>> onnx_files(const Path& onnx);

// usage, naming the file, where an output would replace a source.
Status keep_sources(std::span<const Path> sources, std::span<const Path> outputs);

}  // namespace mk
