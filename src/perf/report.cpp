#include "perf/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.h"

namespace mk {
namespace {

double rounded(double value, int decimals) {
  const double scale = std::pow(10, decimals);
  return std::round(value * scale) / scale;
}

Json names(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& port : ports) list.push_back(port.name);
  return list;
}

// A number, a symbol or null per dimension; nothing where the rank is not known.
Json shapes(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& port : ports) {
    Json dims = Json::array();
    if (port.type.shape)
      for (const Dim& dim : *port.type.shape)
        dims.push_back(dim.is_known() ? Json(dim.value) : dim.is_symbolic() ? Json(dim.symbol) : Json(nullptr));
    list.push_back(std::move(dims));
  }
  return list;
}

std::string type_name(const Port& port) {
  return port.type.is_tensor() ? std::string(name_of(port.type.element)) : to_string(port.type);
}

Json types(const std::vector<Port>& ports) {
  Json list = Json::array();
  for (const Port& port : ports) list.push_back(type_name(port));
  return list;
}

constexpr double not_measured = std::numeric_limits<double>::quiet_NaN();

Json megabytes(double bytes) { return std::isnan(bytes) ? Json(nullptr) : Json(rounded(bytes / 1048576, 2)); }

Json memory_json(const MemoryUse& use) {
  const auto bytes = [](const std::optional<std::uint64_t>& value) {
    return value ? static_cast<double>(*value) : not_measured;
  };
  const double a = bytes(use.baseline), b = bytes(use.after_compile), c = bytes(use.after_inference);
  const double peak = std::isnan(a + b + c) ? not_measured : std::max({a, b, c});
  Json json = Json::object();
  json["rss_baseline_mb"] = megabytes(a);
  json["rss_after_compile_mb"] = megabytes(b);
  json["rss_after_inference_mb"] = megabytes(c);
  json["rss_checkpoint_peak_mb"] = megabytes(peak);
  json["rss_model_load_delta_mb"] = megabytes(b - a);
  json["rss_inference_delta_mb"] = megabytes(c - b);
  json["rss_total_delta_mb"] = megabytes(c - a);
  for (const char* prefix : {"vram_local_", "vram_shared_"})
    for (const char* suffix : {"baseline_mb", "after_compile_mb", "after_inference_mb", "checkpoint_peak_mb",
                               "model_load_delta_mb", "inference_delta_mb", "total_delta_mb"})
      json[std::string(prefix) + suffix] = nullptr;
  return json;
}

Json baseline_json(const BaselineVerdict& verdict) {
  return {{"path", to_utf8(verdict.path)},
          {"p50", rounded(verdict.median_ms, 3)},
          {"change_percent", rounded(verdict.change_percent, 2)},
          {"limit_percent", verdict.limit_percent},
          {"slower", verdict.slower()},
          {"differences", verdict.differences}};
}

}  // namespace

double PerfReport::samples_per_second() const {
  return batches_per_second() * static_cast<double>(effective_batch_size);
}

double PerfReport::batches_per_second() const { return latency.mean > 0 ? 1000 / latency.mean : 0; }

Json perf_json(const PerfReport& r) {
  Json options = Json::object();
  for (const auto& [key, value] : r.ep_options) options[key] = value;
  Json dynamic = Json::object();
  for (const auto& [symbol, value] : r.dynamic) dynamic[symbol] = value;
  Json samples = Json::array();
  for (const double sample : r.samples_ms) samples.push_back(rounded(sample, 3));
  const LatencyStatistics& l = r.latency;
  const auto ms = [](double value) { return rounded(value, 3); };

  Json json = {
      {"schema_version", 2},
      {"benchmark_info",
       {{"runtime", "winml"},
        {"model_id", r.model_id},
        {"running_model_path", to_utf8(r.running_model_path)},
        {"task", r.task ? Json(*r.task) : Json(nullptr)},
        {"device", r.device},
        {"ep", r.ep},
        {"ep_source", r.ep_source ? Json(*r.ep_source) : Json(nullptr)},
        {"ep_options", std::move(options)},
        {"precision", r.precision},
        {"iterations", l.count},
        {"warmup", r.warmup},
        {"duration_sec", r.duration ? Json(*r.duration) : Json(nullptr)},
        {"batch_size", r.batch_size},
        {"effective_batch_size", r.effective_batch_size},
        {"timestamp", r.timestamp}}},
      {"model_info",
       {{"input_names", names(r.inputs)},
        {"output_names", names(r.outputs)},
        {"input_shapes", shapes(r.inputs)},
        {"output_shapes", shapes(r.outputs)},
        {"input_types", types(r.inputs)},
        {"precision", r.detected_precision ? Json(*r.detected_precision) : Json(nullptr)},
        {"dynamic_dims", std::move(dynamic)}}},
      {"latency_ms",
       {{"mean", ms(l.mean)},
        {"min", ms(l.min)},
        {"max", ms(l.max)},
        {"p50", ms(l.p50)},
        {"p90", ms(l.p90)},
        {"p95", ms(l.p95)},
        {"p99", ms(l.p99)},
        {"std", ms(l.std)},
        {"warmup_mean", r.warmup > 0 ? Json(ms(l.warmup_mean)) : Json(nullptr)}}},
      {"throughput",
       {{"samples_per_sec", rounded(r.samples_per_second(), 2)},
        {"batches_per_sec", rounded(r.batches_per_second(), 2)}}},
      {"raw_samples_ms", std::move(samples)},
  };
  if (r.memory) json["memory"] = memory_json(*r.memory);
  if (r.baseline) json["baseline"] = baseline_json(*r.baseline);
  return json;
}

Result<Baseline> read_baseline(const Path& path) {
  MK_TRY(auto json, read_json(path, ErrorCode::usage));
  const JsonView median = JsonView(json, to_utf8(path), ErrorCode::usage).at("latency_ms").at("p50");
  MK_TRY(const double value, median.number());
  if (!(value > 0)) return tl::make_unexpected(median.expected("a latency above 0"));
  return Baseline{path, value, std::make_shared<const Json>(std::move(json))};
}

BaselineVerdict judge_against(const Baseline& baseline, const PerfReport& report, double limit_percent) {
  const double change = (report.latency.p50 / baseline.median_ms - 1) * 100;
  BaselineVerdict verdict{baseline.path, baseline.median_ms, change, limit_percent, {}};
  const JsonView before(*baseline.document, {});
  const Json now = perf_json(report);
  const auto compare = [&](const char* section, const char* key) {
    const JsonView was = before.at(section).at(key);
    const Json& is = now[section][key];
    if (!was.is_null() && was.json() != is)
      verdict.differences.push_back(fmt::format("{} is {}, was {}", key, is.dump(), was.json().dump()));
  };
  for (const char* key : {"device", "ep", "effective_batch_size"}) compare("benchmark_info", key);
  for (const char* key : {"input_shapes", "dynamic_dims"}) compare("model_info", key);
  return verdict;
}

}  // namespace mk
