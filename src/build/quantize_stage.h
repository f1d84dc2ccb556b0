#pragma once
// The quantize stage: the config's quant section over state.graph, calibrated with the user's data or with random
// values, and judged against the model before.

#include <memory>
#include <span>

#include "build/pipeline.h"
#include "quantize/quant_config.h"
#include "runtime/sample_source.h"

namespace mk {

Result<StageOutcome> run_quantize(BuildState& state);

// The samples that `path` names, with the column, split, seed and number that the config says; `assets` has the
// preprocessor or the tokenizer.
Result<std::unique_ptr<SampleSource>> open_samples(const Path& path, const QuantConfig& config, const Path& assets,
                                                   const Model& model);

// Warns of a column or a split that none of the data has.
void warn_of_columns(const QuantConfig& config, std::span<const Path> data, Progress& progress);

}  // namespace mk
