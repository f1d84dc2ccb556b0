#include "winml/quantize_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "base/json.h"

namespace mk::cli {
namespace {

constexpr std::size_t most_reasons = 8;
constexpr std::size_t worst_tensors = 20;
constexpr double least_gain = 1;  // decibels that are worth a word

// What a person calls a mode.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> labels{{{"static", "Static quantization"},
                                                                               {"dynamic", "Dynamic quantization"},
                                                                               {"rtn", "Weight-only quantization"},
                                                                               {"fp16", "FP16 conversion"}}};

std::string_view label_of(std::string_view mode) {
  for (const auto& [name, label] : labels)
    if (name == mode) return label;
  return mode;
}

std::string figure(double value, const char* format, const char* infinite = "inf") {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? infinite : "-inf";
  return fmt::format(fmt::runtime(format), value);
}

std::vector<std::string> row_of(const TensorAccuracy& tensor) {
  return {tensor.name, figure(tensor.cosine, "{:.6f}"), figure(tensor.snr_db, "{:.2f}", "equal"),
          figure(tensor.max_abs_diff, "{:.3g}")};
}

std::string table_of(std::string_view title, const std::vector<TensorAccuracy>& tensors) {
  std::vector<std::vector<std::string>> rows{{std::string(title), "cosine", "SNR (dB)", "max_abs_diff"}};
  for (const TensorAccuracy& tensor : tensors) rows.push_back(row_of(tensor));
  return columns(rows);
}

// What float16 made of values too near to zero.
std::string raised_text(const Float16Report& report) {
  const auto tensors = report.out_of_range();
  if (!tensors) return {};
  std::size_t raised = 0;
  std::uint64_t values = 0;
  std::string first;
  for (const Float16OutOfRange& tensor : *tensors) {
    if (tensor.raised == 0) continue;
    if (raised++ == 0) first = tensor.tensor;
    values += tensor.raised;
  }
  if (raised == 0) return {};
  return fmt::format("  Raised to +-6e-08, the least that there is: {} values in {}{}\n", values, first,
                     raised > 1 ? fmt::format(" and {} tensors more; --format json lists them", raised - 1) : "");
}

// Nodes by the reason they have in common: how many, and the first of them.
template <typename Node>
std::string nodes_text(std::string_view what, const std::vector<Node>& nodes) {
  std::vector<std::pair<std::string_view, std::vector<const Node*>>> groups;
  std::unordered_map<std::string_view, std::size_t> places;
  for (const Node& node : nodes) {
    const auto [at, is_new] = places.emplace(node.reason, groups.size());
    if (is_new) groups.emplace_back(node.reason, std::vector<const Node*>());
    groups[at->second].second.push_back(&node);
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(groups.size(), most_reasons); ++i) {
    const auto& [reason, members] = groups[i];
    text += fmt::format("  {} {} ({})", what, members.front()->node, members.front()->op_type);
    if (members.size() > 1) text += fmt::format(" and {} more", members.size() - 1);
    text += fmt::format(": {}\n", reason);
  }
  if (groups.size() > most_reasons)
    text += fmt::format("  {} for {} reasons more; --format json lists them\n", what, groups.size() - most_reasons);
  return text;
}

std::string step_text(const QuantizeStep& step) {
  std::string text = fmt::format("{}: {} nodes ({:.2f} s)\n", label_of(step.mode), step.nodes, step.seconds);
  if (step.qdq) {
    const QdqReport& qdq = *step.qdq;
    text += fmt::format("  QDQ nodes inserted: {}\n", qdq.quantize_linear + qdq.dequantize_linear);
    text += fmt::format("  Calibration: {}, {} samples, {}\n", step.method, step.samples, step.source);
    if (step.smooth.tensors > 0)
      text += fmt::format("  Outliers of {} tensors moved into weights\n", step.smooth.tensors);
    if (step.per_channel_gain_db.value_or(0) >= least_gain)
      text +=
          fmt::format("  --per-channel would leave {:.1f} dB less noise in the weights\n", *step.per_channel_gain_db);
    std::string others;
    for (const auto& [type, count] : qdq.others)
      others += fmt::format("{}{} {}", others.empty() ? "" : ", ", count, type);
    if (!others.empty()) text += "  Left in float: " + others + "\n";
    text += nodes_text("Skipped", qdq.skipped);
  }
  if (step.dynamic) {
    const DynamicReport& dynamic = *step.dynamic;
    text += fmt::format("  {} weights, {} DynamicQuantizeLinear, {} MatMulInteger, {} ConvInteger\n", dynamic.weights,
                        dynamic.dynamic_quantize_linear, dynamic.matmul_integer, dynamic.conv_integer);
    text += nodes_text("Skipped", dynamic.skipped);
  }
  if (step.weight_only) {
    const WeightOnlyReport& packed = *step.weight_only;
    text += fmt::format("  {} weights: {} -> {}\n", packed.weights, bytes_text(packed.bytes_before),
                        bytes_text(packed.bytes_after));
    text += nodes_text("Skipped", packed.skipped);
  }
  if (step.float16) {
    text += fmt::format("  {} tensors converted, {} casts added\n", step.float16->converted_tensors,
                        step.float16->casts_added);
    text += nodes_text("Kept in float32:", step.float16->kept);
    text += raised_text(*step.float16);
  }
  return text;
}

}  // namespace

std::string quantize_text(const QuantizeCommandReport& r, const Style& style) {
  std::string text = fmt::format("{} {}\n", style.green("Success!"), "Quantization complete");
  text += fmt::format("Output: {}\n", to_utf8(r.files.front()));
  text += fmt::format("Precision: {}\n", r.precision);
  text += fmt::format("Size: {} -> {}\n", bytes_text(r.bytes_before), bytes_text(r.bytes_after));
  for (const QuantizeStep& step : r.quantized.steps) text += step_text(step);
  if (r.quantized.accuracy) {
    text += fmt::format("Accuracy against the original, on {}\n", r.quantized.judged_on);
    text += table_of("output", r.quantized.accuracy->outputs);
    std::vector<TensorAccuracy> tensors = r.quantized.accuracy->tensors;
    if (!tensors.empty()) {
      std::ranges::stable_sort(tensors, {}, &TensorAccuracy::snr_db);
      if (tensors.size() > worst_tensors) tensors.resize(worst_tensors);
      text += table_of("worst tensors", tensors);
    }
  } else {
    text += fmt::format("Accuracy: {}\n", r.quantized.judged_on);
  }
  for (const std::string& warning : all_warnings(r.quantized)) text += style.yellow("Warning: ") + warning + "\n";
  text += fmt::format("Total time: {:.2f}s\n", r.seconds);
  return text;
}

Json quantize_json(const QuantizeCommandReport& r) {
  Json files = Json::array();
  for (const Path& file : r.files) files.push_back(to_utf8(file));
  Json json{{"model", to_utf8(r.model)}, {"output", to_utf8(r.files.front())}, {"files", std::move(files)},
            {"precision", r.precision},  {"bytes_before", r.bytes_before},     {"bytes_after", r.bytes_after}};
  json.update(to_json(r.quantized));
  json["seconds"] = r.seconds;
  return json;
}

}  // namespace mk::cli
