#include <onnx/common/version.h>

#include <algorithm>

#include "base/json.h"
#include "winml/sys.h"

namespace mk::cli {
namespace {

// The keys of the Python tool, with what a native tool has to say in them.

Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json system_json(const SystemReport& r) {
  Json memory = r.machine.memory_bytes ? Json(*r.machine.memory_bytes >> 20) : Json(nullptr);
  Json libraries = Json::object();
  for (const char* absent : {"torch", "transformers"}) libraries[absent] = nullptr;
  libraries["onnx"] = ONNX_VERSION_STRING;
  for (const char* absent : {"optimum", "numpy", "click", "rich"}) libraries[absent] = nullptr;
  libraries["onnxruntime"] = or_null(r.runtime.version);

  const auto qnn = environment("QNN_SDK_ROOT");
  const auto qairt = environment("QAIRT_SDK_ROOT");
  Json qnn_json = {{"installed", qnn || qairt}};
  if (qnn || qairt) {
    qnn_json["path"] = qnn ? *qnn : *qairt;
    qnn_json["source"] = qnn ? "QNN_SDK_ROOT" : "QAIRT_SDK_ROOT";
  }
  const auto offers = [&](std::string_view provider) {
    return std::ranges::any_of(r.providers, [&](const ProviderEntry& e) { return e.provider == provider; });
  };
  Json tried = Json::array();
  for (const RuntimeCandidate& candidate : r.runtime.tried)
    tried.push_back(
        {{"source", candidate.source}, {"path", to_utf8(candidate.path)}, {"problem", or_null(candidate.problem)}});
  Json runtime = {{"path", r.runtime.used ? Json(to_utf8(r.runtime.used->path)) : Json(nullptr)},
                  {"source", r.runtime.used ? Json(r.runtime.used->source) : Json(nullptr)},
                  {"version", or_null(r.runtime.version)},
                  {"searched", std::move(tried)}};
  return {
      {"schema_version", 1},
      {"python", {{"version", nullptr}, {"executable", to_utf8(r.executable)}, {"implementation", "native"}}},
      {"tool", {{"name", "winml"}, {"version", MODELKIT_VERSION}, {"compiler", MODELKIT_COMPILER}}},
      {"platform",
       {{"system", r.machine.system},
        {"release", r.machine.release},
        {"machine", r.machine.machine},
        {"processor", r.machine.cpu_name}}},
      {"memory", {{"physical_total_mib", std::move(memory)}}},
      {"libraries", std::move(libraries)},
      {"torch", {{"available", false}}},
      {"runtime", std::move(runtime)},
      {"backends", {{"qnn", std::move(qnn_json)}, {"openvino", {{"installed", offers("OpenVINOExecutionProvider")}}}}},
      {"export_readiness",
       {{"onnx_export", true},
        {"qnn_ready", offers("QNNExecutionProvider")},
        {"openvino_ready", offers("OpenVINOExecutionProvider")}}},
  };
}

Json providers_json(const std::vector<ProviderEntry>& providers) {
  Json result = Json::object();
  for (const ProviderEntry& entry : providers) {
    Json devices = Json::array();
    for (const ProviderDevice& device : entry.devices)
      devices.push_back({{"device_type", device.type},
                         {"hardware_name", device.hardware_name},
                         {"vendor", device.vendor},
                         {"facts", device.facts},
                         {"device_facts", Json::array()}});
    Json row = {{"source_kind", entry.source_kind},
                {"source_tag", entry.source_tag},
                {"status", entry.status},
                {"dll_path", entry.library ? Json(to_utf8(*entry.library)) : Json(nullptr)},
                {"plugin_version", or_null(entry.version)},
                {"devices", std::move(devices)}};
    if (!entry.problem.empty())
      row.update({{"error", entry.problem}, {"error_code", nullptr}, {"error_reason", entry.problem}});
    result[entry.provider]["entries"].push_back(std::move(row));
  }
  return result;
}

Json devices_json(const std::vector<DeviceRow>& devices) {
  Json result = Json::array();
  for (const DeviceRow& device : devices) {
    Json details = Json::object();
    for (const auto& [key, value] : device.details) {
      const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
      details[key] = number ? Json(std::stoll(value)) : Json(value);
    }
    result.push_back(
        {{"priority", result.size() + 1}, {"type", device.type}, {"name", device.name}, {"details", details}});
  }
  return result;
}

}  // namespace

Json to_json(const SystemReport& r) {
  Json result = r.whole ? system_json(r) : Json::object();
  if (r.providers_listed) result["executionProviders"] = providers_json(r.providers);
  if (r.devices_listed) result["devices"] = devices_json(r.devices);
  return result;
}

}  // namespace mk::cli
