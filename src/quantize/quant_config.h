#pragma once
// The quant section of a build config (spec: quantize, configuration object): one quantizing pass and its data.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mk {

// More calibrate nothing better, and take days.
inline constexpr std::int64_t most_samples = 100'000;

struct QuantConfig {
  std::string mode = "static";  // static, dynamic, rtn, fp16; "qdq" is read as static
  std::int64_t samples = 10;
  std::string calibration_method = "minmax";  // minmax, entropy, percentile
  std::string weight_type = "uint8";          // uint8, int8, uint16, int16
  std::string activation_type = "uint8";
  bool per_channel = false;
  bool symmetric = false;
  std::optional<bool> weight_symmetric;
  std::optional<bool> activation_symmetric;
  bool save_calibration = false;
  std::string distribution = "uniform";
  std::optional<std::int64_t> seed;
  std::optional<std::string> calibration_load_path;
  std::optional<std::string> calibration_save_path;
  std::optional<std::vector<std::string>> op_types_to_quantize;
  std::optional<std::vector<std::string>> nodes_to_exclude;     // names, or globs with * and ?
  std::optional<std::vector<std::string>> op_types_to_exclude;  // static, dynamic, rtn
  std::optional<std::string> calibration_data;                  // a path; a file or folder of samples
  std::optional<std::string> calibration_column;
  std::optional<std::string> calibration_split;
  std::optional<std::string> task;
  std::optional<std::string> model_id;
  std::optional<std::string> dataset_name;
  std::optional<std::string> model_type;
  std::int64_t rtn_bits = 4;  // the rtn_ fields are of mode rtn
  std::int64_t rtn_block_size = 128;
  bool rtn_symmetric = true;
  std::int64_t rtn_accuracy_level = 0;
  bool reduce_range = false;                                   // of mode dynamic
  bool fp16_keep_io_types = true;                              // of mode fp16
  std::optional<std::vector<std::string>> fp16_op_block_list;  // of mode fp16
};

}  // namespace mk
