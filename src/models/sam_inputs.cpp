// What SAM and its successors take, and the windows of their image encoders.

#include <fmt/format.h>

#include "models/sam.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

SamPrompts read_sam_prompts(const Scope& root, HeadContext& context) {
  Builder& b = root.builder();
  const SamPrompts in{context.input("input_points"), context.input("input_labels"), context.input("mask_input"),
                      context.input("use_mask_input")};
  const auto wrong = [&](const char* name, Value value, const char* expected) {
    b.fail({ErrorCode::usage,
            fmt::format("{} is {}, expected {}", name,
                        value ? fmt::format("{} {}", name_of(value.type()), to_string(value.shape())) : "not there",
                        expected),
            "", ""});
  };
  const bool points = in.points && is_float(in.points.type()) && in.points.rank() == 4 && in.points.dim(1).is_known() &&
                      in.points.dim(2).is_known() && in.points.dim(3).value == 2;
  if (!points)
    wrong("input_points", in.points, "floats [batch, sets, points, 2] with fixed numbers of sets and points");
  const bool integers = in.labels && (in.labels.type() == DataType::int32 || in.labels.type() == DataType::int64);
  bool same = integers && in.labels.rank() == 3;
  for (int axis = 0; same && points && axis < 3; ++axis) {
    const Dim a = in.labels.dim(axis), c = in.points.dim(axis);
    same = !a.is_known() || !c.is_known() || a.value == c.value;
  }
  if (!same) wrong("input_labels", in.labels, "int32 or int64 [batch, sets, points] as input_points has them");
  if (in.use_mask && (in.use_mask.rank() != 1 || !is_float(in.use_mask.type())))
    wrong("use_mask_input", in.use_mask, "floats [batch]");
  if (in.mask && (in.mask.rank() != 4 || in.mask.dim(1).value != 1 || !is_float(in.mask.type())))
    wrong("mask_input", in.mask, "floats [batch, 1, height, width]");
  return in;
}

Result<std::vector<InputSpec>> sam_point_specs(const InputRequest& request, const SamPromptConfig& c) {
  if (!request.config.status()) return tl::make_unexpected(request.config.status().error());
  const auto asked = [&](const char* key, std::int64_t otherwise) {
    const auto found = request.shapes.values.find(key);
    return found == request.shapes.values.end() ? otherwise : found->second;
  };
  const std::int64_t batch = request.shapes.batch_size, sets = asked("point_batch_size", 1);
  const std::int64_t points = asked("nb_points_per_image", 5);
  if (sets < 1 || points < 1)
    return fail(ErrorCode::usage, fmt::format("{} points in {} sets were asked for, expected 1 or more", points, sets));
  return std::vector<InputSpec>{
      {"input_points", DataType::float32, static_shape({batch, sets, points, 2}),
       ValueRange{0, static_cast<double>(c.image_size)}},
      {"input_labels", DataType::int32, static_shape({batch, sets, points}), ValueRange{1, 1}},
  };
}

std::vector<InputSpec> sam_mask_specs(const InputRequest& request, const SamPromptConfig& c) {
  const std::int64_t batch = request.shapes.batch_size, side = 4 * c.side();
  return {{"mask_input", DataType::float32, static_shape({batch, 1, side, side}), ValueRange{0, 1}},
          {"use_mask_input", DataType::float32, static_shape({batch}), ValueRange{0, 1}}};
}

InputSpec sam_feature_spec(const InputRequest& request, const char* name, std::int64_t channels, std::int64_t side) {
  return {name, DataType::float32, static_shape({request.shapes.batch_size, channels, side, side}), ValueRange{0, 1}};
}

void expect_sam_features(const Scope& root, Value x, const char* name, std::int64_t channels, std::int64_t side) {
  if (x && is_float(x.type()) && x.rank() == 4 && x.dim(1).value == channels && x.dim(2).value == side &&
      x.dim(3).value == side)
    return;
  root.builder().fail({ErrorCode::usage,
                       fmt::format("{} is {}, expected floats [batch, {}, {}, {}]", name,
                                   x ? to_string(x.shape()) : "not there", channels, side, side),
                       "", ""});
}

Value sam_full_size(const Scope& root, const SamPromptConfig& c, Value masks) {
  if (!masks) return {};
  const std::int64_t sets = masks.dim(1).value, count = masks.dim(2).value, size = c.image_size;
  const Value x = reshape(root, masks, {rest, sets * count, masks.dim(3).value, masks.dim(4).value});
  return reshape(root, resize(root, x, {size, size}, Interpolation::bilinear), {rest, sets, count, size, size});
}

namespace {

std::int64_t windows_over(std::int64_t length, std::int64_t size) { return (length + size - 1) / size; }

}  // namespace

Value window_partition(const Scope& s, Value x, std::int64_t size) {
  if (!x) return {};
  const std::int64_t height = x.dim(1).value, width = x.dim(2).value, channels = x.dim(3).value;
  const std::int64_t down = windows_over(height, size), across = windows_over(width, size);
  if (down * size != height || across * size != width) {
    const Value pads = s.builder().integers({0, 0, 0, 0, 0, down * size - height, across * size - width, 0});
    x = Op(s, "Pad", {x, pads}).out(x.type(), {x.dim(0), Dim::known(down * size), Dim::known(across * size), x.dim(3)});
  }
  x = reshape(s, x, {rest, size, across, size * channels});
  return reshape(s, transpose(s, x, {0, 2, 1, 3}), {rest, size, size, channels});
}

Value window_merge(const Scope& s, Value windows, std::int64_t size, std::int64_t height, std::int64_t width) {
  if (!windows) return {};
  const std::int64_t channels = windows.dim(3).value;
  const std::int64_t down = windows_over(height, size), across = windows_over(width, size);
  Value x = reshape(s, windows, {rest, across, size, size * channels});
  x = reshape(s, transpose(s, x, {0, 2, 1, 3}), {rest, down * size, across * size, channels});
  if (down * size != height) x = slice(s, x, 1, 0, height);
  return across * size != width ? slice(s, x, 2, 0, width) : x;
}

}  // namespace mk::models
