#include <fmt/format.h>
#include <onnx/common/version.h>

#include "winml/sys.h"

namespace mk::cli {
namespace {

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
    if (!entry.problem.empty()) text += fmt::format("     Error: {}\n", style.yellow(entry.problem));
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

}  // namespace

std::string to_text(const SystemReport& r, const Context& context) {
  if (context.format == "compact") return compact_text(r);
  std::vector<std::string> parts;
  if (r.whole) parts.push_back(environment_text(r, context.style));
  if (r.devices_listed) parts.push_back(devices_text(r.devices, context.style));
  if (r.providers_listed) parts.push_back(providers_text(r.providers, context.style));
  return fmt::format("{}", fmt::join(parts, "\n"));
}

}  // namespace mk::cli
