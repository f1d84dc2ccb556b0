#include "runtime/target.h"

#include <algorithm>

#include "base/text.h"

namespace mk {
namespace {

constexpr std::string_view list_hint = "'winml sys --list-ep' shows what there is";

Result<TargetRequest> parse_ep(std::string_view text) {
  TargetRequest request;
  if (text.empty() || equal_ignoring_case(text, "auto")) return request;
  const auto at = text.find('@');
  const std::string_view name = text.substr(0, at);
  if (name.empty() || text.find(' ') != std::string_view::npos ||
      (at != std::string_view::npos && (at + 1 == text.size() || text.find('@', at + 1) != std::string_view::npos)))
    return fail(ErrorCode::usage, "'" + std::string(text) + "' is not NAME or NAME@SOURCE", "--ep");
  MK_TRY(request.ep, ep_named(name));
  if (at == std::string_view::npos) return request;
  const std::string source = lower_case(text.substr(at + 1));
  if (std::find(ep_sources.begin(), ep_sources.end(), source) == ep_sources.end()) {
    std::string known;
    for (const auto& tag : ep_sources) known += (known.empty() ? "" : ", ") + std::string(tag);
    return fail(ErrorCode::usage, "unknown source '" + source + "'", "--ep", "Known are " + known);
  }
  request.source = source;
  return request;
}

bool matches(const TargetRequest& request, const ExecutionProvider& ep, DeviceKind device) {
  return (!request.ep || request.ep == &ep) && (!request.device || *request.device == device) && ep.supports(device);
}

Error nothing_found(const TargetRequest& request, const std::optional<Error>& last) {
  Error error{ErrorCode::usage, {}, {}, std::string(list_hint)};
  if (request.ep) {
    error.message = "cannot deduce a device for " + std::string(request.ep->short_name()) + ": " +
                    (last ? last->message : "it is not installed");
    error.hint = "Install its plugin or set WINMLCLI_EP_PATH; " + std::string(list_hint);
  } else if (request.device) {
    error.message = "no registered execution provider for device '" + std::string(name_of(*request.device)) + "'";
    if (last) error.message += ": " + last->message;
    error.hint = "Install a plugin that has one, or name it with --ep; " + std::string(list_hint);
  } else {
    error.message = "no registered execution provider and device for an automatic choice";
  }
  return error;
}

}  // namespace

std::string Target::to_string() const { return std::string(ep->short_name()) + "/" + std::string(name_of(device)); }

Result<TargetRequest> parse_target(std::string_view ep, std::string_view device) {
  MK_TRY(auto request, parse_ep(ep));
  if (device.empty() || equal_ignoring_case(device, "auto")) return request;
  request.device = device_named(device);
  if (!request.device)
    return fail(ErrorCode::usage, "unknown device '" + std::string(device) + "'", "--device",
                "Known are auto, npu, gpu, cpu");
  return request;
}

Result<Target> resolve_target(const TargetRequest& request, const TargetProbe& probe, Progress& progress) {
  if (request.ep && request.device) {
    if (!request.ep->supports(*request.device))
      return fail(ErrorCode::usage,
                  std::string(request.ep->short_name()) + " does not support device '" +
                      std::string(name_of(*request.device)) + "'",
                  {}, "It supports " + request.ep->device_list());
    return Target{request.ep, *request.device, request.source};
  }
  const bool automatic = !request.ep && !request.device;
  std::optional<Error> last;
  bool vendors_known = true;
  for (const TargetRow& row : target_rows()) {
    const ExecutionProvider& ep = *find_ep(row.ep);
    if (!matches(request, ep, row.device) || !probe.discovered(ep)) continue;
    if (!vendors_known && automatic && row.device != DeviceKind::cpu) continue;
    if (row.needs_vendor && !ep.vendor.empty()) {
      if (!vendors_known) continue;
      const auto present = probe.has_vendor(ep.vendor);
      if (!present) {
        progress.warn("the hardware could not be listed, so only what runs on any machine is considered: " +
                      present.error().message);
        vendors_known = false;
      }
      if (!present || !*present) {
        last = Error{ErrorCode::usage, "no hardware of " + std::string(ep.vendor) + " in this machine", {}, {}};
        continue;
      }
    }
    if (const Status bound = probe.binds(ep, row.device, request.source)) {
      return Target{&ep, row.device, request.source};
    } else {
      last = bound.error();
    }
  }
  return tl::make_unexpected(nothing_found(request, last));
}

}  // namespace mk
