#include "winml/eval_options.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/json.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

// What a config says, where it was not typed.
class ConfigReader {
 public:
  static Status merge(EvalOptions& o) {
    if (!o.config) return {};
    MK_TRY(const Json json, read_json(*o.config, ErrorCode::usage));
    const JsonView root(json, to_utf8(*o.config), ErrorCode::usage);
    if (!root.is_object()) return tl::make_unexpected(root.expected("a build config"));
    const JsonView eval = root.at("eval"), dataset = eval.at("dataset");
    MK_CHECK(take(o.model_id, eval.at("model_id")));
    MK_CHECK(take(o.task, eval.at("task")));
    MK_CHECK(take(o.task, root.at("loader").at("task")));
    MK_CHECK(take(o.device, eval.at("device")));
    MK_CHECK(take(o.ep, eval.at("ep")));
    MK_CHECK(take(o.ep, root.at("compile").at("execution_provider")));
    MK_CHECK(take(o.mode, eval.at("mode")));
    MK_CHECK(take(o.reference, eval.at("reference_path")));
    MK_CHECK(take(o.input_data, eval.at("input_data")));
    MK_CHECK(take(o.output, eval.at("output_path")));
    MK_CHECK(take(o.dataset, dataset.at("path")));
    MK_CHECK(take(o.dataset_name, dataset.at("name")));
    MK_CHECK(take(o.dataset_revision, dataset.at("revision")));
    MK_CHECK(take(o.split, dataset.at("split")));
    MK_CHECK(take(o.samples, dataset.at("samples")));
    MK_CHECK(take(o.shuffle, dataset.at("shuffle")));
    MK_CHECK(take(o.seed, dataset.at("seed")));
    MK_CHECK(take(o.label_mapping, dataset.at("label_mapping_file")));
    return take_columns(o, dataset.at("columns_mapping"));
  }

 private:
  static Status read(std::string& target, const JsonView& value) {
    MK_TRY(target, value.string());
    return {};
  }
  static Status read(Path& target, const JsonView& value) {
    MK_TRY(const std::string text, value.string());
    target = path_from_utf8(text);
    return {};
  }
  static Status read(std::int64_t& target, const JsonView& value) {
    MK_TRY(target, value.integer());
    if (target < 0) return tl::make_unexpected(value.expected("a number of at least 0"));
    return {};
  }
  static Status read(bool& target, const JsonView& value) {
    MK_TRY(target, value.boolean());
    return {};
  }
  template <typename T>
  static Status take(std::optional<T>& option, const JsonView& value) {
    if (option || value.is_null()) return {};
    T read_value{};
    MK_CHECK(read(read_value, value));
    option = std::move(read_value);
    return {};
  }
  static Status take_columns(EvalOptions& o, const JsonView& mapping) {
    if (!mapping.is_object()) return {};
    KeyValues columns;
    for (const auto& [key, ignored] : mapping.json().items()) {
      MK_TRY(std::string column, mapping.at(key).string());
      columns.emplace_back(key, std::move(column));
    }
    columns.insert(columns.end(), o.columns.begin(), o.columns.end());
    o.columns = std::move(columns);
    return {};
  }
};

}  // namespace

void describe_eval(EvalOptions& o, OptionTable& options) {
  model_option(options, o.model, "An ONNX file, a folder that build made, a checkpoint's folder, or a model id");
  options.value("--model-id", "MODEL", o.model_id,
                "The folder or id that has config.json and preprocessor_config.json, where -m has them not beside it");
  options
      .value(
          "--dataset", "PATH", o.dataset,
          "A Parquet file, a folder of them, a folder of images by class, or the id of a data set in the Hub's cache")
      .accepts(Accepts::file);
  options.value("--dataset-name", "NAME", o.dataset_name, "The configuration, where the folder holds several");
  options.value("--dataset-revision", "REVISION", o.dataset_revision, "Of an id: a branch, a tag or a commit")
      .preset("main");
  options.value("--split", "NAME", o.split, "Which split to read").preset("validation, else test, else the only one");
  options.value("--samples", "N", o.samples, "How many rows to judge at most; 0 is all").at_least(0).preset("100");
  options.toggle("--shuffle", o.shuffle, "Choose the rows at random, the same ones each time").preset("on");
  options.value("--seed", "N", o.seed, "Of the random choice").at_least(0).preset("42");
  options.value("--column", "NAME=COLUMN", o.columns, "Where the data set has what: input_column, label_column");
  options.value("--label-mapping", "FILE", o.label_mapping, "The model's id of every label name, as JSON")
      .accepts(Accepts::file);
  task_option(options, o.task);
  device_option(options, o.device);
  ep_option(options, o.ep);
  options.value("--mode", "MODE", o.mode, "onnx judges a model on a data set, compare holds it against --reference")
      .choices({"onnx", "compare"})
      .preset("onnx");
  options.value("--reference", "FILE", o.reference, "compare: the ONNX model to be like").accepts(Accepts::file);
  options.value("--input-data", "FILE", o.input_data, "compare: inputs as numpy saved them (.npz), instead of random")
      .accepts(Accepts::file);
  options.value("--tolerance", "METRIC=VALUE", o.tolerances, "compare: the worst that is still alike")
      .preset("max_abs_diff=1e-3, cosine_similarity=0.999");
  options.value("--shape-config", "FILE", o.shape_config, "compare: shapes of random inputs, as JSON")
      .accepts(Accepts::file);
  options.flag("--schema", o.schema, "What the task needs of a data set; without --task, the tasks");
  config_option(options, o.config, "A build config, whose eval section counts where an option is not typed");
  output_option(options, o.output, "Where to write the report as JSON, too");
  overwrite_option(options, o.overwrite);
  ort_option(options, o.ort);
}

Status merge_eval_config(EvalOptions& o) { return ConfigReader::merge(o); }

Status check_combination(const EvalOptions& o) {
  if (!o.model) return fail(ErrorCode::usage, "No model was given", {}, "Name one with -m");
  if (o.mode && *o.mode != "onnx" && *o.mode != "compare")
    return fail(ErrorCode::usage, "mode must be onnx or compare, not " + *o.mode, "--mode");
  if (o.compares()) {
    if (!o.reference)
      return fail(ErrorCode::usage, "--mode compare needs a model to compare with", {},
                  "Name an ONNX file with --reference");
    if (o.samples == 0 && !o.input_data)
      return fail(ErrorCode::usage, "comparing needs at least one sample", "--samples");
    return {};
  }
  const std::array<std::pair<std::string_view, bool>, 4> comparing{{{"--reference", o.reference.has_value()},
                                                                    {"--input-data", o.input_data.has_value()},
                                                                    {"--tolerance", !o.tolerances.empty()},
                                                                    {"--shape-config", o.shape_config.has_value()}}};
  for (const auto& [name, given] : comparing)
    if (given) return fail(ErrorCode::usage, fmt::format("{} is for comparing", name), {}, "Add --mode compare");
  if (!o.dataset)
    return fail(ErrorCode::usage, "No data set was given", {},
                "Name a Parquet file or a folder of images with --dataset, or compare two models with --mode compare");
  return {};
}

}  // namespace mk::cli
