#pragma once
// Options that several commands have, worded once. A command's describe function calls these for what it offers.

#include <optional>
#include <string>
#include <vector>

#include "base/path.h"
#include "winml/options.h"

namespace mk::cli {

// -m/--model. `what` says which kinds the command takes.
OptionRow& model_option(OptionTable& options, std::optional<std::string>& model, std::string_view what);
OptionRow& model_option(OptionTable& options, std::string& model, std::string_view what);  // required
OptionRow& task_option(OptionTable& options, std::optional<std::string>& task);

// -o/--output, and --overwrite/--no-overwrite.
OptionRow& output_option(OptionTable& options, std::optional<Path>& output, std::string_view what);
OptionRow& output_option(OptionTable& options, Path& output, std::string_view what);  // required
OptionRow& overwrite_option(OptionTable& options, bool& overwrite);

OptionRow& config_option(OptionTable& options, std::optional<Path>& config, std::string_view what);  // -c/--config
OptionRow& strict_option(OptionTable& options, bool& strict);  // --strict, of that config
// The JSON files that change what is exported: --shape-config, --input-specs, --export-config, --dynamic-axes.
struct ExportFiles {
  std::optional<Path> shape_config;
  std::optional<Path> input_specs;
  std::optional<Path> export_config;
  std::optional<Path> dynamic_axes;
  bool any() const { return shape_config || input_specs || export_config || dynamic_axes; }
};
void export_file_options(OptionTable& options, ExportFiles& files);

// Where to run. Absent is not typed; what that means is the command's (auto as a rule).
OptionRow& device_option(OptionTable& options, std::optional<std::string>& device);        // -d/--device
OptionRow& ep_option(OptionTable& options, std::optional<std::string>& ep);                // --ep, --execution-provider
OptionRow& ep_options_option(OptionTable& options, KeyValues& values);                     // --ep-options NAME=VALUE
OptionRow& precision_option(OptionTable& options, std::optional<std::string>& precision);  // -p/--precision
OptionRow& ort_option(OptionTable& options, std::optional<Path>& ort);                     // --ort PATH

// exists, naming the file and --overwrite, where `path` is there and may not be replaced: a file, or a folder that is
// not empty. `label` begins the sentence ("Output"). To be asked before any work, on the path that will be written.
Status guard_overwrite(const std::optional<Path>& path, bool overwrite, std::string_view label = "Output");

// usage where writing a model to `output` (and its data beside it) would replace one of the files that it is made from.
// A model may replace itself, with its own data: `model` is the one read, `data` the external files that it named.
Status keep_inputs(const Path& output, const Path& model, const std::vector<std::string>& data,
                   std::vector<Path> others);

}  // namespace mk::cli
