// winml sys: the machine, the installation, devices and execution providers.

#include "winml/sys.h"

#include "base/json.h"
#include "runtime/ep_devices.h"
#include "runtime/library.h"
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

  auto runtime = Runtime::load({.ort = o.ort, .progress = &context.progress, .verbosity = context.verbosity});
  if (!runtime && o.list_ep) return tl::make_unexpected(runtime.error());
  if (!runtime) context.progress.warn(runtime.error().to_string());
  report.runtime = find_runtime(runtime ? runtime->get() : nullptr, runtime ? nullptr : &runtime.error(), o.ort);
  if (runtime) {
    EpDevices plugins([&] { return runtime; });
    report.providers = find_providers(**runtime, plugins, report.machine);
  }
  return report;
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
      .text = to_text,
      .json = to_json,
  });
}

}  // namespace mk::cli
