#include "models/timm_resnet.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/json.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;
using nn::Value;

namespace {

struct Known {
  std::string_view name;
  std::vector<std::int64_t> depths;
  bool bottleneck;
};
const std::vector<Known>& known() {
  static const std::vector<Known> all{
      {"resnet18", {2, 2, 2, 2}, false},  {"resnet34", {3, 4, 6, 3}, false},  {"resnet50", {3, 4, 6, 3}, true},
      {"resnet101", {3, 4, 23, 3}, true}, {"resnet152", {3, 8, 36, 3}, true},
  };
  return all;
}

struct Block {
  std::string_view norm_class;
  std::int64_t width, stride, dilation, first_dilation;
};

Scope norm(const Scope& s, const std::string& name, std::string_view norm_class) {
  return norm_class.empty() ? s[name] : s(name, norm_class);
}

Value conv_norm(const Scope& s, std::string_view norm_class, const char* number, Value x, std::int64_t channels,
                std::int64_t kernel, std::int64_t stride, std::int64_t dilation) {
  const std::int64_t padding = kernel / 2 * dilation;
  x = conv2d(s[std::string("conv") + number], x,
             {.channels = channels,
              .kernel = {kernel, kernel},
              .stride = {stride, stride},
              .padding = {padding, padding},
              .dilation = {dilation, dilation},
              .bias = false});
  return batch_norm(norm(s, std::string("bn") + number, norm_class), x);
}

Value block(const Scope& s, bool bottleneck, const Block& c, Value x) {
  const std::int64_t channels = bottleneck ? 4 * c.width : c.width;
  const auto conv = [&](const char* number, Value y, std::int64_t width, std::int64_t kernel, std::int64_t stride,
                        std::int64_t dilation) {
    return conv_norm(s, c.norm_class, number, y, width, kernel, stride, dilation);
  };
  Value y = x;
  if (bottleneck) {
    y = unary(s["act1"], "Relu", conv("1", y, c.width, 1, 1, 1));
    y = unary(s["act2"], "Relu", conv("2", y, c.width, 3, c.stride, c.first_dilation));
    y = conv("3", y, channels, 1, 1, 1);
  } else {
    y = unary(s["act1"], "Relu", conv("1", y, c.width, 3, c.stride, c.first_dilation));
    y = conv("2", y, channels, 3, 1, c.dilation);
  }
  if (x && (x.dim(1).value != channels || c.stride != 1)) {
    x = conv2d(s["downsample.0"], x,
               {.channels = channels, .kernel = {1, 1}, .stride = {c.stride, c.stride}, .bias = false});
    x = batch_norm(c.norm_class.empty() ? s["downsample.1"] : s("downsample", 1, c.norm_class), x);
  }
  return unary(s[bottleneck ? "act3" : "act2"], "Relu", add(s, y, x));
}

}  // namespace

std::optional<TimmResNet> TimmResNet::find(std::string_view name) {
  const auto found = std::find_if(known().begin(), known().end(), [&](const Known& row) { return row.name == name; });
  if (found == known().end()) return std::nullopt;
  return TimmResNet{.depths = found->depths, .bottleneck = found->bottleneck};
}

TimmResNet TimmResNet::read(ConfigReader& fields, std::int64_t channels) {
  TimmResNet c;
  const std::string full = fields.string("backbone", "resnet50");
  const std::string name = full.substr(0, full.find('.'));  // the rest says how it was trained
  const auto found = find(name);
  if (!found) {
    fields.fail(ErrorCode::unsupported,
                fmt::format("backbone is \"{}\": of timm's backbones only resnet18, resnet34, resnet50, resnet101 and "
                            "resnet152 are supported",
                            full));
    return c;
  }
  c = *found;
  ConfigReader options = fields.section("backbone_kwargs");
  for (const auto& [key, value] : options.config().json().items())
    if (key != "output_stride" && key != "out_indices" && key != "in_chans")
      fields.fail(ErrorCode::unsupported, fmt::format("backbone_kwargs has {}, which is not supported", key));
  const bool dilation = fields.boolean("dilation", false);
  const std::int64_t stride = options.integer("output_stride", dilation ? 16 : 32);
  c.dilated = stride == 16;
  if (stride != 16 && stride != 32)
    fields.fail(ErrorCode::unsupported, fmt::format("backbone_kwargs has output_stride {}, expected 16 or 32", stride));
  const std::vector<std::int64_t> stages = options.indices("out_indices", {1, 2, 3, 4});
  if (!stages.empty()) c.last = *std::max_element(stages.begin(), stages.end());
  if (c.last < 1 || c.last > 4)
    fields.fail(ErrorCode::unsupported,
                fmt::format("backbone_kwargs has out_indices up to {}, expected 1 to 4", c.last));
  if (options.size("in_chans", channels) != channels)
    fields.fail(ErrorCode::unsupported, "backbone_kwargs has in_chans other than num_channels");
  return c;
}

Value TimmResNet::last_map(const Scope& s, std::string_view norm_class, Value pixels) const {
  Value x = conv2d(s["conv1"], pixels,
                   {.channels = 64, .kernel = {7, 7}, .stride = {2, 2}, .padding = {3, 3}, .bias = false});
  x = unary(s["act1"], "Relu", batch_norm(norm(s, "bn1", norm_class), x));
  x = max_pool2d(s["maxpool"], x, 3, 2, 1);
  for (std::int64_t stage = 1; stage <= last; ++stage) {
    const bool wide = dilated && stage == 4;
    Block c{.norm_class = norm_class,
            .width = std::int64_t{32} << stage,
            .stride = stage == 1 || wide ? 1 : 2,
            .dilation = wide ? 2 : 1,
            .first_dilation = 1};
    for (std::int64_t i = 0; i < depths[static_cast<std::size_t>(stage - 1)]; ++i) {
      x = block(s(fmt::format("layer{}", stage), i, bottleneck ? "Bottleneck" : "BasicBlock"), bottleneck, c, x);
      c.stride = 1;
      c.first_dilation = c.dilation;
    }
  }
  return x;
}

}  // namespace mk::models
