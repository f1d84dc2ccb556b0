// What `winml build` would make of a model for every execution provider and device: from the policies alone, no
// hardware is asked.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.h"
#include "build/pass_policy.h"
#include "build/target_policy.h"
#include "catalog/catalog.h"
#include "winml/inspect_model.h"

namespace mk::cli {
namespace {

std::optional<bool> validated(std::string_view model_id, std::string_view task, const ExecutionProvider& ep,
                              DeviceKind device) {
  bool listed = false;
  for (const CatalogEntry& entry : catalog()) {
    if (entry.model_id != model_id || entry.task != task) continue;
    listed = true;
    for (const CatalogSupport& support : entry.support)
      if (support.ep == ep.short_name() && support.has(device)) return true;
  }
  return listed ? std::optional(false) : std::nullopt;
}

std::string precision_of(const std::optional<QuantConfig>& quant) {
  if (!quant) return "fp32";
  const auto bits = [](const std::string& type) { return type.ends_with("16") ? 16 : 8; };
  return fmt::format("w{}a{}", bits(quant->weight_type), bits(quant->activation_type));
}

}  // namespace

std::vector<TargetFacts> targets_of(std::string_view model_id, std::string_view task) {
  std::vector<TargetFacts> targets;
  for (const ExecutionProvider& ep : execution_providers()) {
    for (const auto& device : ep.devices) {
      if (!device) continue;
      TargetPolicy policy;
      policy.target = {&ep, *device, {}};
      BuildConfig config;
      const auto as_asked = [&](const TargetRequest&) -> Result<Target> { return Target{&ep, *device, {}}; };
      if (!apply_target_policy(config, policy, {}, as_asked, silent_progress())) continue;
      TargetFacts& facts = targets.emplace_back(TargetFacts{ep.short_name(), *device, precision_of(config.quant)});
      facts.stages = {"export", "optimize"};
      if (config.quant) facts.stages.emplace_back("quantize");
      facts.standard_operators =
          pass_policy(policy.target, config.quant ? AfterOptimize::integers : AfterOptimize::nothing).standard_only;
      facts.validated = validated(model_id, task, ep, *device);
    }
  }
  return targets;
}

Json to_json(const std::vector<TargetFacts>& targets) {
  Json list = Json::array();
  for (const TargetFacts& t : targets)
    list.push_back({{"ep", find_ep(t.ep)->name},
                    {"device", name_of(t.device)},
                    {"precision", t.precision},
                    {"stages", t.stages},
                    {"standard_operators_only", t.standard_operators},
                    {"validated", t.validated ? Json(*t.validated) : Json(nullptr)}});
  return list;
}

// Targets that get the same model share a line.
std::string to_text(const std::vector<TargetFacts>& targets) {
  std::vector<std::vector<std::string>> rows;
  std::vector<const TargetFacts*> shown;
  for (const TargetFacts& t : targets) {
    const std::string name = fmt::format("{}/{}", t.ep, name_of(t.device)) + (t.validated == true ? "*" : "");
    const auto same = std::ranges::find_if(shown, [&](const TargetFacts* other) {
      return other->precision == t.precision && other->stages == t.stages &&
             other->standard_operators == t.standard_operators;
    });
    if (same != shown.end()) {
      rows[static_cast<std::size_t>(same - shown.begin())][2] += ", " + name;
      continue;
    }
    shown.push_back(&t);
    rows.push_back(
        {t.precision,
         fmt::format("{}{}", fmt::join(t.stages, ", "), t.standard_operators ? " (ONNX operators only)" : ""), name});
  }
  std::string text = columns(rows);
  if (std::ranges::any_of(targets, [](const TargetFacts& t) { return t.validated == true; }))
    text += "  * validated, by the catalogue\n";
  return text;
}

}  // namespace mk::cli
