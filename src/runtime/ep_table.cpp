#include "runtime/ep_table.h"

#include <algorithm>
#include <vector>

#include "base/spelling.h"
#include "base/text.h"

namespace mk {
namespace {

using enum DeviceKind;

constexpr ExecutionProvider table[] = {
    {"CPUExecutionProvider", {"cpu"}, {cpu}, "", ""},
    {"CUDAExecutionProvider", {"cuda"}, {gpu}, "NVIDIA", ""},
    {"DmlExecutionProvider", {"dml"}, {gpu}, "", ""},
    {"MIGraphXExecutionProvider", {"migraphx"}, {gpu}, "AMD", "onnxruntime_providers_migraphx"},
    // The catalogue of models calls it trtrtx.
    {"NvTensorRTRTXExecutionProvider",
     {"nvtensorrtrtx", "nv_tensorrt_rtx", "trtrtx"},
     {gpu},
     "NVIDIA",
     "onnxruntime_providers_nv_tensorrt_rtx",
     true},
    {"OpenVINOExecutionProvider",
     {"openvino"},
     {npu, gpu, cpu},
     "Intel",
     "onnxruntime_providers_openvino_plugin",
     true},
    {"QNNExecutionProvider", {"qnn"}, {npu, gpu}, "Qualcomm", "onnxruntime_providers_qnn", true},
    {"TensorrtExecutionProvider", {"tensorrt"}, {gpu}, "NVIDIA", ""},
    {"VitisAIExecutionProvider", {"vitisai"}, {npu}, "AMD", "onnxruntime_providers_vitisai", true, true},
};

// QNN has a CPU backend too; it is for emulation, and nothing chooses it.
constexpr TargetRow rows[] = {
    {"qnn", npu, {{{"htp_performance_mode", "burst"}, {"htp_graph_finalization_optimization_mode", "3"}}}},
    {"openvino", npu},
    {"vitisai", npu},
    {"openvino", gpu},
    {"migraphx", gpu},
    {"tensorrt", gpu},
    {"nvtensorrtrtx", gpu},
    {"cuda", gpu},
    {"openvino", cpu, {}, false},
    {"qnn", gpu},
    {"dml", gpu},
    {"cpu", cpu},
};

constexpr std::string_view device_names[] = {"npu", "gpu", "cpu"};

}  // namespace

std::string_view name_of(DeviceKind device) { return device_names[static_cast<std::size_t>(device)]; }

std::optional<DeviceKind> device_named(std::string_view name) {
  for (const DeviceKind device : all_devices)
    if (equal_ignoring_case(name, name_of(device))) return device;
  return std::nullopt;
}

bool ExecutionProvider::supports(DeviceKind device) const {
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

std::string ExecutionProvider::device_list() const {
  std::string text;
  for (const auto& device : devices)
    if (device) text += (text.empty() ? "" : ", ") + std::string(name_of(*device));
  return text;
}

std::span<const ExecutionProvider> execution_providers() { return table; }
std::span<const TargetRow> target_rows() { return rows; }

const ExecutionProvider* find_ep(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const ExecutionProvider& ep : table) {
    if (equal_ignoring_case(name, ep.name)) return &ep;
    for (const std::string_view alias : ep.aliases)
      if (equal_ignoring_case(name, alias)) return &ep;
  }
  return nullptr;
}

Result<const ExecutionProvider*> ep_named(std::string_view name) {
  if (const auto* ep = find_ep(name)) return ep;
  std::string known;
  std::vector<std::string_view> words;
  for (const ExecutionProvider& ep : table) {
    known += (known.empty() ? "" : ", ") + std::string(ep.short_name());
    words.push_back(ep.short_name());
    words.push_back(ep.name);
  }
  const auto near = nearest(name, words);
  return fail(ErrorCode::usage, "unknown execution provider '" + std::string(name) + "'", {},
              near ? "Did you mean '" + std::string(*near) + "'?" : "Known are " + known + " and their full names");
}

}  // namespace mk
