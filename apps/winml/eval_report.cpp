#include "winml/eval_report.h"

#include <fmt/format.h>

#include "base/json.h"

namespace mk::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr std::string_view schema_task = "image-classification";

struct ColumnRow {
  std::string_view name;
  std::string_view about;
  std::string_view preset;
};
constexpr std::array schema_columns{
    ColumnRow{"input_column", "The column of images", "image"},
    ColumnRow{"label_column", "The column of labels: class ids, or names", "label"},
};

template <typename T>
void put(Json& json, std::string_view key, const std::optional<T>& value) {
  if (value) json[std::string(key)] = *value;
}

Json subject_json(const EvalSubject& s) {
  Json json{{"runtime", "winml"}};
  put(json, "model_id", s.model_id);
  json["model_path"] = to_utf8(s.model_path);
  put(json, "task", s.task);
  json["device"] = s.device;
  put(json, "ep", s.ep);
  if (s.target) json["target"] = s.target->to_string();
  if (s.output_path) json["output_path"] = to_utf8(*s.output_path);
  return json;
}

// Timings as the Python tool's evaluator gives them: the whole loop, images decoded and prepared in it.
Json metrics_json(const ImageClassificationReport& r) {
  const auto samples = static_cast<double>(r.samples);
  return {{"accuracy", r.accuracy},
          {"top_5_accuracy", r.top_5 ? Json(*r.top_5) : Json(nullptr)},
          {"total_time_in_seconds", r.total_seconds},
          {"samples_per_second", samples / r.total_seconds},
          {"latency_in_seconds", r.total_seconds / samples}};
}

Json json_of(const EvalSubject& subject, const DatasetEvaluation& e) {
  Json json = subject_json(subject);
  Json dataset{{"path", e.path}};
  put(dataset, "name", e.name);
  put(dataset, "revision", e.revision);
  dataset["split"] = e.split;
  dataset["samples"] = e.result.samples;
  dataset["rows"] = e.result.rows;
  dataset["shuffle"] = e.rows.shuffle;
  dataset["seed"] = e.rows.seed;
  if (!e.columns.empty()) {
    Json columns = Json::object();
    for (const auto& [key, column] : e.columns) columns[key] = column;
    dataset["columns_mapping"] = columns;
  }
  if (e.label_mapping_file) dataset["label_mapping_file"] = to_utf8(*e.label_mapping_file);
  json["dataset"] = dataset;
  json["batch_size"] = e.result.batch;
  json["skipped"] = {{"without_label", e.result.without_label}, {"without_image", e.result.without_image}};
  json["not_finite"] = e.result.not_finite;
  json["metrics"] = metrics_json(e.result);
  return json;
}

Json json_of(const EvalSubject& subject, const ModelComparison& c) {
  Json json = subject_json(subject);
  if (c.input_data) json["input_data"] = to_utf8(*c.input_data);
  json["reference_path"] = to_utf8(c.reference_path);
  json["mode"] = "compare";
  json.update(compare_json(c.result));
  return json;
}

Json json_of(const EvalSubject&, const EvalSchema& schema) {
  if (!schema.task) return {{"tasks", {schema_task}}};
  Json columns = Json::array();
  for (const ColumnRow& row : schema_columns)
    columns.push_back({{"name", row.name}, {"description", row.about}, {"default", row.preset}});
  return {{"task", *schema.task}, {"columns", columns}, {"parameters", Json::array()}};
}

Rows subject_rows(const EvalSubject& s) {
  Rows rows;
  if (s.task) rows.push_back({"Task", *s.task});
  rows.push_back({"Model", to_utf8(s.model_path)});
  if (s.target) rows.push_back({"Device", s.target->to_string()});
  return rows;
}

std::string metric(double value) { return fmt::format("{:.4f}", value); }

std::string text_of(const EvalSubject& subject, const DatasetEvaluation& e, const Style& style) {
  const ImageClassificationReport& r = e.result;
  Rows rows = subject_rows(subject);
  rows.push_back({"Dataset", fmt::format("{}, split {}", e.path, e.split)});
  std::string samples = fmt::format("{} of {} rows", r.samples, r.rows);
  if (r.without_label > 0) samples += fmt::format(", {} left out: no label of the model", r.without_label);
  if (r.without_image > 0) samples += fmt::format(", {} left out: no image", r.without_image);
  if (r.not_finite > 0) samples += fmt::format(", {} judged wrong: NaN scores", r.not_finite);
  rows.push_back({"Samples", samples});
  Rows figures{{"accuracy", metric(r.accuracy)}};
  if (r.top_5) figures.push_back({"top_5_accuracy", metric(*r.top_5)});
  const auto count = static_cast<double>(r.samples);
  figures.push_back({"total_time_in_seconds", metric(r.total_seconds)});
  figures.push_back({"samples_per_second", metric(count / r.total_seconds)});
  figures.push_back({"latency_in_seconds", metric(r.total_seconds / count)});
  const std::string name = subject.model_id.value_or(to_utf8(subject.model_path.filename()));
  return style.bold("Evaluation: " + name) + "\n" + columns(rows) + "\n" + columns(figures);
}

std::string text_of(const EvalSubject& subject, const ModelComparison& c, const Style& style) {
  Rows rows = subject_rows(subject);
  rows.push_back({"Reference", to_utf8(c.reference_path)});
  rows.push_back({"Inputs", c.input_data ? to_utf8(*c.input_data) : "random"});
  rows.push_back({"Samples", std::to_string(c.result.samples)});
  return style.bold("Comparison") + "\n" + columns(rows) + "\n" + compare_text(c.result);
}

std::string text_of(const EvalSubject&, const EvalSchema& schema, const Style& style) {
  if (!schema.task) return fmt::format("Tasks that `winml eval` judges:\n  {}\n", schema_task);
  Rows rows;
  for (const ColumnRow& row : schema_columns)
    rows.push_back({std::string(row.name), fmt::format("{} (default: {})", row.about, row.preset)});
  return style.bold(*schema.task) + "\n--column NAME=COLUMN:\n" + columns(rows);
}

}  // namespace

bool EvalReport::yes() const {
  const auto* comparison = std::get_if<ModelComparison>(&content);
  return comparison == nullptr || comparison->result.yes();
}

Json eval_json(const EvalReport& report) {
  return std::visit([&](const auto& content) { return json_of(report.subject, content); }, report.content);
}

std::string eval_text(const EvalReport& report, const Style& style) {
  return std::visit([&](const auto& content) { return text_of(report.subject, content, style); }, report.content);
}

}  // namespace mk::cli
