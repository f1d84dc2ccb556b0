// Zhu et al. 2020, "Deformable DETR", 4.1: each query looks at a few points of each map. In 4-D tensors throughout.

#include <fmt/format.h>

#include <vector>

#include "models/rt_detr.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

struct Samples {
  std::int64_t queries, points;
};

// A map [n, size, height, width] at places [n, queries, points, 2] (x, y; 0 to 1 within it): [n, size, queries,
// points]. Between four pixels, with zeros around.
Value sample_between(const Scope& s, Value map, Value places) {
  if (!map || !places) return {};
  const bool renamed = s.builder().opset() >= 20;
  return Op(s, "GridSample", {map, sub(s, mul(s, places, 2), 1)})
      .with("mode", renamed ? "linear" : "bilinear")
      .with("padding_mode", "zeros")
      .with("align_corners", 0)
      .out(map.type(), {map.dim(0), map.dim(1), places.dim(1), places.dim(2)});
}

// The same of a map [n, size, height * width] at its nearest pixels.
Value sample_nearest(const Scope& s, Value map, Value places, const MapSize& size, const Samples& of) {
  if (!map || !places) return {};
  const auto along = [&](std::int64_t axis, std::int64_t length) {
    const Value at = add(s, mul(s, take(s, places, 3, axis), static_cast<double>(length)), 0.5);
    return cast(s, clip(s, at, 0, static_cast<double>(length - 1)), DataType::int64);
  };
  Builder& b = s.builder();
  const Value row = mul(s, along(1, size.height), b.scalar(DataType::int64, static_cast<double>(size.width)));
  const Value index = reshape(s, add(s, row, along(0, size.width)), {keep, of.queries * of.points, 1});
  const Value pixels = transpose(s, map, {0, 2, 1});
  const Value found = Op(s, "GatherND", {pixels, index})
                          .with("batch_dims", 1)
                          .out(map.type(), {map.dim(0), index ? index.dim(1) : Dim{}, map.dim(1)});
  return reshape(s, transpose(s, found, {0, 2, 1}), {keep, keep, of.queries, of.points});
}

}  // namespace

Value deformable_attention(const Scope& s, const RtDetrConfig& c, Value queries, Value boxes, Value memory,
                           const std::vector<MapSize>& sizes) {
  if (!queries || !boxes || !memory) return {};
  Builder& b = s.builder();
  constexpr std::int64_t first_opset = 16;
  if (b.opset() < first_opset && !c.discrete) {
    b.fail({ErrorCode::unsupported,
            fmt::format("deformable attention needs GridSample, which opset {} does not have", b.opset()),
            s.module().path, "Ask for opset 16 or later"});
    return {};
  }
  const std::int64_t heads = c.decoder_attention_heads, width = c.d_model, size = width / heads;
  const std::int64_t points = c.decoder_n_points, all = c.levels * points;
  const Samples samples{c.num_queries, points};

  const Value offsets =
      reshape(s, linear(s["sampling_offsets"], queries, heads * all * 2), {keep, keep, heads * all, 2});
  const Value centre = unsqueeze(s, slice(s, boxes, -1, 0, 2), 2), extent = unsqueeze(s, slice(s, boxes, -1, 2, 4), 2);
  const double scale = c.offset_scale / static_cast<double>(points);
  Value places = add(s, centre, mul(s, mul(s, offsets, scale), extent));
  places = transpose(s, reshape(s, places, {keep, keep, heads, all * 2}), {0, 2, 1, 3});
  places = reshape(s, places, {rest, c.num_queries, all, 2});

  Value weights = reshape(s, linear(s["attention_weights"], queries, heads * all), {keep, keep, heads, all});
  weights = reshape(s, transpose(s, softmax(s, weights), {0, 2, 1, 3}), {rest, 1, c.num_queries, all});

  const Value values =
      reshape(s, transpose(s, linear(s["value_proj"], memory, width), {0, 2, 1}), {rest, size, memory.dim(1).value});
  std::vector<Value> found;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto level = static_cast<std::int64_t>(i);
    const std::int64_t area = sizes[i].height * sizes[i].width;
    const Value map = slice(s, values, 2, begin, begin + area);
    const Value at = slice(s, places, 2, level * points, (level + 1) * points);
    found.push_back(c.discrete ? sample_nearest(s, map, at, sizes[i], samples)
                               : sample_between(s, reshape(s, map, {keep, keep, sizes[i].height, sizes[i].width}), at));
    begin += area;
  }
  if (found.empty() || !found.front()) return {};
  Shape shape = found.front().shape();
  shape[3] = Dim::known(all);
  const Value sampled = Op(s, "Concat", found).with("axis", 3).out(found.front().type(), std::move(shape));
  const Value sum = reduce(s, "ReduceSum", mul(s, sampled, weights), {3}, false);
  const Value x = transpose(s, reshape(s, sum, {rest, width, c.num_queries}), {0, 2, 1});
  return linear(s["output_proj"], x, width);
}

}  // namespace mk::models
