#pragma once
// rope_theta and rope_scaling of a configuration, as transformers 4.57 reads them: default, linear, dynamic, yarn,
// longrope and llama3.

#include "models/config_reader.h"
#include "nn/rope.h"

namespace mk::models {

struct RopeBase {
  double theta = 10000;
  std::int64_t head_dim = 0;
  std::int64_t max_positions = 0;
};
// `fields` is the whole (text) configuration. unsupported for a kind that is none of these, malformed for factors that
// it does not have.
nn::Rope read_rope(ConfigReader& fields, const RopeBase& base);
// The same without rope_scaling.
nn::Rope plain_rope(ConfigReader& fields, const RopeBase& base);

}  // namespace mk::models
