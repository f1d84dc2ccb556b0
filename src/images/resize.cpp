#include "images/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <string>

namespace mk {
namespace {

constexpr int precision = 32 - 8 - 2;  // bits of a weight: 8 for the sample, 2 for the overshoot of negative lobes
constexpr std::int32_t half = 1 << (precision - 1);

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double triangle(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double hamming(double x) {
  x = std::abs(x);
  if (x == 0.0) return 1.0;
  if (x >= 1.0) return 0.0;
  x *= std::numbers::pi;
  return std::sin(x) / x * (static_cast<double>(0.54F) + static_cast<double>(0.46F) * std::cos(x));
}

// Keys (1981) with a = -0.5.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return -3.0 <= x && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

struct Kernel {
  double (*weight)(double);
  double support;
};

Kernel kernel_of(Resample filter) {
  switch (filter) {
    case Resample::lanczos:
      return {lanczos, 3.0};
    case Resample::bilinear:
      return {triangle, 1.0};
    case Resample::bicubic:
      return {cubic, 2.0};
    case Resample::box:
      return {box, 0.5};
    case Resample::hamming:
      return {hamming, 1.0};
    case Resample::nearest:
      break;
  }
  return {box, 0.5};
}

// Towards zero after adding half, as Pillow's C does; not std::lround.
int round_half_up(double x) {
  const double raised = x + 0.5;
  return static_cast<int>(raised);
}

// For each output position: the first input position and its weights.
struct Taps {
  struct Span {
    int first;
    int count;
  };
  std::vector<Span> spans;
  std::vector<std::int32_t> weights;  // stride a span
  std::size_t stride;

  const std::int32_t* of(int i) const { return weights.data() + static_cast<std::size_t>(i) * stride; }
};

Taps make_taps(int in, int out, const Kernel& kernel) {
  const double scale = static_cast<double>(in) / out;
  const double stretch = std::max(scale, 1.0);
  const double support = kernel.support * stretch;
  const double shrink = 1.0 / stretch;
  Taps taps;
  taps.stride = std::min(static_cast<std::size_t>(std::ceil(support)) * 2 + 1, static_cast<std::size_t>(in));
  taps.spans.resize(static_cast<std::size_t>(out));
  taps.weights.assign(static_cast<std::size_t>(out) * taps.stride, 0);
  std::vector<double> exact(taps.stride);
  for (int i = 0; i < out; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(round_half_up(center - support), 0);
    const int end = std::min(round_half_up(center + support), in);
    double sum = 0.0;
    for (int x = first; x < end; ++x) {
      const double w = kernel.weight((x - center + 0.5) * shrink);
      exact[static_cast<std::size_t>(x - first)] = w;
      sum += w;
    }
    std::int32_t* weights = taps.weights.data() + static_cast<std::size_t>(i) * taps.stride;
    for (int x = 0; x < end - first; ++x) {
      double w = exact[static_cast<std::size_t>(x)];
      if (sum != 0.0) w /= sum;
      weights[x] = static_cast<std::int32_t>((w < 0 ? -0.5 : 0.5) + w * (1 << precision));
    }
    taps.spans[static_cast<std::size_t>(i)] = {first, end - first};
  }
  return taps;
}

std::uint8_t to_byte(std::int32_t sum) { return static_cast<std::uint8_t>(std::clamp(sum >> precision, 0, 255)); }

Image resample_rows(const Image& in, int width, const Kernel& kernel) {
  const Taps taps = make_taps(in.width, width, kernel);
  Image out(width, in.height);
  for (int y = 0; y < in.height; ++y) {
    const std::uint8_t* source = in.row(y);
    std::uint8_t* target = out.row(y);
    for (int x = 0; x < width; ++x, target += 3) {
      const auto [first, count] = taps.spans[static_cast<std::size_t>(x)];
      const std::int32_t* weights = taps.of(x);
      const std::uint8_t* pixel = source + static_cast<std::size_t>(first) * 3;
      std::int32_t r = half, g = half, b = half;
      for (int i = 0; i < count; ++i, pixel += 3) {
        r += pixel[0] * weights[i];
        g += pixel[1] * weights[i];
        b += pixel[2] * weights[i];
      }
      target[0] = to_byte(r);
      target[1] = to_byte(g);
      target[2] = to_byte(b);
    }
  }
  return out;
}

Image resample_columns(const Image& in, int height, const Kernel& kernel) {
  const Taps taps = make_taps(in.height, height, kernel);
  Image out(in.width, height);
  const std::size_t n = in.row_bytes();
  std::vector<std::int32_t> sums(n);
  for (int y = 0; y < height; ++y) {
    const auto [first, count] = taps.spans[static_cast<std::size_t>(y)];
    const std::int32_t* weights = taps.of(y);
    std::fill(sums.begin(), sums.end(), half);
    for (int i = 0; i < count; ++i) {
      const std::uint8_t* source = in.row(first + i);
      const std::int32_t weight = weights[i];
      for (std::size_t x = 0; x < n; ++x) sums[x] += source[x] * weight;
    }
    std::uint8_t* target = out.row(y);
    for (std::size_t x = 0; x < n; ++x) target[x] = to_byte(sums[x]);
  }
  return out;
}

// The positions that repeated addition of the step reaches, rounding included.
std::vector<int> nearest_positions(int in, int out) {
  const double step = static_cast<double>(in) / out;
  std::vector<int> positions(static_cast<std::size_t>(out));
  double at = step * 0.5;
  for (int& position : positions) {
    position = std::min(static_cast<int>(at), in - 1);
    at += step;
  }
  return positions;
}

Image pick_nearest(const Image& in, int width, int height) {
  const std::vector<int> columns = nearest_positions(in.width, width);
  const std::vector<int> rows = nearest_positions(in.height, height);
  Image out(width, height);
  for (int y = 0; y < height; ++y) {
    const std::uint8_t* source = in.row(rows[static_cast<std::size_t>(y)]);
    std::uint8_t* target = out.row(y);
    for (const int column : columns) {
      std::memcpy(target, source + static_cast<std::size_t>(column) * 3, 3);
      target += 3;
    }
  }
  return out;
}

}  // namespace

Result<Image> resize(const Image& image, int width, int height, Resample filter) {
  const auto too_large = [](std::int64_t w, std::int64_t h) { return w * h > max_image_pixels; };
  if (width <= 0 || height <= 0 || image.width <= 0 || image.height <= 0)
    return fail(ErrorCode::malformed, "cannot resize an image of " + std::to_string(image.width) + " x " +
                                          std::to_string(image.height) + " to " + std::to_string(width) + " x " +
                                          std::to_string(height));
  const bool columns_first =
      image.height > height && image.height - std::int64_t{height} > (image.width - std::int64_t{width}) * 2;
  if (too_large(width, height) || (columns_first ? too_large(image.width, height) : too_large(width, image.height)))
    return fail(ErrorCode::malformed,
                "resizing an image of " + std::to_string(image.width) + " x " + std::to_string(image.height) + " to " +
                    std::to_string(width) + " x " + std::to_string(height) + " needs too many pixels",
                {}, "the limit is " + std::to_string(max_image_pixels));
  if (width == image.width && height == image.height) return image;
  if (filter == Resample::nearest) return pick_nearest(image, width, height);
  const Kernel kernel = kernel_of(filter);
  if (width == image.width) return resample_columns(image, height, kernel);
  if (height == image.height) return resample_rows(image, width, kernel);
  if (columns_first) return resample_rows(resample_columns(image, height, kernel), width, kernel);
  return resample_columns(resample_rows(image, width, kernel), height, kernel);
}

}  // namespace mk
