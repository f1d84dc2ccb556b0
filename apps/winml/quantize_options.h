#pragma once
// The options of `winml quantize`, and the passes that they and a config make.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/path.h"
#include "base/progress.h"
#include "base/result.h"
#include "quantize/quant_config.h"
#include "winml/options.h"

namespace mk::cli {

struct QuantizeCommandOptions {
  std::optional<std::string> model;
  std::optional<Path> output;
  bool overwrite = false;
  std::vector<std::string> precisions;
  std::optional<std::string> calibration_data;
  std::optional<std::string> calibration_column;
  std::optional<std::string> calibration_split;
  std::optional<std::string> judge_data;
  std::optional<std::int64_t> samples;
  std::optional<std::string> method;
  std::optional<std::string> weight_type;
  std::optional<std::string> activation_type;
  std::optional<bool> per_channel;
  std::optional<bool> symmetric;
  std::optional<bool> weight_symmetric;
  std::optional<bool> activation_symmetric;
  std::optional<bool> reduce_range;
  std::optional<std::int64_t> block_size;
  std::optional<bool> keep_io;
  std::vector<std::string> exclude;
  std::vector<std::string> exclude_op;
  std::vector<std::string> op_types;
  std::vector<std::string> float32_ops;
  std::optional<std::int64_t> seed;
  std::optional<std::string> task;
  std::optional<std::string> model_id;
  std::optional<Path> config;
  std::optional<Path> shape_config;
  bool report = false;
  bool verify = true;
  std::int64_t threads = 0;
  std::optional<Path> ort;
};

void describe_quantize(QuantizeCommandOptions& o, OptionTable& options);

struct QuantizePlan {
  std::vector<QuantConfig> passes;
  std::string precision;  // for people: "w8a16", "int4 + fp16"
  std::string suffix;     // of the default output: "_quantized", "_int4_fp16"
};

// What is typed wins over the config's quant section, which wins over the defaults; types beat a precision. usage for
// what cannot be; a warning for options that no pass uses.
Result<QuantizePlan> quantize_plan(const QuantizeCommandOptions& o, Progress& progress);

}  // namespace mk::cli
