#include "models/image.h"

#include <fmt/format.h>

namespace mk::models {

using namespace nn;

ImageInputs ImageInputs::read(const Scope& root, HeadContext& context) {
  const Value pixels = context.input("pixel_values");
  Builder& b = root.builder();
  if (!pixels)
    b.fail({ErrorCode::usage, fmt::format("{} needs pixel_values among its inputs", root.module().class_name), "", ""});
  else if (pixels.rank() != 4 || !pixels.dim(1).is_known())
    b.fail({ErrorCode::usage,
            fmt::format("pixel_values has shape {}, expected [batch, channels, height, width] with a fixed number of "
                        "channels",
                        to_string(pixels.shape())),
            "", ""});
  else if (!is_float(pixels.type()))
    b.fail({ErrorCode::usage, fmt::format("pixel_values is {}, expected floats", name_of(pixels.type())), "", ""});
  return {pixels};
}

Result<std::vector<InputSpec>> image_input_specs(const InputRequest& request, const ImageLimits& limits) {
  if (!request.config.status()) return tl::make_unexpected(request.config.status().error());
  const auto asked = [&](const char* key) -> std::optional<std::int64_t> {
    const auto found = request.shapes.values.find(key);
    return found == request.shapes.values.end() ? std::nullopt : std::optional(found->second);
  };
  constexpr std::int64_t without_any_fact = 64;
  std::array<std::int64_t, 2> size = limits.size.value_or(std::array{without_any_fact, without_any_fact});
  const PreprocessorFacts& preprocessor = request.preprocessor;
  if (!limits.fixed) {
    size[0] = preprocessor.height.value_or(size[0]);
    size[1] = preprocessor.width.value_or(size[1]);
  }
  const std::array wanted{asked("height").value_or(size[0]), asked("width").value_or(size[1])};
  if (limits.fixed && wanted != size)
    return fail(ErrorCode::usage,
                fmt::format("an image of {} x {} was asked for, and the model takes {} x {} only (height x width)",
                            wanted[0], wanted[1], size[0], size[1]),
                request.config.config().name());
  const std::int64_t channels = asked("num_channels").value_or(limits.channels);
  if (channels != limits.channels)
    return fail(ErrorCode::usage,
                fmt::format("{} channels were asked for, and the model takes {}", channels, limits.channels),
                request.config.config().name());
  if (wanted[0] < 1 || wanted[1] < 1)
    return fail(ErrorCode::usage, fmt::format("an image of {} x {} has no pixels", wanted[0], wanted[1]));
  return std::vector{InputSpec{"pixel_values", DataType::float32,
                               static_shape({request.shapes.batch_size, channels, wanted[0], wanted[1]}),
                               ValueRange{0, 1}}};
}

void expect_image(const Scope& s, Value pixels, const ImageLimits& limits) {
  Builder& b = s.builder();
  if (pixels.dim(1).value != limits.channels)
    b.fail({ErrorCode::usage,
            fmt::format("pixel_values has {} channels, and the model takes {}", pixels.dim(1).value, limits.channels),
            "", ""});
  if (!limits.fixed || !limits.size) return;
  const auto [height, width] = *limits.size;
  if (pixels.dim(2).value != height || pixels.dim(3).value != width)
    b.fail({ErrorCode::usage,
            fmt::format("pixel_values has an image of {} x {}, and the model takes {} x {} only (height x width)",
                        to_string(pixels.dim(2)), to_string(pixels.dim(3)), height, width),
            "", "Its positions are learned for that size; resize images to it"});
}

std::optional<std::array<std::int64_t, 2>> patch_grid(const Scope& s, Value pixels, std::array<std::int64_t, 2> patch) {
  if (!pixels) return std::nullopt;
  Builder& b = s.builder();
  const Dim height = pixels.dim(2), width = pixels.dim(3);
  if (height.is_known() && width.is_known() && height.value >= patch[0] && width.value >= patch[1])
    return std::array{height.value / patch[0], width.value / patch[1]};
  if (height.is_known() && width.is_known())
    b.fail({ErrorCode::usage,
            fmt::format("an image of {} x {} has no patch of {} x {}", height.value, width.value, patch[0], patch[1]),
            "", "Ask for a larger height and width"});
  else
    b.fail({ErrorCode::usage,
            fmt::format("pixel_values has shape {}, and the model needs a fixed height and width",
                        to_string(pixels.shape())),
            "", "Ask for a height and a width with --shape-config or --input-specs"});
  return std::nullopt;
}

bool expect_fixed_size(const Scope& s, Value pixels, std::string_view needed_by) {
  if (!pixels) return false;
  if (pixels.dim(2).is_known() && pixels.dim(3).is_known()) return true;
  s.builder().fail({ErrorCode::usage,
                    fmt::format("height and width of pixel_values are dynamic, and {} need them fixed", needed_by), "",
                    "Ask for a height and a width with --shape-config or --input-specs; the batch may be dynamic"});
  return false;
}

}  // namespace mk::models
