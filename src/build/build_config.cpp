#include "build/build_config.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "build/config_fields.h"

namespace mk {
namespace {

template <typename Visitor>
void fields(LoaderConfig& c, Visitor& v) {
  v.when(c.task.has_value())("task", c.task);
  v.when(c.model_class.has_value())("model_class", c.model_class);
  v.when(c.model_type.has_value())("model_type", c.model_type);
  v.when(c.module_path.has_value())("module_path", c.module_path);
  v.when(c.user_script.has_value())("user_script", c.user_script);
  v.when(c.trust_remote_code)("trust_remote_code", c.trust_remote_code);
}

template <typename Visitor>
void fields(QuantConfig& c, Visitor& v) {
  v("mode", c.mode, {"static", "dynamic", "rtn", "fp16"});
  v("samples", c.samples);
  v("calibration_method", c.calibration_method, {"minmax", "entropy", "percentile"});
  v("weight_type", c.weight_type, {"uint8", "int8", "uint16", "int16"});
  v("activation_type", c.activation_type, {"uint8", "int8", "uint16", "int16"});
  v("per_channel", c.per_channel);
  v("symmetric", c.symmetric);
  v("weight_symmetric", c.weight_symmetric);
  v("activation_symmetric", c.activation_symmetric);
  v("save_calibration", c.save_calibration);
  v("distribution", c.distribution);
  v("seed", c.seed);
  v("calibration_load_path", c.calibration_load_path);
  v("calibration_save_path", c.calibration_save_path);
  v("op_types_to_quantize", c.op_types_to_quantize);
  v("nodes_to_exclude", c.nodes_to_exclude);
  v.when(c.op_types_to_exclude.has_value())("op_types_to_exclude", c.op_types_to_exclude);
  v.when(c.calibration_data.has_value())("calibration_data", c.calibration_data);
  v.when(c.calibration_column.has_value())("calibration_column", c.calibration_column);
  v.when(c.calibration_split.has_value())("calibration_split", c.calibration_split);
  v.when(c.task.has_value())("task", c.task);
  v.when(c.model_id.has_value())("model_id", c.model_id);
  v.when(c.dataset_name.has_value())("dataset_name", c.dataset_name);
  v.when(c.model_type.has_value())("model_type", c.model_type);
  v.when(c.mode == "rtn")("rtn_bits", c.rtn_bits);
  v.when(c.mode == "rtn")("rtn_block_size", c.rtn_block_size);
  v.when(c.mode == "rtn")("rtn_symmetric", c.rtn_symmetric);
  v.when(c.mode == "rtn")("rtn_accuracy_level", c.rtn_accuracy_level);
  v.when(c.mode == "dynamic")("reduce_range", c.reduce_range);
  v.when(c.mode == "fp16")("fp16_keep_io_types", c.fp16_keep_io_types);
  v.when(c.mode == "fp16")("fp16_op_block_list", c.fp16_op_block_list);
}

template <typename Visitor>
void fields(EpDeviceConfig& c, Visitor& v) {
  v("ep", c.ep);
  v("device", c.device);
  v("source", c.source);
}

template <typename Visitor>
void fields(CompileConfig& c, Visitor& v) {
  v("execution_provider", c.execution_provider);
  v("provider_options", c.provider_options);
  v("provider_option_file_keys", c.provider_option_file_keys);
  v("enable_ep_context", c.enable_ep_context);
  v("embed_context", c.embed_context);
  v("compiler", c.compiler, {"ort", "ort_session", "qairt"});
  v("qnn_sdk_root", c.qnn_sdk_root);
  v("device", c.device, {"auto", "npu", "gpu", "cpu"});
}

template <typename Section>
Json print_fields(const Section& section) {
  Json json;
  FieldPrinter printer(json);
  Section copy = section;
  fields(copy, printer);
  return json;
}

// The spellings of older documents, rewritten: calibration_samples, mode qdq, compile.ep_config.
Json modern_quant(const Json& old) {
  if (!old.is_object()) return old;
  Json json = Json::object();
  for (const auto& item : old.items()) {
    if (item.key() == "calibration_samples") {
      if (!old.contains("samples")) json["samples"] = item.value();
    } else if (item.key() == "mode" && item.value() == "qdq") {
      json["mode"] = "static";
    } else {
      json[item.key()] = item.value();
    }
  }
  return json;
}

Json modern_compile(const Json& old) {
  if (!old.is_object()) return old;
  Json json = Json::object();
  for (const auto& item : old.items()) {
    if (item.key() == "ep_config" && item.value().is_object()) {
      for (const auto& inner : item.value().items())
        json[inner.key() == "provider" ? "execution_provider" : inner.key()] = inner.value();
    } else {
      json[item.key()] = item.value();
    }
  }
  return json;
}

Result<QuantConfig> parse_quant(const JsonView& json, Progress& progress) {
  QuantConfig config;
  FieldReader reader(json);
  fields(config, reader);
  MK_CHECK(reader.finish(progress));
  return config;
}

Result<CompileConfig> parse_compile(const JsonView& json, Progress& progress) {
  CompileConfig config;
  FieldReader reader(json);
  fields(config, reader);
  reader("validate", config.validate);
  reader("verbose", config.verbose);
  reader.also_known("ep_device");
  MK_CHECK(reader.finish(progress));
  std::ranges::sort(config.provider_option_file_keys);
  if (json.has("ep_device")) {
    FieldReader inner(json.at("ep_device"));
    fields(config.ep_device.emplace(), inner);
    for (const std::string_view legacy : {"vendor_id", "device_id", "vendor"}) inner.also_known(legacy);
    MK_CHECK(inner.finish(progress));
    constexpr std::string_view sources[] = {"bundled", "pypi", "nuget", "msix", "winml-catalog", "directory"};
    if (const auto& source = config.ep_device->source;
        source && std::ranges::find(sources, *source) == std::end(sources))
      return tl::make_unexpected(json.at("ep_device")
                                     .at("source")
                                     .error(fmt::format("unknown value '{}'", *source),
                                            fmt::format("Expected one of {}", fmt::join(sources, ", "))));
  }
  return config;
}

Result<LoaderConfig> parse_loader(const JsonView& json, Progress& progress) {
  LoaderConfig config;
  FieldReader reader(json);
  fields(config, reader);
  MK_CHECK(reader.finish(progress));
  return config;
}

Result<std::map<std::string, OptimValue>> parse_optim(const JsonView& json) {
  if (!json.is_object()) return tl::make_unexpected(json.expected("an object of capability flags"));
  std::map<std::string, OptimValue> optim;
  for (const auto& item : json.json().items()) {
    const Json& value = item.value();
    if (value.is_boolean()) {
      optim[item.key()] = value.get<bool>();
    } else if (value.is_number_integer()) {
      MK_TRY(optim[item.key()], json.at(item.key()).integer());
    } else if (value.is_number_float()) {
      optim[item.key()] = value.get<double>();
    } else {
      return tl::make_unexpected(json.at(item.key()).expected("true, false or a number"));
    }
  }
  return optim;
}

// The runtime contract fails closed: nothing in it is guessed or skipped.
Status check_runtime(const JsonView& json) {
  MK_CHECK(json.only_keys({"pipeline", "options"}));
  MK_TRY(const std::string pipeline, json.at("pipeline").string());
  if (pipeline != "inpainting") return tl::make_unexpected(json.at("pipeline").expected("\"inpainting\""));
  const JsonView options = json.at("options");
  if (options.is_null()) return {};
  return options.only_keys({"image_input_name", "mask_input_name", "output_name", "image_color_order",
                            "output_color_order", "image_value_range", "output_value_range", "mask_semantics"});
}

// Objects merge key by key; everything else replaces.
void merge_json(Json& base, const Json& over) {
  if (!base.is_object() || !over.is_object()) {
    base = over;
    return;
  }
  for (const auto& item : over.items()) merge_json(base[item.key()], item.value());
}

void merge_section(Json& document, std::string_view key, const Json& over, const Json& defaults) {
  Json& section = document[std::string(key)];
  if (section.is_null() && over.is_object()) section = defaults;
  merge_json(section, over);
}

}  // namespace

Result<BuildConfig> parse_build_config(const JsonView& json, Progress& progress) {
  if (json.is_array())
    return tl::make_unexpected(json.error("a list of configs (one per sub-module) is not available in this version",
                                          "Give one config, an object"));
  if (!json.is_object()) return tl::make_unexpected(json.expected("an object"));
  BuildConfig config;
  FieldReader reader(json);
  reader("auto", config.automatic);
  reader("skip_optimize", config.skip_optimize);
  for (const std::string_view section : {"export", "optim", "quant", "compile", "loader", "eval", "runtime"})
    reader.also_known(section);
  MK_CHECK(reader.finish(progress));

  const Json& document = json.json();
  if (document.contains("export")) {
    if (json.has("export")) {
      MK_TRY(config.exporting, parse_export_config(json.at("export"), progress));
      MK_CHECK(infer_dynamic_axes(*config.exporting));
    } else {
      config.exporting.reset();
    }
  }
  if (document.contains("optim")) {
    if (json.has("optim")) {
      MK_TRY(config.optim, parse_optim(json.at("optim")));
    } else {
      config.optim.reset();
    }
  }
  // Old spellings are rewritten in a copy that stands at the same place of the document, so that pointers stay right.
  if (json.has("quant") || json.has("compile")) {
    Json modern = {{"quant", modern_quant(json.at("quant").json())},
                   {"compile", modern_compile(json.at("compile").json())}};
    const JsonView view = json.with_value(modern);
    if (view.has("quant")) {
      MK_TRY(config.quant, parse_quant(view.at("quant"), progress));
    }
    if (view.has("compile")) {
      MK_TRY(config.compile, parse_compile(view.at("compile"), progress));
    }
  }
  if (json.has("loader")) {
    MK_TRY(config.loader, parse_loader(json.at("loader"), progress));
  }
  if (json.has("eval")) {
    if (!json.at("eval").is_object()) return tl::make_unexpected(json.at("eval").expected("an object"));
    config.eval = std::make_shared<const Json>(json.at("eval").json());
  }
  if (json.has("runtime")) {
    MK_CHECK(check_runtime(json.at("runtime")));
    config.runtime = std::make_shared<const Json>(json.at("runtime").json());
  }
  return config;
}

Result<Json> read_config_json(const Path& file) {
  MK_TRY(const std::string text, read_text(file));
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return fail(ErrorCode::usage, "the config file is empty", to_utf8(file), "`winml config -m MODEL` writes one");
  return parse_json(text, to_utf8(file), ErrorCode::usage);
}

Result<BuildConfig> read_build_config(const Path& file, Progress& progress) {
  MK_TRY(const Json json, read_config_json(file));
  return parse_build_config(JsonView(json, to_utf8(file), ErrorCode::usage), progress);
}

Json to_json(const LoaderConfig& loader) { return print_fields(loader); }

Json to_json(const QuantConfig& quant) { return print_fields(quant); }

Json to_json(const CompileConfig& compile) {
  Json json = print_fields(compile);
  json["ep_device"] = compile.ep_device ? print_fields(*compile.ep_device) : Json(nullptr);
  json["validate"] = compile.validate;
  return json;
}

Json to_json(const BuildConfig& config) {
  Json json = Json::object();
  if (!config.automatic) json["auto"] = false;
  if (config.skip_optimize) json["skip_optimize"] = true;
  json["export"] = config.exporting ? to_json(*config.exporting) : Json(nullptr);
  json["optim"] = config.optim ? Json::object() : Json(nullptr);
  if (config.optim)
    for (const auto& [key, value] : *config.optim)
      json["optim"][key] = std::visit([](const auto& v) { return Json(v); }, value);
  json["quant"] = config.quant ? to_json(*config.quant) : Json(nullptr);
  json["compile"] = config.compile ? to_json(*config.compile) : Json(nullptr);
  if (Json loader = to_json(config.loader); !loader.empty()) json["loader"] = std::move(loader);
  if (config.eval) json["eval"] = *config.eval;
  if (config.runtime) json["runtime"] = *config.runtime;
  return json;
}

Result<BuildConfig> merge_build_config(const BuildConfig& base, const JsonView& over, Progress& progress) {
  if (!over.is_object()) return tl::make_unexpected(over.expected("an object"));
  Json document = to_json(base);
  for (const auto& item : over.json().items()) {
    if (item.key() == "export") {
      if (base.exporting) merge_section(document, "export", item.value(), Json());
    } else if (item.key() == "quant") {
      merge_section(document, "quant", modern_quant(item.value()), to_json(QuantConfig{}));
    } else if (item.key() == "compile") {
      // Its own keys replace whole: provider_options are not mixed.
      Json& section = document["compile"];
      if (section.is_null() && item.value().is_object()) section = to_json(CompileConfig{});
      const Json modern = modern_compile(item.value());
      if (modern.is_object() && section.is_object()) {
        section.update(modern);
      } else {
        section = modern;
      }
    } else {
      merge_section(document, item.key(), item.value(), Json::object());
    }
  }
  return parse_build_config(over.with_value(document), progress);
}

Status infer_dynamic_axes(ExportConfig& config) {
  for (const TensorPatch& tensor : config.input_tensors) {
    if (!tensor.shape) continue;
    for (std::size_t axis = 0; axis < tensor.shape->size(); ++axis) {
      const Dim& dim = (*tensor.shape)[axis];
      if (!dim.is_symbolic()) continue;
      std::string& name = config.dynamic_axes[tensor.name][static_cast<std::int64_t>(axis)];
      if (!name.empty() && name != dim.symbol)
        return fail(ErrorCode::usage, fmt::format("conflicting dynamic axis for '{}' axis {}: {} and {}", tensor.name,
                                                  axis, name, dim.symbol));
      name = dim.symbol;
    }
  }
  return {};
}

Status validate(const BuildConfig& config) {
  std::vector<std::string> problems;
  const bool from_checkpoint = config.exporting && !config.is_submodule();
  if (from_checkpoint && !config.loader.task) problems.emplace_back("loader.task is required for full model builds");
  if (!config.optim) problems.emplace_back("optim config is required");
  if (config.quant && from_checkpoint && config.quant->mode == "static") {
    if (!config.quant->task)
      problems.emplace_back("quant.task is required when quant is enabled for builds from a checkpoint");
    if (!config.quant->model_id)
      problems.emplace_back("quant.model_id is required when quant is enabled for builds from a checkpoint");
  }
  if (config.quant && (config.quant->calibration_save_path || config.quant->calibration_load_path))
    problems.emplace_back("quant.calibration_save_path and calibration_load_path are not supported");
  if (config.quant && (config.quant->samples < 1 || config.quant->samples > most_samples))
    problems.push_back(fmt::format("quant.samples must be from 1 to {}", most_samples));
  if (config.compile && !config.compile->execution_provider)
    problems.emplace_back("compile.execution_provider is required when compile is enabled");
  if (problems.empty()) return {};
  return fail(ErrorCode::usage, fmt::format("the build config is not valid: {}", fmt::join(problems, "; ")));
}

}  // namespace mk
