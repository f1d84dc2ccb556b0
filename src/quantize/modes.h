#pragma once
// The kinds of pass that quantize_model() runs. Internal to quantize.

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>

#include "quantize/quantize.h"

namespace mk {

inline constexpr std::uint64_t default_seed = 42;

// Everything that the passes of one run share.
struct QuantizeRun {
  Model& model;
  const QuantizeSetup& setup;
  Progress& progress;
  QuantizeReport report;
  std::unique_ptr<SampleSource> drawn;  // random samples, where a static pass had no others

  const SampleSource* samples() const { return setup.samples ? setup.samples : drawn.get(); }
};

struct QuantizeMode {
  std::string_view name;
  Status (*apply)(QuantizeRun&, const QuantConfig&, QuantizeStep&);
  bool integers;    // makes integers of floats, of which a quantized model has few
  bool calibrates;  // on samples
};

// usage for a mode that is none, listing them.
Result<const QuantizeMode*> mode_of(const QuantConfig& config);

}  // namespace mk
