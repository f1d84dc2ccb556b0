// Swin2SR (Conde et al. 2022) as transformers' Swin2SRForImageSuperResolution: blocks of Swin v2 on pixels, and one of
// five ways to more of them.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "models/families.h"
#include "models/swin.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

constexpr std::int64_t features = 64;  // of all upsamplers

struct Swin2SRConfig : SwinConfig {
  std::int64_t num_channels_out = 3;
  std::int64_t upscale = 2;
  double img_range = 1;
  std::string resi_connection = "1conv";
  std::string upsampler = "pixelshuffle";

  static Swin2SRConfig read(const Family& family, ConfigReader& fields);
  bool centered() const { return num_channels == 3 && num_channels_out == 3; }
};

Swin2SRConfig Swin2SRConfig::read(const Family& family, ConfigReader& fields) {
  Swin2SRConfig c{SwinConfig::read(fields, family.stem)};
  c.image_size = fields.pair("image_size", 64);
  c.patch_size = fields.pair("patch_size", 1);
  c.embed_dim = fields.size("embed_dim", 180);
  c.depths = fields.depths("depths", {6, 6, 6, 6, 6, 6});
  c.num_heads = fields.sizes("num_heads", {6, 6, 6, 6, 6, 6});
  c.window_size = fields.size("window_size", 8);
  c.mlp_ratio = fields.number("mlp_ratio", 2);
  c.num_channels_out = fields.size("num_channels_out", c.num_channels);
  c.upscale = fields.size("upscale", c.upscale);
  c.img_range = fields.number("img_range", c.img_range);
  c.resi_connection = fields.string("resi_connection", c.resi_connection);
  c.upsampler = fields.string("upsampler", c.upsampler);
  if (c.patch_size != std::array<std::int64_t, 2>{1, 1})
    fields.fail(ErrorCode::unsupported, fmt::format("patch_size is {} x {}; transformers runs single pixels only",
                                                    c.patch_size[0], c.patch_size[1]));
  if (c.use_absolute_embeddings)
    fields.fail(ErrorCode::unsupported, "use_absolute_embeddings is true, which transformers cannot run either");
  if (c.resi_connection != "1conv" && c.resi_connection != "3conv")
    fields.fail(ErrorCode::malformed,
                fmt::format("resi_connection is \"{}\", expected 1conv or 3conv", c.resi_connection));
  if (c.num_heads.size() != c.depths.size())
    fields.fail(ErrorCode::malformed,
                fmt::format("depths has {} stages and num_heads {}", c.depths.size(), c.num_heads.size()));
  for (const std::int64_t heads : c.num_heads)
    if (c.embed_dim % heads != 0)
      fields.fail(ErrorCode::malformed, fmt::format("embed_dim {} is not a multiple of {} heads", c.embed_dim, heads));
  if (c.upscale > 64) fields.fail(ErrorCode::unsupported, fmt::format("upscale is {}", c.upscale));
  if (c.upsampler == "nearest+conv" && c.upscale != 4)
    fields.fail(ErrorCode::malformed, fmt::format("upscale is {}, and nearest+conv takes 4 only", c.upscale));
  const bool steps = c.upsampler == "pixelshuffle" || c.upsampler == "pixelshuffle_aux";
  if (steps && c.upscale != 3 && (c.upscale & (c.upscale - 1)) != 0)
    fields.fail(ErrorCode::malformed,
                fmt::format("upscale is {}, and {} takes 3 and powers of two", c.upscale, c.upsampler));
  if (c.upsampler == "pixelshuffle_aux" && c.num_channels != 3)
    fields.fail(ErrorCode::malformed, fmt::format("num_channels is {}, and pixelshuffle_aux takes 3", c.num_channels));
  return c;
}

Value conv3x3(const Scope& s, Value x, std::int64_t channels) {
  return conv2d(s, x, {.channels = channels, .kernel = {3, 3}, .padding = {1, 1}});
}

Value leaky(const Scope& s, Value x, float slope) { return Op(s, "LeakyRelu", {x}).with("alpha", slope).like(x); }

// nn.PixelShuffle
Value pixel_shuffle(const Scope& s, Value x, std::int64_t scale) {
  if (!x || scale == 1) return x;
  return Op(s, "DepthToSpace", {x})
      .with("blocksize", scale)
      .with("mode", "CRD")
      .out(x.type(), {x.dim(0), Dim::known(x.dim(1).value / (scale * scale)), Dim::known(x.dim(2).value * scale),
                      Dim::known(x.dim(3).value * scale)});
}

Value tokens_of(const Scope& s, const SwinConfig& c, Value x) {
  x = conv2d(s["projection"], x, {.channels = c.embed_dim, .kernel = c.patch_size, .stride = c.patch_size});
  return transpose(s, reshape(s, x, {keep, keep, rest}), {0, 2, 1});
}

Value image_of(const Scope& s, Value tokens, Grid grid) {
  return reshape(s, transpose(s, tokens, {0, 2, 1}), {keep, keep, grid[0], grid[1]});
}

Value stage(const Scope& s, const Swin2SRConfig& c, std::size_t index, Grid grid, Value x) {
  const Value before = x;
  for (std::int64_t i = 0; i < c.depths[index]; ++i)
    x = swin_block(s("layers", i, "Swin2SRLayer"), c,
                   {c.num_heads[index], i % 2 == 0 ? 0 : c.window_size / 2, 0, c.patch_grid(), grid}, x);
  x = image_of(s("patch_unembed", "Swin2SRPatchUnEmbeddings"), x, grid);
  if (c.resi_connection == "1conv") {
    x = conv3x3(s["conv"], x, c.embed_dim);
  } else {
    const Scope conv = s["conv"];
    const std::int64_t narrow = c.embed_dim / 4;
    x = leaky(conv["1"], conv3x3(conv["0"], x, narrow), 0.2F);
    x = leaky(conv["3"], conv2d(conv["2"], x, {.channels = narrow, .kernel = {1, 1}}), 0.2F);
    x = conv3x3(conv["4"], x, c.embed_dim);
  }
  return add(s, tokens_of(s("patch_embed", "Swin2SRPatchEmbeddings"), c, x), before);
}

// The mean of the training images, where they are in colour.
Value mean_of(const Scope& s) {
  Builder& b = s.builder();
  Bytes data = owned_values(std::vector<float>{0.4488F, 0.4371F, 0.4040F});
  if (b.float_type() != DataType::float32) data = cast(std::move(data), DataType::float32, b.float_type());
  return b.constant("constant/swin2sr_mean", b.float_type(), {1, 3, 1, 1}, std::move(data));
}

// Rows and columns mirrored behind the last ones, up to a multiple of the window.
Value padded(const Scope& s, const Swin2SRConfig& c, Value pixels) {
  const auto missing = [&](int axis) {
    return (c.window_size - pixels.dim(axis).value % c.window_size) % c.window_size;
  };
  const std::int64_t below = missing(2), right = missing(3);
  if (below == 0 && right == 0) return pixels;
  if (below >= pixels.dim(2).value || right >= pixels.dim(3).value) {
    s.builder().fail({ErrorCode::usage,
                      fmt::format("an image of {} x {} is too small for windows of {}", pixels.dim(2).value,
                                  pixels.dim(3).value, c.window_size),
                      "", "Ask for a larger height and width"});
    return {};
  }
  return Op(s, "Pad", {pixels, s.builder().integers({0, 0, 0, 0, 0, 0, below, right})})
      .with("mode", "reflect")
      .out(pixels.type(), {pixels.dim(0), pixels.dim(1), Dim::known(pixels.dim(2).value + below),
                           Dim::known(pixels.dim(3).value + right)});
}

Value swin2sr_model(const Scope& s, const Swin2SRConfig& c, Value pixels) {
  expect_image(s, pixels, {.channels = c.num_channels});
  if (!expect_fixed_size(s, pixels, "windows")) return {};
  Value x = padded(s, c, pixels);
  if (!x) return {};
  const Grid grid{x.dim(2).value, x.dim(3).value};
  if (c.centered()) x = sub(s, x, mean_of(s));
  if (c.img_range != 1) x = mul(s, x, c.img_range);
  const Value first = conv3x3(s["first_convolution"], x, c.embed_dim);
  const Scope patches = s("embeddings", "Swin2SREmbeddings")("patch_embeddings", "Swin2SRPatchEmbeddings");
  x = layer_norm(patches["layernorm"], tokens_of(patches, c, first), 1e-5);
  const Scope encoder = s("encoder", "Swin2SREncoder");
  for (std::size_t i = 0; i < c.depths.size(); ++i)
    x = stage(encoder("stages", static_cast<std::int64_t>(i), "Swin2SRStage"), c, i, grid, x);
  x = image_of(s("patch_unembed", "Swin2SRPatchUnEmbeddings"), layer_norm(s["layernorm"], x, c.layer_norm_eps), grid);
  return add(s, conv3x3(s["conv_after_body"], x, c.embed_dim), first);
}

Value upsample(const Scope& s, std::int64_t scale, Value x) {
  if (scale == 3) return pixel_shuffle(s["pixelshuffle"], conv3x3(s["convolution"], x, 9 * features), 3);
  for (std::int64_t i = 0; scale > 1; ++i, scale /= 2)
    x = pixel_shuffle(s[fmt::format("pixelshuffle_{}", i)],
                      conv3x3(s[fmt::format("convolution_{}", i)], x, 4 * features), 2);
  return x;
}

Value by_neighbours(const Scope& s, const Swin2SRConfig& c, Value x) {
  x = leaky(s["activation"], conv3x3(s["conv_before_upsample"], x, features), 0.01F);
  for (const char* conv : {"conv_up1", "conv_up2"}) {
    if (!x) return {};
    x = resize(s, x, {2 * x.dim(2).value, 2 * x.dim(3).value}, Interpolation::nearest);
    x = leaky(s["lrelu"], conv3x3(s[conv], x, features), 0.2F);
  }
  x = leaky(s["lrelu"], conv3x3(s["conv_hr"], x, features), 0.2F);
  return conv3x3(s["final_convolution"], x, c.num_channels_out);
}

Value crop(const Scope& s, Value x, std::int64_t height, std::int64_t width) {
  if (!x) return {};
  if (x.dim(2).value != height) x = slice(s, x, 2, 0, height);
  return x.dim(3).value != width ? slice(s, x, 3, 0, width) : x;
}

Outputs super_resolution(const Scope& root, const Swin2SRConfig& c, const ImageInputs& in) {
  const Value pixels = in.pixel_values;
  Value x = swin2sr_model(root("swin2sr", "Swin2SRModel"), c, pixels);
  if (!x) return {};
  const std::int64_t height = pixels.dim(2).value * c.upscale, width = pixels.dim(3).value * c.upscale;
  if (c.upsampler == "pixelshuffle") {
    const Scope s = root("upsample", "PixelShuffleUpsampler");
    x = leaky(s["activation"], conv3x3(s["conv_before_upsample"], x, features), 0.01F);
    x = conv3x3(s["final_convolution"], upsample(s("upsample", "Upsample"), c.upscale, x), c.num_channels_out);
  } else if (c.upsampler == "pixelshuffledirect") {
    const Scope s = root("upsample", "UpsampleOneStep");
    x = pixel_shuffle(s["pixel_shuffle"], conv3x3(s["conv"], x, c.upscale * c.upscale * c.num_channels_out), c.upscale);
  } else if (c.upsampler == "nearest+conv") {
    x = by_neighbours(root("upsample", "NearestConvUpsampler"), c, x);
  } else if (c.upsampler == "pixelshuffle_aux") {
    const Value larger = resize(root, pixels, {height, width}, Interpolation::bicubic);
    const Scope s = root("upsample", "PixelShuffleAuxUpsampler");
    x = leaky(s["activation"], conv3x3(s["conv_before_upsample"], x, features), 0.01F);
    x = conv3x3(s["conv_aux"], x, c.num_channels);
    x = leaky(s["conv_after_aux.1"], conv3x3(s["conv_after_aux.0"], x, features), 0.01F);
    x = crop(s, upsample(s("upsample", "Upsample"), c.upscale, x), height, width);
    x = conv3x3(s["final_convolution"], add(s, x, conv3x3(s["conv_bicubic"], larger, features)), c.num_channels_out);
  } else {  // the same size: noise and artefacts are taken away
    x = crop(root, conv3x3(root["final_convolution"], x, c.num_channels_out), pixels.dim(2).value, pixels.dim(3).value);
    x = add(root, pixels, x);
  }
  if (c.img_range != 1) x = div(root, x, c.img_range);
  if (c.centered()) x = add(root, x, mean_of(root));
  return {crop(root, x, std::min(height, x.dim(2).value), std::min(width, x.dim(3).value))};
}

Outputs hidden_states(const Scope& root, const Swin2SRConfig& c, const ImageInputs& in) {
  return {swin2sr_model(root, c, in.pixel_values)};
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const Swin2SRConfig c = Swin2SRConfig::read(request.family, request.config);
  return image_input_specs(request, {.channels = c.num_channels, .size = c.image_size});
}

}  // namespace

const Family swin2sr{
    .model_type = "swin2sr",
    .stem = "Swin2SR",
    .prefix = "swin2sr",
    .inputs = {"pixel_values"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"image-feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"image-to-image", "ForImageSuperResolution", {"reconstruction"}, head<super_resolution>},
        },
};

}  // namespace mk::models
