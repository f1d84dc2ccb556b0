#pragma once
// The options of `winml eval`, what a build config's eval section says of them, and which go together.

#include <cstdint>
#include <optional>
#include <string>

#include "base/path.h"
#include "base/result.h"
#include "winml/options.h"

namespace mk::cli {

struct EvalOptions {
  std::optional<std::string> model;
  std::optional<std::string> model_id;
  std::optional<std::string> dataset;
  std::optional<std::string> dataset_name;
  std::optional<std::string> dataset_revision;
  std::optional<std::string> split;
  std::optional<std::int64_t> samples;
  std::optional<bool> shuffle;
  std::optional<std::int64_t> seed;
  KeyValues columns;
  std::optional<Path> label_mapping;
  std::optional<std::string> task;
  std::optional<std::string> device;
  std::optional<std::string> ep;
  std::optional<std::string> mode;
  std::optional<Path> reference;
  std::optional<Path> input_data;
  KeyValues tolerances;
  std::optional<Path> shape_config;
  bool schema = false;
  std::optional<Path> config;
  std::optional<Path> output;
  bool overwrite = false;
  std::optional<Path> ort;

  bool compares() const { return mode == "compare"; }
};

void describe_eval(EvalOptions& o, OptionTable& options);

// Fills in what was not typed from --config (spec: config, eval section).
Status merge_eval_config(EvalOptions& o);

// usage for options that are missing or do not go together.
Status check_combination(const EvalOptions& o);

}  // namespace mk::cli
