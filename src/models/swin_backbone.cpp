// What a Swin of either version gives to another model (transformers' SwinBackbone and Swinv2Backbone).

#include <fmt/format.h>

#include "models/swin.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

FeatureMaps swin_backbone(const Scope& s, const SwinConfig& c, Value pixels) {
  expect_image(s, pixels, {.channels = c.num_channels});
  const SwinStages stages = swin_encoder(s, c, pixels, true);
  if (stages.tokens.size() != c.depths.size() || !stages.tokens.back()) return {};
  FeatureMaps features{{}, c.stages};
  const Scope norms = s["hidden_states_norms"];
  for (const std::int64_t stage : c.stages) {
    const std::size_t index = static_cast<std::size_t>(stage > 0 ? stage - 1 : 0);
    const auto [height, width] = stages.grids[index];
    Value x = stage > 0 ? stages.tokens[index] : stages.stem;
    if (!c.second) x = layer_norm(norms[stage > 0 ? fmt::format("stage{}", stage) : "stem"], x, 1e-5);
    features.maps.push_back(reshape(s, transpose(s, x, {0, 2, 1}), {keep, keep, height, width}));
  }
  return features;
}

}  // namespace mk::models
