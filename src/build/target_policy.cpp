#include "build/target_policy.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>

#include "base/system.h"
#include "base/text.h"

namespace mk {
namespace {

constexpr std::string_view grammar =
    "Expected auto, fp32, fp16, int4, int8, int16, or w{W}a{A} with W of 4, 8, 16 and A of 8, 16 (32 with w4)";

// Digits at the start of `text`, which they leave.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || text.empty() || text[0] == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

Precision integer_precision(std::int64_t weight, std::int64_t activation) {
  return {.kind = Precision::Kind::integer,
          .weight_type = weight == 16 ? "int16" : "uint8",
          .activation_type = activation == 16 ? "uint16" : "uint8"};
}

constexpr std::int64_t weight_only_bits = 4;

QuantConfig identified(const QuantIdentity& identity) {
  QuantConfig quant;
  quant.task = identity.task;
  quant.model_id = identity.model_id;
  quant.model_type = identity.model_type;
  return quant;
}

// The target that decides, or none where nothing does: the request itself, what the machine has, or, where it has
// nothing that fits, the EP's first device.
Result<std::optional<Target>> decide_target(const TargetPolicy& policy, const ResolveTarget& resolve,
                                            Progress& progress) {
  const TargetRequest& request = policy.target;
  const bool automatic = policy.precision.kind == Precision::Kind::automatic;
  // Of an automatic precision: the device of an EP decides, and on an NPU whether the EP quantizes by itself.
  const bool precision_depends = automatic && (request.ep || request.device == DeviceKind::npu);
  if (!policy.compile && !precision_depends && !(request.ep && request.device)) return std::nullopt;
  auto found = resolve(request);
  if (found) return std::optional<Target>(std::move(*found));
  if (policy.compile || (request.ep && request.device)) return tl::make_unexpected(std::move(found).error());
  if (request.ep) {
    const Target assumed{request.ep, *request.ep->devices[0], request.source};
    progress.note(fmt::format("{} is not on this machine; taking {}", request.ep->name, assumed.to_string()));
    return std::optional<Target>(assumed);
  }
  return std::nullopt;
}

}  // namespace

Result<Precision> parse_precision(std::string_view text) {
  const std::string name = lower_case(text);
  struct Named {
    std::string_view name;
    Precision precision;
  };
  const std::array named{
      Named{"auto", {}},
      Named{"fp32", {.kind = Precision::Kind::float32}},
      Named{"fp16", {.kind = Precision::Kind::float16}},
      Named{"int4", {.kind = Precision::Kind::weight_only, .bits = weight_only_bits}},
      Named{"int8", integer_precision(8, 8)},
      Named{"int16", integer_precision(16, 16)},
  };
  for (const Named& row : named)
    if (row.name == name) return row.precision;

  const auto wrong = [&] {
    return fail(ErrorCode::usage, fmt::format("unknown precision '{}'", text), "--precision", std::string(grammar));
  };
  std::string_view rest = name;
  if (!rest.starts_with('w')) return wrong();
  rest.remove_prefix(1);
  const auto weight = take_number(rest);
  if (!weight || !rest.starts_with('a')) return wrong();
  rest.remove_prefix(1);
  const auto activation = take_number(rest);
  if (!activation || !rest.empty()) return wrong();
  const bool known_weight = *weight == 4 || *weight == 8 || *weight == 16;
  const bool known_activation = *activation == 8 || *activation == 16 || (*activation == 32 && *weight == 4);
  if (!known_weight || !known_activation) return wrong();
  if (*weight == 4) return Precision{.kind = Precision::Kind::weight_only, .bits = weight_only_bits};
  return integer_precision(*weight, *activation);
}

std::optional<QuantConfig> quant_for(const Precision& precision, std::optional<QuantConfig> quant,
                                     const QuantIdentity& identity) {
  if (precision.kind == Precision::Kind::automatic || precision.kind == Precision::Kind::float32) return std::nullopt;
  if (!quant) quant = identified(identity);
  switch (precision.kind) {
    case Precision::Kind::float16:
      quant->mode = "fp16";
      break;
    case Precision::Kind::weight_only:
      quant->mode = "rtn";
      quant->rtn_bits = precision.bits;
      break;
    default:
      quant->mode = "static";
      quant->weight_type = precision.weight_type;
      quant->activation_type = precision.activation_type;
  }
  return quant;
}

std::optional<CompileConfig> compile_for(const ExecutionProvider& ep, std::optional<DeviceKind> device) {
  if (!ep.compiles) return std::nullopt;
  CompileConfig compile;
  compile.execution_provider = std::string(ep.short_name());
  if (device) compile.device = std::string(name_of(*device));
  const std::string_view name = ep.short_name();
  if (device && (name == "qnn" || name == "openvino")) {
    std::string upper(name_of(*device));
    for (char& c : upper) c = static_cast<char>(c - 'a' + 'A');
    compile.provider_options["device_type"] = upper;
  }
  if (name == "vitisai") {
    if (const auto root = environment("RYZEN_AI_INSTALLATION_PATH")) {
      const Path xclbin = path_from_utf8(*root) / "voe-4.0-win_amd64" / "xclbins" / "phoenix" / "4x4.xclbin";
      std::error_code ignored;
      if (std::filesystem::exists(xclbin, ignored)) {
        compile.provider_options = {{"target", "X1"}, {"xclbin", to_utf8(xclbin)}, {"xlnx_enable_py3_round", "0"}};
        compile.provider_option_file_keys = {"xclbin"};
      }
    }
  }
  return compile;
}

Status apply_target_policy(BuildConfig& config, const TargetPolicy& policy, const QuantIdentity& identity,
                           const ResolveTarget& resolve, Progress& progress) {
  if (!policy.applies()) return {};
  MK_TRY(const std::optional<Target> target, decide_target(policy, resolve, progress));
  const std::optional<DeviceKind> device = target ? target->device : policy.target.device;
  const ExecutionProvider* ep = target ? target->ep : policy.target.ep;

  Precision precision = policy.precision;
  if (precision.kind == Precision::Kind::automatic && device) {
    if (ep != nullptr && ep->quantizes_itself) {
      progress.warn(
          fmt::format("{} quantizes by itself: the model stays in float; --precision chooses otherwise", ep->name));
    } else if (device == DeviceKind::npu) {
      precision = integer_precision(8, 16);
    }
  }
  const bool decided = precision.kind != Precision::Kind::automatic || device;
  if (decided) config.quant = quant_for(precision, std::move(config.quant), identity);

  if (policy.compile && target) {
    config.compile = compile_for(*target->ep, target->device);
    if (!config.compile) progress.note(fmt::format("{} has no offline compiler: no compile section", target->ep->name));
  }
  return {};
}

}  // namespace mk
