#pragma once
// ResNet (He et al. 2015) as transformers' ResNetModel, and the ResNet-D of RT-DETR (He et al. 2018) with a deep stem
// and pooled shortcuts; also as backbones.

#include <cstdint>
#include <string>
#include <vector>

#include "models/backbone.h"
#include "models/family.h"

namespace mk::models {

struct ResNetConfig {
  std::string stem = "ResNet";  // of class names
  std::int64_t num_channels = 3;
  std::int64_t embedding_size = 64;
  std::vector<std::int64_t> hidden_sizes{256, 512, 1024, 2048};
  std::vector<std::int64_t> depths{3, 4, 6, 3};
  std::int64_t num_labels = 2;
  std::string hidden_act = "relu";
  bool bottleneck = true;
  bool downsample_in_first_stage = false;
  bool downsample_in_bottleneck = false;
  bool deep = false;                 // ResNet-D
  std::string norm_class;            // of norms that are not nn.BatchNorm2d
  std::vector<std::int64_t> stages;  // of a backbone

  // Reads a configuration, or the section of one that describes a backbone; its model_type says which of the two.
  static ResNetConfig read(ConfigReader& fields);
  static ResNetConfig read(const Family&, ConfigReader& fields) { return read(fields); }
  std::string name(std::string_view suffix) const { return stem + std::string(suffix); }
};

// The map of the last stage, [batch, channels, height, width], and with `states` also those of the stem and each stage.
// `s` is the base model.
Value resnet_encoder(const Scope& s, const ResNetConfig& c, Value pixels, std::vector<Value>* states = nullptr);

// The maps of c.stages. `s` is the backbone.
FeatureMaps resnet_backbone(const Scope& s, const ResNetConfig& c, Value pixels);

}  // namespace mk::models
