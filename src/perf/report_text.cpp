#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "perf/report.h"

namespace mk {
namespace {

constexpr int label_width = 10;

std::string line(std::string_view label, std::string_view value) {
  return fmt::format("  {:<{}}  {}\n", label, label_width, value);
}

// [dynamic(1), 3, dynamic(224), 224]: the value that a dynamic dimension was given.
std::string dims_text(const Type& type, const std::vector<std::int64_t>* used) {
  if (!type.shape) return "[?]";
  std::string text;
  for (std::size_t axis = 0; axis < type.shape->size(); ++axis) {
    const Dim& dim = (*type.shape)[axis];
    std::string one = dim.is_known() ? std::to_string(dim.value) : dim.is_symbolic() ? dim.symbol : "?";
    if (!dim.is_known() && used && axis < used->size()) one = fmt::format("dynamic({})", (*used)[axis]);
    text += (axis ? ", " : "") + one;
  }
  return "[" + text + "]";
}

std::string ports_text(std::string_view label, const std::vector<Port>& ports,
                       const std::vector<std::vector<std::int64_t>>& used) {
  std::size_t name_width = 0, dims_width = 0;
  std::vector<std::string> dims;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    dims.push_back(ports[i].type.is_tensor() ? dims_text(ports[i].type, i < used.size() ? &used[i] : nullptr) : "");
    name_width = std::max(name_width, ports[i].name.size());
    dims_width = std::max(dims_width, dims.back().size());
  }
  std::string text;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const Type& type = ports[i].type;
    const std::string element = type.is_tensor() ? std::string(name_of(type.element)) : to_string(type);
    text += line(i == 0 ? label : "",
                 fmt::format("{:<{}}   {:<{}}   {}", ports[i].name, name_width, dims[i], dims_width, element));
  }
  return text;
}

std::string memory_text(const MemoryUse& use) {
  if (!use.baseline || !use.after_compile || !use.after_inference) return {};
  const auto mb = [](std::uint64_t bytes) { return static_cast<double>(bytes) / 1048576; };
  const double a = mb(*use.baseline), b = mb(*use.after_compile), c = mb(*use.after_inference);
  return fmt::format(
      "Memory:\n  RAM: {:.2f} MB -> model load: {:+.2f} MB | inference: {:+.2f} MB | total: {:+.2f} MB\n", a, b - a,
      c - b, c - a);
}

std::string baseline_text(const BaselineVerdict& verdict) {
  std::string text = fmt::format("Baseline: {:+.1f} % against {:.2f} ms (P50 of {}): {} (limit {:g} %)\n",
                                 verdict.change_percent, verdict.median_ms, to_utf8(verdict.path),
                                 verdict.slower() ? "slower" : "not slower", verdict.limit_percent);
  for (const std::string& difference : verdict.differences)
    text += fmt::format("  measured otherwise: {}\n", difference);
  return text;
}

}  // namespace

std::string perf_header(const PerfReport& r) {
  std::string text = "Model\n";
  text += line("Model", fmt::format("{} ({})", r.model_id, r.origin));
  text += line("ONNX", to_utf8(r.running_model_path));
  if (r.task) text += line("Task", *r.task);
  if (r.opset > 0) text += line("Opset", std::to_string(r.opset));
  text += ports_text("Inputs", r.inputs, r.input_dims);
  text += ports_text("Outputs", r.outputs, {});
  std::string chosen;
  for (const auto& [symbol, value] : r.dynamic)
    chosen += fmt::format("{}{}={}", chosen.empty() ? "" : ", ", symbol, value);
  if (!chosen.empty()) text += line("Dynamic", chosen);
  text += "Device\n";
  text += line("Device", r.device_name.empty() ? r.device : fmt::format("{} ({})", r.device, r.device_name));
  text += line("EP", fmt::format("{}@{} v{}", r.ep_short_name, r.ep_source.value_or("bundled"), r.ep_version));
  text += line("EP DLL", r.ep_library ? to_utf8(*r.ep_library) : "(bundled with ORT)");
  text.pop_back();  // whoever shows it ends the line
  return text;
}

std::string perf_text(const PerfReport& r) {
  const LatencyStatistics& l = r.latency;
  constexpr std::array<const char*, 8> titles{"Avg", "P50", "P90", "P95", "P99", "Min", "Max", "Std"};
  const std::array<double, 8> values{l.mean, l.p50, l.p90, l.p95, l.p99, l.min, l.max, l.std};
  std::string text = fmt::format("Latency (ms), {} runs\n", l.count);
  for (const char* title : titles) text += fmt::format("{:>10}", title);
  text += "\n";
  const int decimals = l.mean < 1 ? 4 : 2;
  for (const double value : values) text += fmt::format("{:>10.{}f}", value, decimals);
  text += "\n";
  if (r.warmup > 0)
    text += fmt::format("Warmup: {:.{}f} ms avg (first {} iterations)\n", l.warmup_mean, decimals, r.warmup);
  text += fmt::format("Throughput: {:.2f} samples/sec (batch {})\n", r.samples_per_second(), r.effective_batch_size);
  if (r.effective_batch_size != r.batch_size)
    text +=
        fmt::format("Note: the model ran with batch {}, not the {} asked for\n", r.effective_batch_size, r.batch_size);
  if (r.memory) text += memory_text(*r.memory);
  if (r.baseline) text += baseline_text(*r.baseline);
  if (r.saved_to) text += fmt::format("Results saved to: {}\n", to_utf8(*r.saved_to));
  return text;
}

}  // namespace mk
