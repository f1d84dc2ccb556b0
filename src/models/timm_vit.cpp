// timm's VisionTransformer: vit_*_patch*_* and deit_*_patch*_*.

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <memory>

#include "models/image.h"
#include "models/timm.h"
#include "nn/activation.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;
using nn::Value;

namespace {

constexpr double eps = 1e-6;

struct Size {
  std::string_view name;
  std::int64_t width, depth, heads;
};
constexpr std::array sizes{Size{"tiny", 192, 12, 3}, Size{"small", 384, 12, 6}, Size{"base", 768, 12, 12},
                           Size{"large", 1024, 24, 16}, Size{"huge", 1280, 32, 16}};

struct TimmViT final : TimmNetwork {
  std::int64_t width = 768, depth = 12, heads = 12, inner = 3072;
  std::array<std::int64_t, 2> image{224, 224}, patch{16, 16};
  bool qkv_bias = true, class_token = true, average = false, scaled = false;

  const char* class_name() const override { return "VisionTransformer"; }
  std::optional<std::array<std::int64_t, 2>> fixed_size() const override { return image; }

  Value block(const Scope& s, Value x) const {
    const auto scale = [&](const char* name, Value y) {
      if (!scaled) return y;
      const Scope layer = s(name, "LayerScale");
      return mul(layer, y, layer.weight("gamma", {width}));
    };
    const Scope attention = s("attn", "Attention");
    const Value qkv = linear(attention["qkv"], layer_norm(s("norm1", "LayerNorm"), x, eps), 3 * width, qkv_bias);
    const auto part = [&](std::int64_t i) { return slice(attention, qkv, -1, i * width, (i + 1) * width); };
    const Value query = split_heads(attention, part(0), heads), key = split_keys(attention, part(1), heads);
    const Value value = split_heads(attention, part(2), heads);
    const double by = 1 / std::sqrt(static_cast<double>(width / heads));
    Value y = attend(attention, matmul(attention, mul(attention, query, by), key), {}, value);
    x = add(s, x, scale("ls1", linear(attention["proj"], y, width)));
    const Scope mlp = s("mlp", "Mlp");
    y = linear(mlp["fc1"], layer_norm(s("norm2", "LayerNorm"), x, eps), inner);
    y = linear(mlp["fc2"], activate(mlp["act"], "gelu", y), width);
    return add(s, x, scale("ls2", y));
  }

  Value features(const Scope& s, Value pixels) const override {
    const Scope patches = s("patch_embed", "PatchEmbed");
    Value x = conv2d(patches["proj"], pixels, {.channels = width, .kernel = patch, .stride = patch});
    x = transpose(patches, reshape(patches, x, {keep, keep, rest}), {0, 2, 1});
    if (class_token) x = concat(s, {expand_batch(s, s.weight("cls_token", {1, 1, width}), pixels), x}, 1);
    const std::int64_t tokens = image[0] / patch[0] * (image[1] / patch[1]) + (class_token ? 1 : 0);
    x = add(s, x, s.weight("pos_embed", {1, tokens, width}));
    for (std::int64_t i = 0; i < depth; ++i) x = block(s("blocks", i, "Block"), x);
    return average ? x : layer_norm(s("norm", "LayerNorm"), x, eps);
  }

  Value classify(const Scope& s, Value x, std::int64_t classes) const override {
    if (average)
      x = layer_norm(s("fc_norm", "LayerNorm"),
                     reduce_mean(s, class_token ? slice(s, x, 1, 1, to_the_end) : x, {1}, false), eps);
    else
      x = take(s, x, 1, 0);
    return linear(s["head"], x, classes);
  }
};

bool number(std::string_view& text, std::int64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 1 || value > 65536) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// "vit_base_patch16_224": a size, a patch and an image.
const Size* parse(std::string_view name, std::int64_t& patch, std::int64_t& image) {
  if (name.starts_with("vit_"))
    name.remove_prefix(4);
  else if (name.starts_with("deit_"))
    name.remove_prefix(5);
  else
    return nullptr;
  for (const Size& size : sizes) {
    std::string_view left = name;
    if (!left.starts_with(size.name)) continue;
    left.remove_prefix(size.name.size());
    if (!left.starts_with("_patch")) return nullptr;
    left.remove_prefix(6);
    if (!number(left, patch) || !left.starts_with('_')) return nullptr;
    left.remove_prefix(1);
    return number(left, image) && left.empty() ? &size : nullptr;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<TimmNetwork> timm_vit(const TimmRequest& request) {
  std::int64_t patch = 16, image = 224;
  const Size* size = parse(request.name, patch, image);
  if (!size) return nullptr;
  auto net = std::make_unique<TimmViT>();
  ConfigReader& given = request.arguments;
  only_arguments(given, {"img_size", "patch_size", "embed_dim", "depth", "num_heads", "mlp_ratio", "qkv_bias",
                         "init_values", "class_token", "global_pool", "in_chans"});
  net->image = given.pair("img_size", image);
  net->patch = given.pair("patch_size", patch);
  net->width = given.size("embed_dim", size->width);
  net->depth = given.count("depth", size->depth);
  net->heads = given.size("num_heads", size->heads);
  const double ratio = given.number("mlp_ratio", 4);
  net->inner = static_cast<std::int64_t>(static_cast<double>(net->width) * (ratio > 0 && ratio < 1e4 ? ratio : 4));
  net->qkv_bias = given.boolean("qkv_bias", true);
  net->scaled = given.has("init_values") && given.number("init_values", 0) != 0;
  net->class_token = given.boolean("class_token", true);
  const std::string pool = given.string("global_pool", "token");
  net->average = pool == "avg";
  if (pool != "avg" && (pool != "token" || !net->class_token))
    given.fail(ErrorCode::unsupported, fmt::format("model_args has global_pool \"{}\", expected token or avg", pool));
  if (net->width % net->heads != 0 || net->image[0] < net->patch[0] || net->image[1] < net->patch[1] ||
      !(ratio > 0 && ratio < 1e4))
    given.fail(ErrorCode::malformed, "the sizes in model_args do not fit together");
  return net;
}

}  // namespace mk::models
