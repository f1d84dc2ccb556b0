#include "optimize/capabilities.h"

#include <algorithm>
#include <array>

#include "base/spelling.h"
#include "base/text.h"
#include "optimize/passes.h"

namespace mk {
namespace {

// Of the catalogue, as configs name them; those that are passes by now are found there first.
struct CatalogueRow {
  std::string_view name;
  std::string_view instead;  // what does its job here; may be empty
};
constexpr std::array catalogue{
    CatalogueRow{"clamp-constant-values", "quantization mends the constants of attention masks by itself"},
    CatalogueRow{"remove-isnan-in-attention-mask", ""},
    CatalogueRow{"untie-constant-batched-matmul", ""},
    CatalogueRow{"fuse-rmsnorm", ""},
    CatalogueRow{"bias-softmax-fusion", ""},
    CatalogueRow{"bias-dropout-fusion", ""},
    CatalogueRow{"matmul-activation-fusion", ""},
    CatalogueRow{"dynamic-quantize-matmul-fusion", ""},
    CatalogueRow{"nhwc-transformer", ""},
    CatalogueRow{"nchwc-transformer", ""},
    CatalogueRow{"gather-to-slice-fusion", ""},
    CatalogueRow{"static-split-to-slice", ""},
    CatalogueRow{"conv-channel-affine-folding", ""},
    CatalogueRow{"exp-positive-scale-folding", ""},
    CatalogueRow{"gelu-singlegelu", "gelu-fusion"},
    CatalogueRow{"gelu1-singlegelu", "gelu-fusion"},
    CatalogueRow{"gelu2-singlegelu", "gelu-fusion"},
    CatalogueRow{"gelu3-singlegelu", "gelu-fusion"},
    CatalogueRow{"gelu4-singlegelu", "gelu-fusion"},
    CatalogueRow{"matmuladd-reshapegemm", ""},
    CatalogueRow{"matmuladd-conv2d4d", ""},
    CatalogueRow{"matmuladd-conv2d3d", ""},
    CatalogueRow{"matmuladd-conv2d2d", ""},
    CatalogueRow{"conv-add-batch-normalization-folding", ""},
    CatalogueRow{"add-conv-batch-normalization-folding", ""},
    CatalogueRow{"layernormalization-singlelayernorm", "layer-norm-fusion"},
    CatalogueRow{"layernormpow-singlelayernorm", "layer-norm-fusion"},
    CatalogueRow{"layernormmul-singlelayernorm", "layer-norm-fusion"},
    CatalogueRow{"highdimrtr-lowdimrtr", ""},
    CatalogueRow{"reshape-mergedreshape", ""},
    CatalogueRow{"attention-expandedattention", ""},
};

const CatalogueRow* in_catalogue(std::string_view name) {
  const auto found =
      std::find_if(catalogue.begin(), catalogue.end(), [&](const auto& row) { return row.name == name; });
  return found == catalogue.end() ? nullptr : &*found;
}

}  // namespace

std::vector<Capability> all_capabilities() {
  std::vector<Capability> list;
  for (const Pass* pass : all_passes()) {
    if (pass->category.empty()) continue;
    list.push_back({pass->name, pass->category, pass->summary, pass->by_default, pass->depends});
  }
  return list;
}

std::string capability_name(std::string_view key) {
  std::string name(key);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

CapabilitySet CapabilitySet::defaults() {
  CapabilitySet set;
  for (const Capability& capability : all_capabilities()) {
    if (capability.by_default) set.names_.emplace(capability.name);
  }
  return set;
}

Status CapabilitySet::set(std::string_view key, bool on) {
  const std::string name = capability_name(key);
  std::vector<std::string_view> known;
  for (const Capability& capability : all_capabilities()) known.push_back(capability.name);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const auto close = nearest(name, known);
    return fail(
        ErrorCode::usage, "Unknown capability '" + name + "'", {},
        close ? "Did you mean '" + std::string(*close) + "'?" : "`winml optimize --list-capabilities` lists them");
  }
  on ? static_cast<void>(names_.insert(name)) : static_cast<void>(names_.erase(name));
  return {};
}

Result<std::vector<std::string>> CapabilitySet::set_all(const std::map<std::string, bool>& values) {
  std::vector<std::string> left_out;
  for (const auto& [key, on] : values) {
    const Status done = set(key, on);
    if (done) continue;
    const CatalogueRow* row = in_catalogue(lower_case(capability_name(key)));
    if (!row) return tl::make_unexpected(done.error());
    if (!on) continue;
    const std::string what = capability_name(key) + " has no pass in this version of winml";
    left_out.push_back(what + (row->instead.empty() ? std::string() : ": " + std::string(row->instead)));
  }
  return left_out;
}

std::vector<std::string> CapabilitySet::close() {
  std::vector<std::string> added;
  const std::vector<Capability> list = all_capabilities();
  for (bool again = true; again;) {
    again = false;
    for (const Capability& capability : list) {
      if (!has(capability.name) || capability.depends.empty() || has(capability.depends)) continue;
      names_.emplace(capability.depends);
      added.emplace_back(capability.depends);
      again = true;
    }
  }
  return added;
}

}  // namespace mk
