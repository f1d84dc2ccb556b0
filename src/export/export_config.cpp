#include "export/export_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/spelling.h"

namespace mk {
namespace {

struct FlagRow {
  std::string_view key;
  bool ExportConfig::*field;
  std::string_view idle = {};  // why it changes nothing; empty where it does
};
constexpr std::array flag_rows{
    FlagRow{"export_params", &ExportConfig::export_params, "weights are always written"},
    FlagRow{"do_constant_folding", &ExportConfig::do_constant_folding, "the graph is built without constants to fold"},
    FlagRow{"verbose", &ExportConfig::verbose, "-v says more"},
    FlagRow{"dynamo", &ExportConfig::dynamo, "nothing is traced"},
    FlagRow{"enable_hierarchy_tags", &ExportConfig::enable_hierarchy_tags},
    FlagRow{"clean_onnx", &ExportConfig::clean_onnx},
};
constexpr std::array<std::string_view, 7> other_keys{"opset_version", "batch_size",     "hierarchy_tag_format",
                                                     "input_tensors", "output_tensors", "dynamic_axes",
                                                     "compatibility"};

bool is_known(std::string_view key) {
  return std::ranges::find(other_keys, key) != other_keys.end() ||
         std::ranges::any_of(flag_rows, [&](const FlagRow& row) { return row.key == key; });
}

Result<Shape> parse_shape(const JsonView& json) {
  if (!json.is_array()) return tl::make_unexpected(json.expected("a list of integers or axis names"));
  Shape shape;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonView dim = json.at(i);
    if (dim.is_string()) {
      MK_TRY(std::string name, dim.string());
      if (name.empty()) return tl::make_unexpected(dim.error("an axis name may not be empty"));
      shape.push_back(Dim::symbolic(std::move(name)));
      continue;
    }
    MK_TRY(const std::int64_t value, dim.integer());
    if (value < 0) return tl::make_unexpected(dim.expected("a positive integer or an axis name"));
    shape.push_back(Dim::known(value));
  }
  return shape;
}

Result<ValueRange> parse_range(const JsonView& json) {
  MK_TRY(const std::vector<double> ends, json.numbers());
  if (ends.size() != 2 || ends[0] > ends[1]) return tl::make_unexpected(json.expected("[low, high] with low <= high"));
  return ValueRange{ends[0], ends[1]};
}

Status parse_tensor_fields(const JsonView& json, TensorPatch& patch) {
  if (!json.is_object()) return tl::make_unexpected(json.expected("an object with shape, dtype or value_range"));
  if (json.has("dtype")) {
    MK_TRY(patch.dtype, json.at("dtype").string());
  }
  if (json.has("shape")) {
    MK_TRY(patch.shape, parse_shape(json.at("shape")));
  }
  if (json.has("value_range")) {
    MK_TRY(patch.value_range, parse_range(json.at("value_range")));
  }
  return {};
}

void warn_of_unknown_keys(const JsonView& json, std::initializer_list<std::string_view> known, Progress& progress) {
  for (const auto& item : json.json().items()) {
    if (std::ranges::find(known, item.key()) != known.end()) continue;
    const auto near = nearest(item.key(), {known.begin(), known.size()});
    progress.warn(fmt::format("unknown key '{}' is ignored ({}){}", item.key(), json.where(),
                              near ? fmt::format(". Did you mean '{}'?", *near) : ""));
  }
}

Result<std::vector<TensorPatch>> parse_input_tensors(const JsonView& json, Progress& progress) {
  if (!json.is_array()) return tl::make_unexpected(json.expected("a list of tensors"));
  std::vector<TensorPatch> patches;
  for (std::size_t i = 0; i < json.size(); ++i) {
    TensorPatch patch;
    MK_CHECK(parse_tensor_fields(json.at(i), patch));
    MK_TRY(patch.name, json.at(i).at("name").string());
    warn_of_unknown_keys(json.at(i), {"name", "dtype", "shape", "value_range"}, progress);
    patches.push_back(std::move(patch));
  }
  return patches;
}

Result<std::vector<std::string>> parse_output_tensors(const JsonView& json, Progress& progress) {
  if (!json.is_array()) return tl::make_unexpected(json.expected("a list of {\"name\": ...}"));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonView name = json.at(i).at("name");
    MK_TRY(names.emplace_back(), name.string());
    if (names.back().empty()) return tl::make_unexpected(name.error("an output name may not be empty"));
    warn_of_unknown_keys(json.at(i), {"name"}, progress);
  }
  return names;
}

// Axis keys may be written as text, as JSON demands, or with a sign: a negative one is an error.
Result<std::int64_t> parse_axis(const JsonView& axes, const std::string& key) {
  const bool digits =
      !key.empty() && key.size() < 4 && std::ranges::all_of(key, [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return tl::make_unexpected(axes.error(fmt::format("axis '{}' is not a non-negative integer", key)));
  return std::stoll(key);
}

Result<std::optional<std::string>> parse_compatibility(const JsonView& json) {
  if (!json.is_object()) return tl::make_unexpected(json.expected("an object"));
  MK_CHECK(json.only_keys({"transformers_attention"}));
  if (!json.has("transformers_attention")) return std::nullopt;
  MK_TRY(const std::string value, json.at("transformers_attention").string());
  if (value != "eager") return tl::make_unexpected(json.at("transformers_attention").expected("\"eager\" or null"));
  return value;
}

void merge_patches(std::vector<TensorPatch>& base, const std::vector<TensorPatch>& over) {
  for (const TensorPatch& patch : over) {
    const auto found = std::ranges::find(base, patch.name, &TensorPatch::name);
    if (found == base.end()) {
      base.push_back(patch);
      continue;
    }
    if (patch.dtype) found->dtype = patch.dtype;
    if (patch.shape) found->shape = patch.shape;
    if (patch.value_range) found->value_range = patch.value_range;
  }
}

Json number_json(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<std::int64_t>(value);
  return value;
}

Json shape_json(const Shape& shape) {
  Json list = Json::array();
  for (const Dim& dim : shape) {
    if (dim.is_known())
      list.push_back(dim.value);
    else
      list.push_back(dim.symbol);
  }
  return list;
}

Json range_json(const ValueRange& range) { return Json::array({number_json(range.low), number_json(range.high)}); }

Status set_axis_name(Dim& dim, const std::string& tensor, std::int64_t axis, const std::string& name) {
  if (dim.is_symbolic() && dim.symbol != name) {
    return fail(ErrorCode::usage,
                fmt::format("conflicting dynamic axis for '{}' axis {}: {} and {}", tensor, axis, dim.symbol, name));
  }
  dim = Dim::symbolic(name);
  return {};
}

}  // namespace

Result<ExportConfig> parse_export_config(const JsonView& json, Progress& progress) {
  if (!json.is_object()) return tl::make_unexpected(json.expected("an object"));
  ExportConfig config;
  for (const auto& item : json.json().items()) {
    config.present.push_back(item.key());
    if (!is_known(item.key())) progress.warn(fmt::format("unknown key '{}' is ignored ({})", item.key(), json.where()));
  }
  if (json.has("opset_version")) {
    MK_TRY(config.opset_version, json.at("opset_version").integer());
  }
  if (json.has("batch_size")) {
    MK_TRY(config.batch_size, json.at("batch_size").integer());
    if (config.batch_size <= 0) {
      return tl::make_unexpected(
          json.at("batch_size").error(fmt::format("batch_size must be positive, got {}", config.batch_size)));
    }
  }
  for (const FlagRow& row : flag_rows) {
    if (!json.has(row.key)) continue;
    MK_TRY(config.*row.field, json.at(row.key).boolean());
  }
  if (json.has("hierarchy_tag_format")) {
    MK_TRY(config.hierarchy_tag_format, json.at("hierarchy_tag_format").string());
    if (config.hierarchy_tag_format != "full" && config.hierarchy_tag_format != "module_only") {
      return tl::make_unexpected(json.at("hierarchy_tag_format").expected("\"full\" or \"module_only\""));
    }
  }
  if (json.has("input_tensors")) {
    MK_TRY(config.input_tensors, parse_input_tensors(json.at("input_tensors"), progress));
  }
  if (json.has("output_tensors")) {
    MK_TRY(config.output_tensors, parse_output_tensors(json.at("output_tensors"), progress));
  }
  if (json.has("dynamic_axes")) {
    MK_TRY(config.dynamic_axes, parse_dynamic_axes(json.at("dynamic_axes")));
  }
  if (json.has("compatibility")) {
    MK_TRY(config.transformers_attention, parse_compatibility(json.at("compatibility")));
  }
  if (config.clean_onnx && !config.enable_hierarchy_tags) {
    progress.warn("clean_onnx changes nothing while enable_hierarchy_tags is false");
  }
  return config;
}

void merge_export_config(ExportConfig& base, const ExportConfig& over) {
  const auto says = [&](std::string_view key) { return std::ranges::find(over.present, key) != over.present.end(); };
  for (const FlagRow& row : flag_rows) {
    if (says(row.key)) base.*row.field = over.*row.field;
  }
  if (says("opset_version")) base.opset_version = over.opset_version;
  if (says("batch_size")) base.batch_size = over.batch_size;
  if (says("hierarchy_tag_format")) base.hierarchy_tag_format = over.hierarchy_tag_format;
  if (says("input_tensors")) merge_patches(base.input_tensors, over.input_tensors);
  if (says("output_tensors")) base.output_tensors = over.output_tensors;
  if (says("dynamic_axes")) base.dynamic_axes = over.dynamic_axes;
  if (says("compatibility")) base.transformers_attention = over.transformers_attention;
  for (const std::string& key : over.present) {
    if (std::ranges::find(base.present, key) == base.present.end()) base.present.push_back(key);
  }
}

Json to_json(const ExportConfig& config) {
  Json json;
  json["opset_version"] = config.opset_version;
  json["batch_size"] = config.batch_size;
  for (const FlagRow& row : flag_rows) json[std::string(row.key)] = config.*row.field;
  json["hierarchy_tag_format"] = config.hierarchy_tag_format;
  if (!config.input_tensors.empty()) {
    Json& list = json["input_tensors"] = Json::array();
    for (const TensorPatch& patch : config.input_tensors) {
      Json& tensor = list.emplace_back(Json{{"name", patch.name}});
      if (patch.dtype) tensor["dtype"] = *patch.dtype;
      if (patch.shape) tensor["shape"] = shape_json(*patch.shape);
      if (patch.value_range) tensor["value_range"] = range_json(*patch.value_range);
    }
  }
  if (!config.output_tensors.empty()) {
    Json& list = json["output_tensors"] = Json::array();
    for (const std::string& name : config.output_tensors) list.push_back(Json{{"name", name}});
  }
  for (const auto& [tensor, axes] : config.dynamic_axes) {
    for (const auto& [axis, name] : axes) json["dynamic_axes"][tensor][std::to_string(axis)] = name;
  }
  if (config.transformers_attention) json["compatibility"]["transformers_attention"] = *config.transformers_attention;
  return json;
}

Result<std::vector<TensorPatch>> parse_input_specs(const JsonView& json) {
  if (!json.is_object())
    return tl::make_unexpected(json.expected("an object of {input name: {shape, dtype, value_range}}"));
  std::vector<TensorPatch> patches;
  for (const auto& item : json.json().items()) {
    if (item.key().empty()) return tl::make_unexpected(json.error("an input name may not be empty"));
    TensorPatch& patch = patches.emplace_back();
    patch.name = item.key();
    MK_CHECK(json.at(item.key()).only_keys({"name", "shape", "dtype", "value_range"}));
    MK_CHECK(parse_tensor_fields(json.at(item.key()), patch));
  }
  return patches;
}

Result<DynamicAxes> parse_dynamic_axes(const JsonView& json) {
  if (!json.is_object()) return tl::make_unexpected(json.expected("an object of {tensor: {axis: name}}"));
  DynamicAxes result;
  for (const auto& item : json.json().items()) {
    const JsonView axes = json.at(item.key());
    if (item.key().empty()) return tl::make_unexpected(json.error("a tensor name may not be empty"));
    if (!axes.is_object()) return tl::make_unexpected(axes.expected("an object of {axis: name}"));
    for (const auto& axis : axes.json().items()) {
      MK_TRY(const std::int64_t index, parse_axis(axes, axis.key()));
      MK_TRY(std::string name, axes.at(axis.key()).string());
      if (name.empty()) return tl::make_unexpected(axes.at(axis.key()).error("an axis name may not be empty"));
      result[item.key()][index] = std::move(name);
    }
  }
  return result;
}

Result<std::map<std::string, std::int64_t>> parse_shape_config(const JsonView& json) {
  if (!json.is_object()) return tl::make_unexpected(json.expected("an object of {dimension: integer}"));
  std::map<std::string, std::int64_t> shapes;
  for (const auto& item : json.json().items()) {
    MK_TRY(const std::int64_t value, json.at(item.key()).integer());
    if (value <= 0) return tl::make_unexpected(json.at(item.key()).expected("a positive integer"));
    shapes[item.key()] = value;
  }
  return shapes;
}

namespace {

Status patch_range(InputSpec& input, const ValueRange& range, Progress& progress) {
  const std::optional<ValueRange> own = std::exchange(input.range, range);
  if (!own || !is_integer(input.type) || (range.low >= own->low && range.high <= own->high)) return {};
  input.range = ValueRange{std::max(range.low, own->low), std::min(range.high, own->high)};
  const std::string beyond =
      fmt::format("the value_range [{:g}, {:g}] of '{}' goes beyond [{:g}, {:g}], what the model takes", range.low,
                  range.high, input.name, own->low, own->high);
  if (input.range->low >= input.range->high) return fail(ErrorCode::usage, beyond, "value_range");
  progress.warn(beyond + "; it is cut to that");
  return {};
}

}  // namespace

Status apply_patches(std::vector<InputSpec>& inputs, const std::vector<TensorPatch>& patches, Progress& progress) {
  for (const TensorPatch& patch : patches) {
    auto found = std::ranges::find(inputs, patch.name, &InputSpec::name);
    if (found == inputs.end()) {
      std::string known;
      for (const InputSpec& input : inputs) known += (known.empty() ? "" : ", ") + input.name;
      return fail(ErrorCode::usage, fmt::format("the graph has no input '{}'", patch.name), {},
                  "Its inputs are " + known);
    }
    if (patch.dtype) {
      const auto type = data_type_named(*patch.dtype);
      if (!type)
        return fail(ErrorCode::usage, fmt::format("unknown dtype '{}' for input '{}'", *patch.dtype, patch.name));
      found->type = *type;
    }
    if (patch.shape) found->shape = *patch.shape;
    if (patch.value_range) MK_CHECK(patch_range(*found, *patch.value_range, progress));
  }
  return {};
}

Status rename_outputs(std::vector<std::string>& outputs, const std::vector<std::string>& names, Progress& progress) {
  if (names.empty()) return {};
  const std::set<std::string_view> distinct(names.begin(), names.end());
  if (distinct.size() < names.size())
    return fail(ErrorCode::usage, "an output name is there twice", "output_tensors", "Give each output its own name");
  const auto is_own = [&](const std::string& name) { return std::ranges::find(outputs, name) != outputs.end(); };
  if (std::ranges::all_of(names, is_own)) return {};
  if (names.size() != outputs.size())
    progress.warn(fmt::format("output_tensors names {} outputs, the model has {}: {}", names.size(), outputs.size(),
                              fmt::join(outputs, ", ")));
  const std::size_t count = std::min(names.size(), outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      if (i == j || outputs[i] != names[j]) continue;
      return fail(ErrorCode::usage,
                  fmt::format("output {} cannot be called '{}', which is the name of output {}", j, names[j], i),
                  "output_tensors", fmt::format("The outputs are, in this order, {}", fmt::join(outputs, ", ")));
    }
  }
  std::copy_n(names.begin(), count, outputs.begin());
  return {};
}

void warn_of_idle_flags(const ExportConfig& config, Progress& progress) {
  const ExportConfig defaults;
  for (const FlagRow& row : flag_rows) {
    if (row.idle.empty() || config.*row.field == defaults.*row.field) continue;
    progress.warn(fmt::format("export.{} changes nothing: {}", row.key, row.idle));
  }
}

Status apply_dynamic_axes(std::vector<InputSpec>& inputs, const DynamicAxes& axes,
                          const std::vector<std::string>& output_names) {
  for (const auto& [tensor, names] : axes) {
    const auto found = std::ranges::find(inputs, tensor, &InputSpec::name);
    if (found == inputs.end()) {
      // An output's axes follow from the inputs'; naming them is allowed and changes nothing.
      if (std::ranges::find(output_names, tensor) != output_names.end()) continue;
      return fail(ErrorCode::usage,
                  fmt::format("dynamic axes name '{}', which is no input or output of the graph", tensor));
    }
    for (const auto& [axis, name] : names) {
      if (axis >= static_cast<std::int64_t>(found->shape.size())) {
        return fail(ErrorCode::usage,
                    fmt::format("dynamic axis {} of '{}' is beyond its rank {}", axis, tensor, found->shape.size()));
      }
      MK_CHECK(set_axis_name(found->shape[static_cast<std::size_t>(axis)], tensor, axis, name));
    }
  }
  return {};
}

Json to_json(const std::vector<InputSpec>& inputs) {
  Json list = Json::array();
  for (const InputSpec& input : inputs) {
    Json tensor{{"name", input.name}, {"dtype", name_of(input.type)}, {"shape", shape_json(input.shape)}};
    if (input.range) tensor["value_range"] = range_json(*input.range);
    list.push_back(std::move(tensor));
  }
  return list;
}

}  // namespace mk
