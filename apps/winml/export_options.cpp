#include "winml/export_options.h"

#include "base/json.h"

namespace mk::cli {

Status apply_export_files(ExportConfig& base, std::map<std::string, std::int64_t>& shapes, const ExportFiles& files,
                          Progress& progress) {
  if (files.export_config) {
    MK_TRY(const Json json, read_json(*files.export_config, ErrorCode::usage));
    MK_TRY(const ExportConfig over,
           parse_export_config(JsonView(json, to_utf8(*files.export_config), ErrorCode::usage), progress));
    merge_export_config(base, over);
  }
  if (files.input_specs) {
    MK_TRY(const Json json, read_json(*files.input_specs, ErrorCode::usage));
    ExportConfig over;
    MK_TRY(over.input_tensors, parse_input_specs(JsonView(json, to_utf8(*files.input_specs), ErrorCode::usage)));
    over.present = {"input_tensors"};
    merge_export_config(base, over);
  }
  if (files.dynamic_axes) {
    MK_TRY(const Json json, read_json(*files.dynamic_axes, ErrorCode::usage));
    MK_TRY(base.dynamic_axes, parse_dynamic_axes(JsonView(json, to_utf8(*files.dynamic_axes), ErrorCode::usage)));
  }
  if (files.shape_config) {
    MK_TRY(const Json json, read_json(*files.shape_config, ErrorCode::usage));
    MK_TRY(shapes, parse_shape_config(JsonView(json, to_utf8(*files.shape_config), ErrorCode::usage)));
  }
  return {};
}

Result<ExportLayers> read_export_layers(const std::optional<Path>& config, const ExportFiles& files,
                                        Progress& progress) {
  ExportLayers layers;
  if (config) {
    MK_TRY(const Json json, read_json(*config, ErrorCode::usage));
    const JsonView view(json, to_utf8(*config), ErrorCode::usage);
    if (!view.is_object()) return tl::make_unexpected(view.expected("a build config (an object)"));
    if (view.has("export")) {
      MK_TRY(layers.config, parse_export_config(view.at("export"), progress));
    }
    if (view.at("loader").has("task")) {
      MK_TRY(layers.task, view.at("loader").at("task").string());
    }
  }
  MK_CHECK(apply_export_files(layers.config, layers.shapes, files, progress));
  return layers;
}

}  // namespace mk::cli
