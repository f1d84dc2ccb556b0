// The report of a quantization as JSON.

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
#include "quantize/quantize.h"

namespace mk {
namespace {

constexpr std::size_t most_named = 8;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json to_json(const TensorAccuracy& tensor) {
  Json json{{"name", tensor.name},
            {"cosine_similarity", number(tensor.cosine)},
            {"least_cosine_similarity", number(tensor.least_cosine)},
            {"snr_db", number(tensor.snr_db)},
            {"max_abs_diff", number(tensor.max_abs_diff)}};
  if (!tensor.problem.empty()) json["problem"] = tensor.problem;
  return json;
}

Json list(const std::vector<TensorAccuracy>& tensors) {
  Json json = Json::array();
  for (const TensorAccuracy& tensor : tensors) json.push_back(to_json(tensor));
  return json;
}

Json list(const std::vector<SkippedNode>& nodes) {
  Json json = Json::array();
  for (const SkippedNode& node : nodes)
    json.push_back({{"node", node.node}, {"op_type", node.op_type}, {"reason", node.reason}});
  return json;
}

Json to_json(const QuantizeStep& step) {
  Json json{{"mode", step.mode}, {"nodes", step.nodes}, {"seconds", step.seconds}};
  if (step.qdq) {
    const QdqReport& qdq = *step.qdq;
    json["calibration"] = {{"method", step.method},
                           {"samples", step.samples},
                           {"source", step.source},
                           {"seconds", step.calibration_seconds}};
    json["quantize_linear"] = qdq.quantize_linear;
    json["dequantize_linear"] = qdq.dequantize_linear;
    json["smoothed_tensors"] = step.smooth.tensors;
    json["weights"] = qdq.weights;
    json["biases"] = qdq.biases;
    json["qdq_domain"] = qdq.domain;
    json["per_channel_gain_db"] = step.per_channel_gain_db ? number(*step.per_channel_gain_db) : Json(nullptr);
    json["skipped"] = list(qdq.skipped);
    json["not_quantized"] = qdq.others;
  }
  if (step.dynamic) {
    const DynamicReport& dynamic = *step.dynamic;
    json["dynamic_quantize_linear"] = dynamic.dynamic_quantize_linear;
    json["matmul_integer"] = dynamic.matmul_integer;
    json["conv_integer"] = dynamic.conv_integer;
    json["dequantize_linear"] = dynamic.dequantize_linear;
    json["weights"] = dynamic.weights;
    json["skipped"] = list(dynamic.skipped);
  }
  if (step.weight_only) {
    const WeightOnlyReport& packed = *step.weight_only;
    json["weights"] = packed.weights;
    json["weight_bytes_before"] = packed.bytes_before;
    json["weight_bytes_after"] = packed.bytes_after;
    json["skipped"] = list(packed.skipped);
  }
  if (step.float16) {
    const Float16Report& half = *step.float16;
    json["converted_tensors"] = half.converted_tensors;
    json["casts_added"] = half.casts_added;
    Json kept = Json::array();
    for (const Float16KeptNode& node : half.kept)
      kept.push_back({{"node", node.node}, {"op_type", node.op_type}, {"reason", node.reason}});
    json["kept_float32"] = std::move(kept);
    json["out_of_range"] = nullptr;
    if (const auto tensors = half.out_of_range()) {
      Json lost = Json::array();
      for (const Float16OutOfRange& tensor : *tensors)
        lost.push_back({{"tensor", tensor.tensor},
                        {"clipped", tensor.clipped},
                        {"infinite", tensor.infinite},
                        {"raised", tensor.raised}});
      json["out_of_range"] = std::move(lost);
    }
  }
  return json;
}

}  // namespace

std::vector<std::string> all_warnings(const QuantizeReport& report) {
  std::vector<std::string> warnings = report.warnings;
  for (const QuantizeStep& step : report.steps) {
    if (!step.float16) continue;
    const auto tensors = step.float16->out_of_range();
    if (!tensors) {
      warnings.push_back("values that float16 does not hold were not counted: " + tensors.error().to_string());
      continue;
    }
    std::size_t more = 0;
    for (const Float16OutOfRange& tensor : *tensors) {
      const std::uint64_t count = tensor.clipped + tensor.infinite;
      if (count == 0 || ++more > most_named) continue;
      warnings.push_back(
          fmt::format("float16 does not hold {} values of {}: they are +-65504 now", count, tensor.tensor));
    }
    if (more > most_named) warnings.push_back(fmt::format("the same of {} tensors more", more - most_named));
  }
  return warnings;
}

Json to_json(const QuantizeReport& report) {
  Json json{{"passes", Json::array()}, {"judged_on", report.judged_on}, {"accuracy", nullptr}};
  for (const QuantizeStep& step : report.steps) json["passes"].push_back(to_json(step));
  if (report.accuracy) {
    Json accuracy{{"samples", report.accuracy->samples}, {"outputs", list(report.accuracy->outputs)}};
    if (!report.accuracy->tensors.empty()) accuracy["tensors"] = list(report.accuracy->tensors);
    json["accuracy"] = std::move(accuracy);
  }
  json["judge_seconds"] = report.judge_seconds;
  json["warnings"] = all_warnings(report);
  return json;
}

}  // namespace mk
