#include "runtime/random_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/system.h"
#include "graph/type.h"

namespace mk {
namespace {

struct Integers {
  std::int64_t low;
  std::int64_t high;  // exclusive
};

// The whole numbers that a type can hold, as far as int64 reaches.
Integers limits_of(DataType type) {
  const int bits = bits_of(type);
  if (type == DataType::boolean) return {0, 2};
  if (type == DataType::int64 || type == DataType::uint64)
    return {type == DataType::int64 ? std::numeric_limits<std::int64_t>::min() : 0,
            std::numeric_limits<std::int64_t>::max()};
  const bool is_signed = type == DataType::int8 || type == DataType::int16 || type == DataType::int32;
  const std::int64_t span = std::int64_t{1} << bits;
  return is_signed ? Integers{-span / 2, span / 2} : Integers{0, span};
}

std::int64_t whole(double value) {
  constexpr double most = 9.2e18;
  return static_cast<std::int64_t>(std::ceil(std::clamp(value, -most, most)));
}

Integers integers_of(const DrawSpec& spec) {
  const Integers limits = limits_of(spec.type);
  if (!spec.range) {
    if (spec.type != DataType::boolean && spec.name.find("mask") != std::string::npos) return {1, 2};
    return {0, 2};
  }
  return {std::max(limits.low, whole(spec.range->low)), std::min(limits.high, whole(spec.range->high))};
}

// x0 <= x1 and y0 <= y1 in rows of (x0, y0, x1, y1).
template <typename T>
void sort_corners(std::vector<T>& values) {
  for (std::size_t i = 0; i + 4 <= values.size(); i += 4)
    for (const std::size_t axis : {0u, 1u})
      if (values[i + axis] > values[i + axis + 2]) std::swap(values[i + axis], values[i + axis + 2]);
}

// Values are drawn as 8 bytes each, then converted. What cannot be in this machine's memory is not begun: systems that
// promise memory they lack would kill the process.
Status check_memory(const DrawSpec& spec) {
  constexpr double always_there = 1e9;
  double bytes = 8.0 + bits_of(spec.type) / 8.0;
  for (const std::int64_t dim : spec.dims) bytes *= static_cast<double>(dim);
  if (bytes <= always_there) return {};
  const auto memory = machine_info().memory_bytes;
  if (!memory || bytes <= static_cast<double>(*memory)) return {};
  return fail(ErrorCode::usage,
              fmt::format("values of shape {} take {:.1f} GB, this machine has {:.1f} GB",
                          to_string(static_shape(spec.dims)), bytes / 1e9, static_cast<double>(*memory) / 1e9),
              spec.name, "Choose a smaller batch or smaller shapes");
}

}  // namespace

Result<HostTensor> random_tensor(const DrawSpec& spec, Random& random) {
  MK_CHECK(check_memory(spec));
  MK_TRY(auto blank, zero_tensor(spec.name, spec.type, spec.dims));
  const std::uint64_t count = blank.element_count();
  const bool boxes = spec.name == "bbox" && !spec.dims.empty() && spec.dims.back() == 4;
  if (is_float(spec.type) && bits_of(spec.type) >= 16) {
    const ValueRange range = spec.range.value_or(ValueRange{});
    std::vector<double> values(count);
    for (double& value : values) value = range.low + (range.high - range.low) * random.uniform();
    if (boxes) sort_corners(values);
    return converted(host_tensor<double>(spec.name, DataType::float64, spec.dims, values), spec.type);
  }
  if (bits_of(spec.type) >= 8 && (is_integer(spec.type) || spec.type == DataType::boolean)) {
    const Integers range = integers_of(spec);
    if (range.low >= range.high)
      return fail(ErrorCode::usage, "the range of values holds no " + std::string(name_of(spec.type)), spec.name);
    std::vector<std::int64_t> values(count);
    for (std::int64_t& value : values) value = random.integer(range.low, range.high);
    if (boxes) sort_corners(values);
    return converted(host_tensor<std::int64_t>(spec.name, DataType::int64, spec.dims, values), spec.type);
  }
  return blank;  // text, and elements below 8 bits or of 8-bit float: zeros
}

Result<std::vector<HostTensor>> random_inputs(std::span<const DrawSpec> specs, Random& random) {
  std::vector<HostTensor> inputs;
  for (const DrawSpec& spec : specs) {
    MK_TRY(auto tensor, random_tensor(spec, random));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Result<std::vector<HostTensor>> random_inputs(std::span<const DrawSpec> specs, std::uint64_t seed) {
  Random random(seed);
  return random_inputs(specs, random);
}

}  // namespace mk
