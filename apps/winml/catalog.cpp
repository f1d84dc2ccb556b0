// winml catalog: the models that are known to work, and where.

#include "catalog/catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.h"
#include "base/publish.h"
#include "winml/command.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

struct CatalogOptions {
  std::optional<std::string> model_type, task, ep, device;
  std::optional<Path> output;
  bool overwrite = false;
};

struct CatalogReport {
  std::vector<const CatalogEntry*> entries;
  const ExecutionProvider* ep = nullptr;
  std::optional<DeviceKind> device;
};

void describe(CatalogOptions& o, OptionTable& options) {
  options.value("--model-type", "TYPE", o.model_type, "Only models of this type (exact, in any case)");
  task_option(options, o.task);
  options.value("--ep, --execution-provider", "EP", o.ep, "Only models that were validated on this execution provider");
  options.value("-d, --device", "DEVICE", o.device, "Only models that were validated on this kind of device")
      .choices({"cpu", "gpu", "npu"});
  output_option(options, o.output, "Also write the entries to this file, as JSON");
  overwrite_option(options, o.overwrite);
}

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return upper;
}

std::vector<std::string> device_names(const CatalogSupport& support) {
  std::vector<std::string> names;
  for (const auto& device : support.devices)
    if (device) names.push_back(upper_case(name_of(*device)));
  return names;
}

Json to_json(const CatalogReport& report) {
  Json list = Json::array();
  for (const CatalogEntry* entry : report.entries) {
    Json json{{"model_id", entry->model_id}};
    if (!entry->onnx_path.empty()) json["onnx_path"] = entry->onnx_path;
    json["task"] = entry->task;
    json["model_type"] = entry->model_type;
    Json support = Json::object();
    for (const CatalogSupport& provider : entry->support) support[std::string(provider.key)] = device_names(provider);
    json["supported_eps"] = std::move(support);
    json["size_mb"] = entry->size_mb;
    list.push_back(std::move(json));
  }
  return list;
}

std::string size_text(double megabytes) {
  return megabytes < 1024 ? fmt::format("{:.0f}MB", megabytes) : fmt::format("{:.1f}GB", megabytes / 1024);
}

// The providers that list the device, or the devices of the provider: shown where only the other one was asked for.
std::string where(const CatalogEntry& entry, const CatalogReport& report) {
  std::vector<std::string> names;
  for (const CatalogSupport& support : entry.support) {
    if (report.device && support.has(*report.device)) names.push_back(upper_case(support.key));
    if (report.ep && support.ep == report.ep->short_name()) names = device_names(support);
  }
  if (report.ep) std::ranges::sort(names);
  return fmt::format("{}", fmt::join(names, " / "));
}

std::string to_text(const CatalogReport& report, const Context& context) {
  if (report.entries.empty()) return "No models match the given filters.\n";
  const bool one_filter = (report.ep != nullptr) != report.device.has_value();
  std::vector<std::vector<std::string>> rows{{"Model", "Task", "  Size", "Model Type"}};
  if (one_filter) rows[0].emplace_back(report.ep ? "Devices" : "EPs");
  for (const CatalogEntry* entry : report.entries) {
    std::string name(entry->model_id);
    if (!entry->onnx_path.empty()) name += fmt::format("/{}", entry->onnx_path);
    rows.push_back({std::move(name), std::string(entry->task), fmt::format("{:>6}", size_text(entry->size_mb)),
                    std::string(entry->model_type)});
    if (one_filter) rows.back().push_back(where(*entry, report));
  }
  return fmt::format(
      "{}\n\n{}\nSee one with `winml inspect -m MODEL`, make it with `winml build -m MODEL -o FOLDER`.\n",
      context.style.bold(fmt::format("WinML CLI Catalog | {} validated model{}", report.entries.size(),
                                     report.entries.size() == 1 ? "" : "s")),
      columns(rows, ""));
}

Result<CatalogReport> run(const CatalogOptions& o, Context& context) {
  MK_CHECK(guard_overwrite(o.output, o.overwrite));
  CatalogReport report;
  if (o.ep) {
    MK_TRY(report.ep, ep_named(*o.ep));
  }
  if (o.device) report.device = device_named(*o.device);
  report.entries = find_in_catalog({o.model_type, o.task, report.ep, report.device});
  if (o.output) {
    Publication publication;
    MK_CHECK(publication.add_text(*o.output, json_text(to_json(report)), o.overwrite));
    MK_CHECK(publication.commit());
    context.progress.note(fmt::format("Results saved to: {}", to_utf8(*o.output)));
  }
  return report;
}

}  // namespace

Command catalog_command() {
  return define<CatalogOptions, CatalogReport>({
      .name = "catalog",
      .group = "Discover",
      .summary = "List the models that are known to work, and where",
      .examples = {{"winml catalog --device npu", "What runs on an NPU, and with which execution providers"},
                   {"winml catalog -t image-classification -f json", "Image classifiers, for a script"}},
      .formats = {"text", "json"},
      .options = describe,
      .run = run,
      .text = to_text,
      .json = to_json,
  });
}

}  // namespace mk::cli
