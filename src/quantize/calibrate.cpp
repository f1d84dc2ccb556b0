#include "quantize/calibrate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/system.h"
#include "quantize/histogram.h"
#include "quantize/range_kernels.h"
#include "runtime/observer.h"

namespace mk {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr double kept_percentile = 99.999;
constexpr std::size_t entropy_levels = 128;

struct MethodRow {
  CalibrationMethod method;
  std::string_view name;
  std::size_t bins;      // of the first sample; none: no histogram
  std::size_t max_bins;  // where neighbours are merged
};
constexpr std::array<MethodRow, 3> methods{{{CalibrationMethod::minmax, "minmax", 0, 0},
                                            {CalibrationMethod::entropy, "entropy", 128, 4096},
                                            {CalibrationMethod::percentile, "percentile", 2048, 65536}}};

const MethodRow& row_of(CalibrationMethod method) { return methods[static_cast<std::size_t>(method)]; }

// What is known of one tensor.
class Seen {
 public:
  Seen(std::string name, const MethodRow& method, bool channels)
      : name_(std::move(name)), method_(method.method), wants_channels_(channels) {
    if (method.bins > 0) histogram_.emplace(method.bins, method.max_bins);
  }

  Status add(std::size_t sample, const TensorView& tensor) {
    MK_TRY(std::span<const float> values, float32_values(tensor, converted_));
    TensorRange range{infinity, -infinity};
    if (!widen(values, range)) {
      values = finite(sample, values);
      range = {infinity, -infinity};
      widen(values, range);
    }
    if (wants_channels_ && !tensor.dims.empty()) add_channels(values, tensor);
    if (!(range.low <= range.high)) return {};
    range_ = {std::min(range_.low, range.low), std::max(range_.high, range.high)};
    if (histogram_) histogram_->add(values, range);
    return {};
  }

  void finish(Calibration& result) const {
    if (not_finite_ > 0)
      result.warnings.push_back(
          fmt::format("{} has {} values that are NaN or infinite, first in sample {}: they do "
                      "not count",
                      name_, not_finite_, first_wrong_));
    if (!(range_.low <= range_.high)) {
      result.warnings.push_back(fmt::format("{} has no values in any sample: it has no range", name_));
      return;
    }
    TensorRange range = range_;
    if (method_ == CalibrationMethod::entropy) range = entropy_range(*histogram_, entropy_levels);
    if (method_ == CalibrationMethod::percentile) range = percentile_range(*histogram_, kept_percentile);
    result.ranges.emplace(name_, range);
    if (low_.empty()) return;
    auto& channels = result.channels[name_];
    for (std::size_t i = 0; i < low_.size(); ++i)
      channels.push_back(low_[i] <= high_[i] ? TensorRange{low_[i], high_[i]} : TensorRange{});
  }

 private:
  std::span<const float> finite(std::size_t sample, std::span<const float> values) {
    std::vector<float> kept;
    kept.reserve(values.size());
    std::ranges::copy_if(values, std::back_inserter(kept), [](float v) { return std::isfinite(v); });
    if (not_finite_ == 0) first_wrong_ = sample;
    not_finite_ += values.size() - kept.size();
    finite_ = std::move(kept);
    return finite_;
  }

  // Only of samples without wrong values: columns must stay columns.
  void add_channels(std::span<const float> values, const TensorView& tensor) {
    const auto columns = static_cast<std::size_t>(tensor.dims.back());
    if (values.size() != tensor.element_count()) return;
    if (low_.empty()) {
      low_.assign(columns, infinity);
      high_.assign(columns, -infinity);
    }
    if (low_.size() == columns) {
      widen_columns(values, low_, high_);
    } else {  // the axis is not the same in every sample: no channels
      wants_channels_ = false;
      low_.clear();
    }
  }

  std::string name_;
  CalibrationMethod method_;
  bool wants_channels_;
  TensorRange range_{infinity, -infinity};
  std::optional<Histogram> histogram_;
  std::vector<float> low_, high_;
  std::size_t not_finite_ = 0;
  std::size_t first_wrong_ = 0;
  std::vector<float> converted_, finite_;
};

bool is_observed(DataType type) {
  return type == DataType::float32 || type == DataType::float16 || type == DataType::bfloat16;
}

}  // namespace

std::string_view name_of(CalibrationMethod method) { return row_of(method).name; }

Result<CalibrationMethod> calibration_method_named(std::string_view name) {
  for (const MethodRow& row : methods)
    if (row.name == name) return row.method;
  return fail(ErrorCode::usage, fmt::format("unknown calibration method '{}'", name), {},
              "There are minmax, entropy and percentile");
}

Result<Calibration> calibrate(const std::shared_ptr<Runtime>& runtime, const Model& model, const SampleSource& source,
                              const CalibrationOptions& options, Progress& progress) {
  const std::size_t available = source.size() - std::min(source.size(), options.first);
  const std::size_t count = std::min(options.count, available);
  if (count == 0) return fail(ErrorCode::failed, "there is no sample to calibrate with", source.description());
  const std::unordered_set<std::string_view> channels(options.channels.begin(), options.channels.end());
  std::vector<Seen> seen;
  for (const std::string& name : options.tensors)
    seen.emplace_back(name, row_of(options.method), channels.contains(name));
  ObserverOptions observing;
  observing.session.intra_op_threads = options.threads;
  // Between runs, threads that spin for the next one would take the CPU from what collects the ranges.
  observing.session.config = {{"session.intra_op.allow_spinning", "0"}};
  MK_TRY(Observer observer, Observer::open(runtime, model, options.tensors, observing));

  Calibration result;
  std::unordered_set<std::size_t> integers;
  const auto stage = progress.stage("calibrate");
  for (; result.samples < count; ++result.samples) {
    if (interrupted()) return fail(ErrorCode::interrupted, "interrupted");
    const std::size_t number = options.first + result.samples;
    MK_TRY(const auto inputs, source.sample(number));
    MK_CHECK(observer.run(inputs, [&](std::size_t index, const TensorView& value) -> Status {
      if (!is_observed(value.type)) {
        integers.insert(index);
        return {};
      }
      return seen[index].add(number, value);
    }));
    stage->update(result.samples + 1, count);
  }
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (!integers.contains(i)) seen[i].finish(result);
  stage->done(fmt::format("{} samples", count));
  return result;
}

}  // namespace mk
