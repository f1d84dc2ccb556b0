#pragma once
// The export section of a build config (spec: config, export): parsed from JSON, merged, printed in its contractual
// order. Sections may be sparse: `-c`, --export-config and typed flags each set only what they name.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "base/result.h"
#include "models/registry.h"

namespace mk {

class JsonView;

// What a user says of one input; absent fields keep what the architecture says.
struct TensorPatch {
  std::string name;
  std::optional<std::string> dtype;  // as written; unknown names count as float32
  std::optional<Shape> shape;        // integers, or strings for dynamic axes
  std::optional<ValueRange> value_range;
};

// tensor -> axis -> symbol
using DynamicAxes = std::map<std::string, std::map<std::int64_t, std::string>>;

struct ExportConfig {
  std::int64_t opset_version = 17;
  std::int64_t batch_size = 1;
  bool export_params = true;
  bool do_constant_folding = true;
  bool verbose = false;
  bool dynamo = false;
  bool enable_hierarchy_tags = true;
  bool clean_onnx = false;
  std::string hierarchy_tag_format = "full";
  std::vector<TensorPatch> input_tensors;
  std::vector<std::string> output_tensors;
  DynamicAxes dynamic_axes;
  std::optional<std::string> transformers_attention;  // compatibility; "eager"

  // Which keys a document set: only these override another layer.
  std::vector<std::string> present;
};

// An export object of a config. usage with the JSON pointer; keys that are not known only warn (the contract ignores
// them).
Result<ExportConfig> parse_export_config(const JsonView& json, Progress& progress);
// `over` wins where it says something; input_tensors are patched by name, unknown ones appended.
void merge_export_config(ExportConfig& base, const ExportConfig& over);
Json to_json(const ExportConfig& config);

// The JSON files of --input-specs ({name: {shape, dtype, value_range}}), --dynamic-axes ({tensor: {axis: name}}) and
// --shape-config ({dimension: integer}).
// A key that is not known is an error in them.
Result<std::vector<TensorPatch>> parse_input_specs(const JsonView& json);
Result<DynamicAxes> parse_dynamic_axes(const JsonView& json);
Result<std::map<std::string, std::int64_t>> parse_shape_config(const JsonView& json);

// Puts patches and axis names onto an architecture's inputs. usage: a symbol that contradicts another for the same
// axis, an axis beyond the rank, a tensor that the graph does not have. A range of integers beyond what the model takes
// (its vocabulary) is cut to that, with a warning; usage where nothing of it is left.
Status apply_patches(std::vector<InputSpec>& inputs, const std::vector<TensorPatch>& patches, Progress& progress);
Status apply_dynamic_axes(std::vector<InputSpec>& inputs, const DynamicAxes& axes,
                          const std::vector<std::string>& output_names);

// The names that output_tensors gives, in the outputs' order. Names that are the model's own stay where they are.
// Another number of names than of outputs is warned of. usage for a name that is there twice.
Status rename_outputs(std::vector<std::string>& outputs, const std::vector<std::string>& names, Progress& progress);

// Says which fields are set and change nothing here.
void warn_of_idle_flags(const ExportConfig& config, Progress& progress);

// `inputs` as export.input_tensors and as winml.io.inputs print them.
Json to_json(const std::vector<InputSpec>& inputs);

}  // namespace mk
