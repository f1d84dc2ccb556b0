#include "nn/distances.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "nn/ops.h"

namespace mk::nn {
namespace {

// More than any model has; tables for it are computed when the graph is built.
constexpr std::int64_t most = std::int64_t{1} << 20;

// By the content, so that tables that are alike are one: its FNV-1a hash.
std::string name_of(const std::vector<std::int64_t>& rows) {
  std::uint64_t hash = 14695981039346656037U;
  for (const std::int64_t row : rows) hash = (hash ^ static_cast<std::uint64_t>(row)) * 1099511628211U;
  return fmt::format("constant/distances/{}/{:016x}", rows.size(), hash);
}

// Row numbers for the distances 1 - length ... length - 1; where the length is not known, those up to `longest`.
Value row_numbers(const Scope& s, Value table, std::int64_t length, const OfDistance& row) {
  Builder& b = s.builder();
  if (length < 1 || length > most) {
    b.fail({ErrorCode::usage, fmt::format("a length of {} is beyond what can be exported, {}", length, most),
            s.module().path, "Ask for a shorter one with --shape-config or --input-specs"});
    return {};
  }
  std::vector<std::int64_t> rows;
  rows.reserve(static_cast<std::size_t>(2 * length - 1));
  const std::int64_t count = table.dim(0).value;
  for (std::int64_t distance = 1 - length; distance < length; ++distance) {
    rows.push_back(row(distance));
    if (rows.back() >= 0 && rows.back() < count) continue;
    b.fail({ErrorCode::malformed,
            fmt::format("a distance of {} has row {} of a table with {} rows", distance, rows.back(), count),
            s.module().path, ""});
    return {};
  }
  const std::int64_t width = 2 * length - 1;
  return b.constant(name_of(rows), DataType::int64, {width}, owned_values(rows));
}

}  // namespace

Value ramp(const Scope& s, Value like) {
  if (!like) return {};
  Builder& b = s.builder();
  const Dim length = like.dim(1);
  const Value end = length.is_known() ? b.scalar(DataType::int64, static_cast<double>(length.value))
                                      : Op(s, "Squeeze", {size(s, like, 1)}).out(DataType::int64, {});
  return Op(s, "Range", {b.scalar(DataType::int64, 0), end, b.scalar(DataType::int64, 1)})
      .out(DataType::int64, {length});
}

Value rows_by_distance(const Scope& s, Value table, Value like, std::int64_t longest, const OfDistance& row) {
  if (!table || !like) return {};
  const Dim length = like.dim(1);
  if (length.is_known()) return gather(s, table, row_numbers(s, table, length.value, row));
  const Value all = row_numbers(s, table, longest, row), now = size(s, like, 1);
  const Value begin = sub(s, s.builder().integers({longest}), now);
  const Value end = add(s, now, s.builder().integers({longest - 1}));
  return gather(s, table, slice(s, all, 0, begin, end));
}

Value pairs_by_distance(const Scope& s, Value table, Value like, std::int64_t longest, const OfDistance& row) {
  if (!table || !like) return {};
  const std::int64_t length = like.dim(1).is_known() ? like.dim(1).value : longest;
  const Value all = row_numbers(s, table, length, row), positions = ramp(s, like);
  const Value distances = sub(s, unsqueeze(s, positions, 0), unsqueeze(s, positions, 1));
  return gather(s, table, gather(s, all, add(s, distances, static_cast<double>(length - 1))));
}

Value columns_by_distance(const Scope& s, Value by_distance) {
  if (!by_distance) return {};
  // Row i is shifted left by rows - 1 - i (Huang et al. 2018), by padding and reading the same memory with other row
  // lengths.
  Builder& b = s.builder();
  const DataType type = by_distance.type();
  const Dim rows = by_distance.dim(2), distances = by_distance.dim(3);
  const auto sized = [&](const Dim& third, const Dim& fourth) {
    return Shape{by_distance.dim(0), by_distance.dim(1), third, fourth};
  };
  const Dim twice = rows.is_known() ? Dim::known(2 * rows.value) : Dim{};
  const Value length = size(s, by_distance, 2);
  const Value narrow = rows.is_known() ? b.integers({keep, keep, rest, rows.value})
                                       : concat(s, {b.integers({keep, keep, rest}), length}, 0);
  const Value wide = rows.is_known() ? b.integers({keep, keep, rows.value, rest})
                                     : concat(s, {b.integers({keep, keep}), length, b.integers({rest})}, 0);

  Value y = Op(s, "Pad", {by_distance, b.integers({0, 0, 0, 1, 0, 0, 0, 0})}).out(type, sized(rows, twice));
  y = Op(s, "Reshape", {y, narrow}).out(type, sized(twice, rows));
  y = slice(s, y, 2, 1, to_the_end);
  y = Op(s, "Reshape", {y, wide}).out(type, sized(rows, distances));
  return Op(s, "Slice", {y, b.integers({0}), length, b.integers({3})}).out(type, sized(rows, rows));
}

std::int64_t two_sided_bucket(std::int64_t distance, std::int64_t buckets, std::int64_t farthest) {
  const std::int64_t side = buckets / 2, exact = side / 2, far = std::abs(distance);
  const std::int64_t first = distance > 0 ? side : 0;
  if (far < exact || exact < 1) return first + std::min(far, std::max<std::int64_t>(side - 1, 0));
  if (farthest <= exact) return first + side - 1;
  const float ratio = std::log(static_cast<float>(far) / static_cast<float>(exact)) /
                      static_cast<float>(std::log(static_cast<double>(farthest) / static_cast<double>(exact)));
  const auto step = static_cast<std::int64_t>(ratio * static_cast<float>(side - exact));
  return first + std::min(exact + step, side - 1);
}

std::int64_t signed_bucket(std::int64_t distance, std::int64_t buckets, std::int64_t farthest) {
  const std::int64_t middle = buckets / 2, far = std::abs(distance);
  if (far <= middle || middle < 1 || farthest - 1 <= middle) return distance;
  const auto ratio = [&](std::int64_t to) {
    return std::log(static_cast<float>(static_cast<double>(to) / static_cast<double>(middle)));
  };
  const float part = ratio(far) / ratio(farthest - 1);
  const auto bucket = static_cast<std::int64_t>(std::ceil(part * static_cast<float>(middle - 1))) + middle;
  return distance < 0 ? -bucket : bucket;
}

}  // namespace mk::nn
