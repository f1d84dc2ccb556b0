#pragma once
// The ResNets of the timm library as backbones, by name: resnet18, 34, 50, 101 and 152 and those that differ from them
// in nothing but their training. Parameters have timm's names (conv1, bn1, layer1.0.conv1 ...).

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/config_reader.h"
#include "nn/builder.h"

namespace mk::models {

struct TimmResNet {
  std::vector<std::int64_t> depths;
  bool bottleneck = true;
  bool dilated = false;   // the last stage keeps its size
  std::int64_t last = 4;  // the stage whose map is asked for

  // By its name without the tag of a training; none where the name is another network's.
  static std::optional<TimmResNet> find(std::string_view name);
  // From backbone, backbone_kwargs and dilation. unsupported where they name another network.
  static TimmResNet read(ConfigReader& fields, std::int64_t channels);

  // [batch, channels, height, width]. `norm_class` is that of all norms where it is none of torch.nn.
  nn::Value last_map(const nn::Scope& s, std::string_view norm_class, nn::Value pixels) const;
};

}  // namespace mk::models
