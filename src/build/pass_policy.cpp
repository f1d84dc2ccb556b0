#include "build/pass_policy.h"

#include <array>
#include <optional>
#include <span>

namespace mk {
namespace {

// Right for every target: fewer nodes, the same operators.
constexpr std::array<std::string_view, 15> simpler{
    "constant-folding",         "conv-bn-fusion",        "conv-mul-fusion",
    "conv-add-fusion",          "matmul-bn-fusion",      "pad-fusion",
    "slice-elimination",        "expand-elimination",    "unsqueeze-elimination",
    "concat-slice-elimination", "not-where-fusion",      "double-qdq-pairs-remover",
    "transpose-optimizer",      "gemm-transpose-fusion", "gemm-sum-fusion"};
// One operator for many, that quantizes as well as its parts or better.
constexpr std::array<std::string_view, 5> operators{"layer-norm-fusion", "gelu-fusion", "fast-gelu-fusion",
                                                    "quick-gelu-fusion", "matmul-add-fusion"};
// Of com.microsoft, or hiding a MatMul from the quantizer.
constexpr std::array<std::string_view, 13> fused{
    "simplified-layer-norm-fusion",  "skip-layer-norm-fusion", "bias-skip-layer-norm-fusion",
    "embed-layer-norm-fusion",       "attention-fusion",       "bias-gelu-fusion",
    "matmul-transpose-fusion",       "matmul-scale-fusion",    "conv-activation-fusion",
    "conv-add-activation-fusion",    "gemm-activation-fusion", "gather-slice-to-split-fusion",
    "dynamic-quantize-matmul-fusion"};
// Faster on GPUs, slower on CPUs than the parts.
constexpr std::array<std::string_view, 1> fused_on_gpus{"residual-skip-layer-norm-fusion"};

struct Row {
  std::string_view ep;               // short name; empty is any
  std::optional<DeviceKind> device;  // none is any
  std::optional<bool> integers;      // AfterOptimize::integers; none is either
  bool operators, fused, standard_only;
  std::string_view reason;
};
// The first row that fits.
constexpr std::array rows{
    Row{"", DeviceKind::npu, {}, true, false, true, "NPUs take the standard operators"},
    Row{"", {}, true, true, false, false, "operators that quantize well; no fusion hides a MatMul from the quantizer"},
    Row{"cpu", {}, false, true, true, false, "the CPU provider runs com.microsoft's fused operators faster"},
    Row{"dml", {}, false, true, true, false, "DirectML runs com.microsoft's fused operators faster"},
    Row{"", {}, false, true, false, true, "this provider's compiler fuses standard operators by itself"},
};

void add(PassPolicy& policy, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    if (!policy.passes.set(name, true)) policy.unknown.push_back(name);
  }
}

}  // namespace

PassPolicy pass_policy(const TargetRequest& target, AfterOptimize next) {
  const std::string_view ep = target.ep ? target.ep->short_name() : std::string_view();
  const std::optional<DeviceKind> device = target.device ? target.device
                                           : target.ep   ? target.ep->devices[0]
                                                         : DeviceKind::cpu;
  const bool integers = next == AfterOptimize::integers;
  for (const Row& row : rows) {
    const bool is_cpu = ep.empty() && device == DeviceKind::cpu;
    const bool is_gpu = ep.empty() && device == DeviceKind::gpu;  // of any maker, through DirectML
    const std::string_view named = is_cpu ? "cpu" : is_gpu ? "dml" : ep;
    if ((!row.ep.empty() && row.ep != named) || (row.device && row.device != device)) continue;
    if (row.integers && *row.integers != integers) continue;
    PassPolicy policy{.standard_only = row.standard_only, .reason = row.reason};
    add(policy, simpler);
    if (row.operators) add(policy, operators);
    if (row.fused) add(policy, fused);
    if (row.fused && named != "cpu") add(policy, fused_on_gpus);
    return policy;
  }
  return {};
}

}  // namespace mk
