#pragma once
// The build config (spec: config, the build-config document): what `winml config` writes, `winml build -c` reads and
// every build keeps as winml_build_config.json. Key names and their order are contract.
//
// Unknown keys are ignored, with a warning that points to them and names the nearest known key; values of the wrong
// kind are errors of code usage with the JSON pointer.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json_fwd.h"
#include "base/path.h"
#include "base/progress.h"
#include "base/result.h"
#include "export/export_config.h"
#include "quantize/quant_config.h"

namespace mk {

struct LoaderConfig {
  std::optional<std::string> task;
  std::optional<std::string> model_class;
  std::optional<std::string> model_type;
  std::optional<std::string> module_path;
  std::optional<std::string> user_script;
  bool trust_remote_code = false;
};

struct EpDeviceConfig {
  std::optional<std::string> ep;
  std::optional<std::string> device;
  std::optional<std::string> source;
};

struct CompileConfig {
  std::optional<std::string> execution_provider;  // short alias: qnn, openvino ...
  std::map<std::string, std::string> provider_options;
  std::vector<std::string> provider_option_file_keys;  // sorted
  bool enable_ep_context = true;
  bool embed_context = false;
  std::string compiler = "ort";  // ort, ort_session, qairt
  std::optional<std::string> qnn_sdk_root;
  std::string device = "auto";  // npu, gpu, cpu, auto
  std::optional<EpDeviceConfig> ep_device;
  bool validate = true;
  bool verbose = false;  // read, never written
};

using OptimValue = std::variant<bool, std::int64_t, double>;

struct BuildConfig {
  bool automatic = true;  // "auto": passes may be proposed by analysis
  bool skip_optimize = false;
  std::optional<ExportConfig> exporting = ExportConfig{};  // "export"; null is a build from an ONNX file
  std::optional<std::map<std::string, OptimValue>> optim = std::map<std::string, OptimValue>{};
  std::optional<QuantConfig> quant;      // null: stage skipped
  std::optional<CompileConfig> compile;  // null: stage skipped
  LoaderConfig loader;
  std::shared_ptr<const Json> eval;     // as read by `winml eval -c`; null where absent
  std::shared_ptr<const Json> runtime;  // the pipeline contract, kept as it was read; null where absent

  bool is_submodule() const { return loader.module_path.has_value(); }
};

Result<BuildConfig> parse_build_config(const JsonView& json, Progress& progress);
// A config file. usage, naming the file: missing, empty, not JSON, not an object.
Result<BuildConfig> read_build_config(const Path& file, Progress& progress);
// The same file as JSON, for a sparse override of a generated config.
Result<Json> read_config_json(const Path& file);

Json to_json(const LoaderConfig& loader);
Json to_json(const QuantConfig& quant);
Json to_json(const CompileConfig& compile);
Json to_json(const BuildConfig& config);

// `base` changed by a sparse document: objects merge, lists and scalars replace, an explicit null sets null, an object
// over null starts from that section's defaults, keys that the document lacks keep what base says. The export section
// of an ONNX build stays null.
Result<BuildConfig> merge_build_config(const BuildConfig& base, const JsonView& over, Progress& progress);

// String dimensions of input tensors are dynamic axes too. usage where two names meet on one axis.
Status infer_dynamic_axes(ExportConfig& config);

// Everything that is wrong with a config as a whole, in one usage error of several sentences.
Status validate(const BuildConfig& config);

}  // namespace mk
