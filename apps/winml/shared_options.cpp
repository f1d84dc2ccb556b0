#include "winml/shared_options.h"

#include <fmt/format.h>

#include "export/source_files.h"

namespace mk::cli {
namespace {

constexpr std::string_view model_names = "-m, --model";
constexpr std::string_view output_names = "-o, --output";

}  // namespace

OptionRow& model_option(OptionTable& options, std::optional<std::string>& model, std::string_view what) {
  return options.value(model_names, "MODEL", model, what).accepts(Accepts::file);
}

OptionRow& model_option(OptionTable& options, std::string& model, std::string_view what) {
  return options.value(model_names, "MODEL", model, what).accepts(Accepts::file).required();
}

OptionRow& task_option(OptionTable& options, std::optional<std::string>& task) {
  return options.value("-t, --task", "TASK", task, "What the model is for; found from the model where it is not given");
}

OptionRow& output_option(OptionTable& options, std::optional<Path>& output, std::string_view what) {
  return options.value(output_names, "PATH", output, what).accepts(Accepts::file);
}

OptionRow& output_option(OptionTable& options, Path& output, std::string_view what) {
  return options.value(output_names, "PATH", output, what).accepts(Accepts::file).required();
}

OptionRow& overwrite_option(OptionTable& options, bool& overwrite) {
  return options.toggle("--overwrite", overwrite, "Replace an output that exists");
}

OptionRow& config_option(OptionTable& options, std::optional<Path>& config, std::string_view what) {
  return options.value("-c, --config", "FILE", config, what).accepts(Accepts::file);
}

OptionRow& strict_option(OptionTable& options, bool& strict) {
  return options.flag("--strict", strict, "Refuse a config with a key that nothing reads, instead of a warning");
}

void export_file_options(OptionTable& options, ExportFiles& files) {
  options.value("--shape-config", "FILE", files.shape_config, "Shapes, as JSON: {\"sequence_length\": 128}")
      .accepts(Accepts::file);
  options.value("--input-specs", "FILE", files.input_specs, "Inputs by name, as JSON: {\"x\": {\"shape\": [1, 3]}}")
      .accepts(Accepts::file);
  options.value("--export-config", "FILE", files.export_config, "Fields of the config's export section, as JSON")
      .accepts(Accepts::file);
  options.value("--dynamic-axes", "FILE", files.dynamic_axes, "Dynamic axes, as JSON: {\"x\": {\"0\": \"batch\"}}")
      .accepts(Accepts::file);
}

OptionRow& device_option(OptionTable& options, std::optional<std::string>& device) {
  return options.value("-d, --device", "DEVICE", device, "The device to build for or to run on")
      .choices({"auto", "npu", "gpu", "cpu"})
      .preset("auto");
}

OptionRow& ep_option(OptionTable& options, std::optional<std::string>& ep) {
  return options.value("--ep, --execution-provider", "EP", ep,
                       "The execution provider, by alias (openvino) or full name; follows from the device if absent");
}

OptionRow& ep_options_option(OptionTable& options, KeyValues& values) {
  return options.value("--ep-options", "NAME=VALUE", values,
                       "An option of the execution provider; the last of a name wins");
}

OptionRow& precision_option(OptionTable& options, std::optional<std::string>& precision) {
  return options
      .value("-p, --precision", "PRECISION", precision,
             "auto, fp32, fp16, int8, int16, int4 or w{4|8|16}a{8|16|32}; auto is w8a16 on an NPU, else fp32")
      .preset("auto");
}

OptionRow& ort_option(OptionTable& options, std::optional<Path>& ort) {
  return options.value("--ort", "PATH", ort, "The ONNX Runtime library to load, or the folder that has it")
      .accepts(Accepts::file);
}

Status guard_overwrite(const std::optional<Path>& path, bool overwrite, std::string_view label) {
  if (!path || overwrite) return {};
  std::error_code ignored;
  if (std::filesystem::is_directory(*path, ignored)) {
    if (std::filesystem::is_empty(*path, ignored)) return {};
    return fail(ErrorCode::exists,
                fmt::format("{} directory '{}' already exists and is not empty", label, to_utf8(*path)), {},
                "Re-run with --overwrite to replace its contents");
  }
  if (std::filesystem::exists(std::filesystem::symlink_status(*path, ignored)))
    return fail(ErrorCode::exists, fmt::format("{} '{}' already exists", label, to_utf8(*path)), {},
                "Re-run with --overwrite to replace it");
  return {};
}

Status keep_inputs(const Path& output, const Path& model, const std::vector<std::string>& data,
                   std::vector<Path> others) {
  std::error_code ignored;
  if (!std::filesystem::equivalent(output, model, ignored)) {
    others.push_back(model);
    for (const std::string& location : data) others.push_back(model.parent_path() / path_from_utf8(location));
  }
  return keep_sources(others, std::vector<Path>{output, with_suffix(output, ".data")});
}

}  // namespace mk::cli
