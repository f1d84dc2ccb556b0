// Frequencies are computed in float32 like the original's: at position 100,000 their last bits show.

#include "models/rope_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace mk::models {
namespace {

using nn::Rope;
constexpr float full_turn = 2 * std::numbers::pi_v<float>;

struct Scaling {
  ConfigReader& config;  // the whole configuration
  ConfigReader& fields;  // rope_scaling
  const RopeBase& base;

  float factor() const {
    const double value = fields.number("factor", 0);
    if (value <= 0) fields.fail(ErrorCode::malformed, "rope_scaling has no factor above 0");
    return static_cast<float>(value);
  }
};

void linear(Rope& rope, const Scaling& scaling) {
  for (float& frequency : rope.frequencies) frequency /= scaling.factor();
}

void dynamic(Rope& rope, const Scaling& scaling) {
  rope.ntk_factor = static_cast<double>(scaling.factor());
  rope.base = scaling.base.theta;
  rope.limit = scaling.base.max_positions;
  if (rope.dims <= 2) scaling.fields.fail(ErrorCode::malformed, "rope_scaling \"dynamic\" needs heads wider than 2");
}

// Peng et al. 2023.
void yarn(Rope& rope, const Scaling& scaling) {
  ConfigReader& fields = scaling.fields;
  const double factor = static_cast<double>(scaling.factor()), mscale = fields.number("mscale", 0),
               mscale_all = fields.number("mscale_all_dim", 0);
  const auto amplitude = [&](double weight) { return factor <= 1 ? 1.0 : 0.1 * weight * std::log(factor) + 1; };
  const double otherwise = mscale != 0 && mscale_all != 0 ? amplitude(mscale) / amplitude(mscale_all) : amplitude(1);
  rope.amplitude = fields.number("attention_factor", otherwise);

  const auto positive = [&](const char* key, double preset) {
    const double value = fields.number(key, preset);
    return value == 0 ? preset : value;
  };
  const double positions =
      positive("original_max_position_embeddings", static_cast<double>(scaling.base.max_positions));
  const double dims = static_cast<double>(rope.dims);
  const auto dimension = [&](double rotations) {
    return dims * std::log(positions / (rotations * 2 * std::numbers::pi)) / (2 * std::log(scaling.base.theta));
  };
  double low = dimension(positive("beta_fast", 32)), high = dimension(positive("beta_slow", 1));
  if (fields.boolean("truncate", true)) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dims - 1);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < rope.frequencies.size(); ++i) {
    const float ramp =
        std::clamp((static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low), 0.0F, 1.0F);
    const float kept = 1 - ramp, extrapolated = rope.frequencies[i];
    rope.frequencies[i] = extrapolated / static_cast<float>(factor) * (1 - kept) + extrapolated * kept;
  }
}

void longrope(Rope& rope, const Scaling& scaling) {
  ConfigReader& fields = scaling.fields;
  const auto positions = static_cast<double>(scaling.base.max_positions);
  const double original = scaling.config.number("original_max_position_embeddings", 0);
  double factor = fields.number("factor", 1);
  if (original > 0) factor = positions / original;
  rope.limit = static_cast<std::int64_t>(original > 0 ? original : positions);
  const double otherwise =
      factor <= 1 || rope.limit < 2 ? 1 : std::sqrt(1 + std::log(factor) / std::log(static_cast<double>(rope.limit)));
  rope.amplitude = fields.number("attention_factor", otherwise);
  const auto scaled = [&](const char* key) {
    const std::vector<double> factors = fields.numbers(key);
    std::vector<float> frequencies = rope.frequencies;
    if (factors.size() != frequencies.size()) {
      fields.fail(ErrorCode::malformed, fmt::format("rope_scaling has {} numbers in {}, expected {}", factors.size(),
                                                    key, frequencies.size()));
      return frequencies;
    }
    for (std::size_t i = 0; i < factors.size(); ++i) frequencies[i] /= static_cast<float>(factors[i]);
    return frequencies;
  };
  std::vector<float> far = scaled("long_factor");
  rope.frequencies = scaled("short_factor");
  if (far != rope.frequencies) rope.long_frequencies = std::move(far);
}

// Llama 3.1: long waves slow down by the factor, short ones stay, those between are mixed.
void llama3(Rope& rope, const Scaling& scaling) {
  ConfigReader& fields = scaling.fields;
  const float factor = scaling.factor();
  const auto low = static_cast<float>(fields.number("low_freq_factor", 0)),
             high = static_cast<float>(fields.number("high_freq_factor", 0)),
             positions = static_cast<float>(fields.number("original_max_position_embeddings", 0));
  if (low <= 0 || high <= low || positions <= 0) {
    fields.fail(ErrorCode::malformed,
                "rope_scaling \"llama3\" needs low_freq_factor, a higher high_freq_factor and "
                "original_max_position_embeddings");
    return;
  }
  for (float& frequency : rope.frequencies) {
    const float wave = full_turn / frequency;
    if (wave < positions / high) continue;
    if (wave > positions / low) {
      frequency /= factor;
      continue;
    }
    const float smooth = (positions / wave - low) / (high - low);
    frequency = (1 - smooth) * frequency / factor + smooth * frequency;
  }
}

struct Kind {
  std::string_view name;
  void (*apply)(Rope&, const Scaling&);
};
constexpr std::array kinds{Kind{"default", nullptr}, Kind{"linear", linear},     Kind{"dynamic", dynamic},
                           Kind{"yarn", yarn},       Kind{"longrope", longrope}, Kind{"llama3", llama3}};

}  // namespace

Rope plain_rope(ConfigReader& fields, const RopeBase& base) {
  Rope rope;
  const double part = fields.number("partial_rotary_factor", 1);
  rope.dims = static_cast<std::int64_t>(static_cast<double>(base.head_dim) * part);
  if (rope.dims < 2 || rope.dims > base.head_dim || rope.dims % 2 != 0 || !(base.theta > 0)) {
    fields.fail(ErrorCode::malformed, fmt::format("heads of {} cannot rotate in {} dimensions with rope_theta {}",
                                                  base.head_dim, rope.dims, base.theta));
    rope.dims = 2;
  }
  for (std::int64_t i = 0; i < rope.dims; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(rope.dims);
    rope.frequencies.push_back(1 / std::pow(static_cast<float>(base.theta), exponent));
  }
  return rope;
}

Rope read_rope(ConfigReader& fields, const RopeBase& base) {
  Rope rope = plain_rope(fields, base);
  if (!fields.has("rope_scaling")) return rope;
  ConfigReader scaling = fields.section("rope_scaling");
  if (!fields.status()) return rope;
  const std::string name = scaling.string("rope_type", scaling.string("type", "default"));
  const auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& one) { return one.name == name; });
  if (kind == kinds.end())
    fields.fail(ErrorCode::unsupported, fmt::format("rope_scaling has the kind \"{}\"", name),
                "Kinds that can be exported are default, linear, dynamic, yarn, longrope and llama3");
  else if (kind->apply)
    kind->apply(rope, {fields, scaling, base});
  return rope;
}

}  // namespace mk::models
