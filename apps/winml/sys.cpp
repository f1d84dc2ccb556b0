// winml sys: the machine, the installation, devices and execution providers.

#include "winml/sys.h"

#include <fmt/format.h>

#include <onnx/common/version.h>

#include <algorithm>

#include "base/json.h"
#include "runtime/ep_devices.h"
#include "runtime/library.h"
#include "winml/command.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

struct SysOptions {
  bool list_device = false;
  bool list_ep = false;
  std::optional<Path> ort;
};

void describe(SysOptions& o, OptionTable& options) {
  options.flag("--list-device", o.list_device, "Only the devices, in order of priority");
  options.flag("--list-ep", o.list_ep, "Only the execution providers");
  ort_option(options, o.ort);
}

RuntimeFinding find_runtime(const Runtime* runtime, const Error* error, const std::optional<Path>& ort) {
  RuntimeFinding finding;
  if (runtime != nullptr) {
    finding.used = runtime->used();
    finding.version = runtime->version();
    finding.tried = runtime->tried();
  } else {
    finding.tried = runtime_candidates(runtime_places(ort));
    finding.problem = error->message;
  }
  return finding;
}

std::vector<ProviderEntry> find_providers(const Runtime& runtime, const MachineInfo& machine) {
  std::vector<ProviderEntry> entries;
  for (const std::string& name : runtime.providers()) {
    ProviderEntry entry{.provider = name};
    entry.version = runtime.version();
    if (name == "CPUExecutionProvider")
      entry.devices.push_back({.type = "CPU", .hardware_name = machine.cpu_name, .vendor = machine.cpu_vendor});
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Plugins, loaded to see what they offer.
void add_plugins(const std::shared_ptr<Runtime>& runtime, std::vector<ProviderEntry>& entries) {
  EpDevices devices([&]() -> Result<std::shared_ptr<Runtime>> { return runtime; });
  for (const PluginFinding& finding : devices.survey()) {
    const bool from_package = finding.plugin.source == "pypi";
    ProviderEntry entry{.provider = finding.ep ? std::string(finding.ep->name) : to_utf8(finding.plugin.library.stem()),
                        .source_kind = from_package ? "PyPISource" : "DirectorySource",
                        .source_tag = finding.plugin.source,
                        .status = finding.error      ? "failed"
                                  : finding.shadowed ? "shadowed"
                                                     : "primary",
                        .library = finding.plugin.library};
    if (finding.error) entry.problem = finding.error->message;
    for (const OfferedDevice& device : finding.devices) {
      entry.version = device.version;
      std::string type(name_of(device.kind));
      for (char& c : type) c = static_cast<char>(c - 'a' + 'A');
      entry.devices.push_back({std::move(type), device.hardware_name, device.hardware_vendor, {}});
    }
    entries.push_back(std::move(entry));
  }
}

std::vector<DeviceRow> find_devices(const MachineInfo& machine) {
  DeviceRow cpu{.type = "CPU", .name = machine.cpu_name.empty() ? "CPU" : machine.cpu_name};
  if (machine.cores > 0) cpu.details.emplace_back("cores", std::to_string(machine.cores));
  cpu.details.emplace_back("threads", std::to_string(machine.threads));
  cpu.details.emplace_back("architecture", machine.machine);
  return {cpu};
}

Result<SystemReport> run(const SysOptions& o, Context& context) {
  SystemReport report;
  report.whole = !o.list_device && !o.list_ep;
  report.devices_listed = report.whole || o.list_device;
  report.providers_listed = report.whole || o.list_ep;
  report.verbosity = context.verbosity;
  report.machine = machine_info();
  report.executable = executable_path();
  if (report.devices_listed) report.devices = find_devices(report.machine);
  if (!report.providers_listed) return report;

  const auto runtime = Runtime::load({.ort = o.ort, .progress = &context.progress, .verbosity = context.verbosity});
  if (!runtime && o.list_ep) return tl::make_unexpected(runtime.error());
  if (!runtime) context.progress.warn(runtime.error().to_string());
  report.runtime = find_runtime(runtime ? runtime->get() : nullptr, runtime ? nullptr : &runtime.error(), o.ort);
  if (runtime) {
    report.providers = find_providers(**runtime, report.machine);
    add_plugins(*runtime, report.providers);
  }
  return report;
}

// ---- JSON: the keys of the Python tool, with what a native tool has to say in them.

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
    if (!entry.problem.empty()) row["error"] = entry.problem;
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

Json json(const SystemReport& r) {
  Json result = r.whole ? system_json(r) : Json::object();
  if (r.providers_listed) result["executionProviders"] = providers_json(r.providers);
  if (r.devices_listed) result["devices"] = devices_json(r.devices);
  return result;
}

// ---- Text.

std::string label(std::string_view key) {
  std::string text(key);
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

std::string heading(const Style& style, std::string_view title) { return fmt::format("{}\n", style.bold(title)); }

std::string environment_text(const SystemReport& r, const Style& style) {
  std::string text = heading(style, "Environment");
  std::vector<std::vector<std::string>> rows{
      {"winml", MODELKIT_VERSION},
      {"Executable", to_utf8(r.executable)},
      {"OS", fmt::format("{} {}", r.machine.system, r.machine.release)},
      {"Machine", r.machine.machine},
      {"Memory", r.machine.memory_bytes ? fmt::format("{} MiB", *r.machine.memory_bytes >> 20) : "unknown"},
  };
  text += columns(rows);
  text += "\n" + heading(style, "ONNX Runtime");
  if (r.runtime.used) {
    text += columns({{"Version", r.runtime.version},
                     {"Library", to_utf8(r.runtime.used->path)},
                     {"Found by", r.runtime.used->source}});
  } else {
    text += fmt::format("  {}: {}\n", style.yellow("not found"), r.runtime.problem);
  }
  if (r.verbosity > 0 || !r.runtime.used) {
    std::vector<std::vector<std::string>> searched;
    for (const RuntimeCandidate& c : r.runtime.tried)
      searched.push_back({c.source, to_utf8(c.path), c.problem.empty() ? "used" : c.problem});
    text += "  Looked in:\n" + columns(searched, "    ");
  }
  return text;
}

std::string devices_text(const std::vector<DeviceRow>& devices, const Style& style) {
  std::string text = heading(style, "Available devices (priority order)");
  std::size_t priority = 0;
  for (const DeviceRow& device : devices) {
    text += fmt::format("  #{} {}  {}\n", ++priority, device.type, device.name);
    std::vector<std::string> facts;
    for (const auto& [key, value] : device.details) facts.push_back(fmt::format("{}: {}", label(key), value));
    text += fmt::format("     {}\n", style.dim(fmt::format("{}", fmt::join(facts, " | "))));
  }
  if (devices.empty()) text += "  none\n";
  return text;
}

std::string providers_text(const std::vector<ProviderEntry>& providers, const Style& style) {
  std::string text = heading(style, "Available execution providers");
  for (const ProviderEntry& entry : providers) {
    text += fmt::format("  {}  [{}] {} {}\n", entry.provider, entry.status, entry.source_tag, entry.version);
    if (entry.library) text += fmt::format("     Path: {}\n", to_utf8(*entry.library));
    if (!entry.problem.empty()) text += fmt::format("     Error: {}\n", entry.problem);
    for (const ProviderDevice& device : entry.devices)
      text += fmt::format("     {}: {}{}\n", device.type, device.hardware_name,
                          device.facts.empty() ? "" : fmt::format("  |  {}", fmt::join(device.facts, "  |  ")));
  }
  if (providers.empty()) text += "  none\n";
  return text;
}

std::string compact_text(const SystemReport& r) {
  std::string text;
  if (r.whole) {
    const std::string ort = r.runtime.version.empty() ? "not found" : r.runtime.version;
    text += fmt::format("winml: {} ({})\n", MODELKIT_VERSION, r.machine.system);
    text += fmt::format("onnx: {} | onnxruntime: {}\n", ONNX_VERSION_STRING, ort);
    if (r.machine.memory_bytes) text += fmt::format("Memory: {} MiB\n", *r.machine.memory_bytes >> 20);
    text += "Export Ready: ONNX OK\n";
    return text;
  }
  std::vector<std::string> parts;
  if (r.devices_listed) {
    for (const DeviceRow& device : r.devices) parts.push_back(fmt::format("{}: {}", device.type, device.name));
    text += parts.empty() ? "No devices found\n" : fmt::format("{}\n", fmt::join(parts, " | "));
  }
  if (r.providers_listed) {
    parts.clear();
    for (const ProviderEntry& entry : r.providers) parts.push_back(entry.provider);
    text += parts.empty() ? "EPs: none\n" : fmt::format("EPs: {}\n", fmt::join(parts, ", "));
  }
  return text;
}

std::string text(const SystemReport& r, const Context& context) {
  if (context.format == "compact") return compact_text(r);
  std::vector<std::string> parts;
  if (r.whole) parts.push_back(environment_text(r, context.style));
  if (r.devices_listed) parts.push_back(devices_text(r.devices, context.style));
  if (r.providers_listed) parts.push_back(providers_text(r.providers, context.style));
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace

Command sys_command() {
  return define<SysOptions, SystemReport>({
      .name = "sys",
      .group = "Discover",
      .summary = "Show the machine, ONNX Runtime, devices and execution providers",
      .examples = {{"winml sys", "Everything, and where ONNX Runtime was found"},
                   {"winml sys --list-ep --format json", "The execution providers, for a script"}},
      .formats = {"text", "json", "compact"},
      .options = describe,
      .run = run,
      .text = text,
      .json = json,
  });
}

}  // namespace mk::cli
