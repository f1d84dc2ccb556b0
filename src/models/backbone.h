#pragma once
// Models that give feature maps to another one (transformers' AutoBackbone).

#include <array>
#include <cstdint>
#include <vector>

#include "models/config_reader.h"
#include "nn/builder.h"

namespace mk::models {

// The stages whose maps a backbone gives, ascending: out_features ("stem" is 0, "stage3" is 3), else out_indices, which
// may count from the end, else the last of `stages` + 1. malformed for a stage that is none.
std::vector<std::int64_t> backbone_stages(ConfigReader& fields, std::int64_t stages);

// One map per stage asked for, [batch, channels, height, width], and the stages they are of.
struct FeatureMaps {
  std::vector<nn::Value> maps;
  std::vector<std::int64_t> stages;
};

}  // namespace mk::models
