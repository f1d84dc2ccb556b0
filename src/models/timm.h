#pragma once
// Networks of the timm library by their names there, as transformers' timm_wrapper runs them. Parameters have timm's
// names (stem.0, stages.1.blocks.0.conv_dw ...).

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/config_reader.h"
#include "nn/builder.h"

namespace mk::models {

// What a network is made from: its name in timm without the tag of a training, and the arguments beyond it.
struct TimmRequest {
  std::string name;
  ConfigReader& arguments;   // model_args
  std::int64_t classes = 0;  // 0: no classifier
};

// One network. Reading fails the reader where an argument is not supported.
struct TimmNetwork {
  virtual ~TimmNetwork() = default;
  virtual const char* class_name() const = 0;
  virtual std::optional<std::array<std::int64_t, 2>> fixed_size() const { return std::nullopt; }
  // forward_features and forward_head; `s` is the network.
  virtual nn::Value features(const nn::Scope& s, nn::Value pixels) const = 0;
  virtual nn::Value classify(const nn::Scope& s, nn::Value features, std::int64_t classes) const = 0;
};

// Null where the name is none of theirs.
std::unique_ptr<TimmNetwork> timm_vit(const TimmRequest& request);
std::unique_ptr<TimmNetwork> timm_convnext(const TimmRequest& request);
std::unique_ptr<TimmNetwork> timm_efficientnet(const TimmRequest& request);

// unsupported where model_args has another key than these.
void only_arguments(ConfigReader& arguments, std::initializer_list<std::string_view> known);

}  // namespace mk::models
