#include "quantize/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/system.h"
#include "graph/node_marks.h"
#include "runtime/feed.h"
#include "runtime/model_session.h"
#include "runtime/observer.h"

namespace mk {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Sums {
  double reference = 0, other = 0, dot = 0, noise = 0;
  std::size_t compared = 0, skipped = 0;  // values

  double cosine() const {
    if (reference == 0 && other == 0) return 1;
    if (reference == 0 || other == 0) return 0;
    return dot / (std::sqrt(reference) * std::sqrt(other));
  }
};

// Which positions of [batch, length] count.
struct Positions {
  std::int64_t batch = 0, length = 0;
  std::vector<std::int64_t> attended;

  bool fit(const TensorView& tensor) const {
    return tensor.dims.size() >= 2 && tensor.dims[0] == batch && tensor.dims[1] == length && length > 0;
  }
};

std::optional<Positions> attended_positions(const std::vector<HostTensor>& inputs) {
  const auto mask = std::ranges::find(inputs, "attention_mask", &HostTensor::name);
  if (mask == inputs.end() || mask->dims.size() != 2) return std::nullopt;
  auto values = int64_values(*mask);
  if (!values) return std::nullopt;
  return Positions{mask->dims[0], mask->dims[1], std::move(*values)};
}

// The figures of one tensor, sample by sample.
class Tally {
 public:
  explicit Tally(std::string name) { result_.name = std::move(name); }

  Status add(std::size_t sample, const TensorView& reference, const TensorView& other,
             const std::optional<Positions>& positions) {
    if (reference.dims != other.dims) {
      note(fmt::format("has shape {} in sample {}, the original has {}", to_string(static_shape(other.dims)), sample,
                       to_string(static_shape(reference.dims))));
      return {};
    }
    MK_TRY(const auto r, float32_values(reference, reference_));
    MK_TRY(const auto t, float32_values(other, other_));
    if (!positions || !positions->fit(reference)) {
      Sums sums;
      count(sample, r, t, sums);
      finish(sums);
      return {};
    }
    const auto rows = static_cast<std::size_t>(positions->batch * positions->length);
    const std::size_t width = r.size() / rows;
    for (std::size_t row = 0; row < rows;) {
      Sums sums;
      for (std::int64_t i = 0; i < positions->length; ++i, ++row)
        if (positions->attended[row] != 0)
          count(sample, r.subspan(row * width, width), t.subspan(row * width, width), sums);
      finish(sums);
    }
    return {};
  }

  TensorAccuracy result() const {
    TensorAccuracy result = result_;
    if (samples_ == 0) {
      constexpr double none = std::numeric_limits<double>::quiet_NaN();
      result.cosine = result.least_cosine = result.snr_db = result.max_abs_diff = none;
      return result;
    }
    result.cosine = sum_ / static_cast<double>(samples_);
    result.least_cosine = least_;
    result.snr_db = all_.noise == 0       ? infinity
                    : all_.reference == 0 ? -infinity
                                          : 10 * std::log10(all_.reference / all_.noise);
    return result;
  }

 private:
  void note(std::string problem) {
    if (result_.problem.empty()) result_.problem = std::move(problem);
  }

  void count(std::size_t sample, std::span<const float> r, std::span<const float> t, Sums& sums) {
    for (std::size_t i = 0; i < r.size(); ++i) {
      const double a = r[i], b = t[i], difference = a - b;
      if (!std::isfinite(difference)) {
        if (std::isinf(r[i]) && r[i] == t[i]) {  // masked logits
          ++sums.skipped;
          continue;
        }
        if (std::isfinite(r[i]))
          note(fmt::format("has {} in sample {} where the original has {}",
                           std::isnan(b) ? "NaN" : fmt::format("{}", b), sample, a));
        if (!std::isfinite(r[i]) && !std::isfinite(t[i])) {
          ++result_.not_finite;
          ++sums.skipped;
          continue;
        }
      }
      ++sums.compared;
      sums.reference += a * a;
      sums.other += b * b;
      sums.dot += a * b;
      sums.noise += difference * difference;
      if (std::isnan(difference) || std::fabs(difference) > result_.max_abs_diff)
        result_.max_abs_diff = std::fabs(difference);
    }
  }

  void finish(const Sums& sums) {
    if (sums.compared == 0 && sums.skipped > 0) return;
    const double cosine = sums.cosine();
    sum_ += cosine;
    least_ = samples_++ == 0 ? cosine : std::min(least_, cosine);
    all_.reference += sums.reference;
    all_.noise += sums.noise;
  }

  TensorAccuracy result_;
  double sum_ = 0, least_ = 0;
  std::size_t samples_ = 0;
  Sums all_;
  std::vector<float> reference_, other_;
};

std::vector<TensorAccuracy> results(const std::vector<Tally>& tallies) {
  std::vector<TensorAccuracy> all;
  for (const Tally& tally : tallies) all.push_back(tally.result());
  return all;
}

bool is_compared(DataType type) { return is_float(type) && bits_of(type) >= 16; }

class Judge {
 public:
  Judge(const std::shared_ptr<Runtime>& runtime, const Model& original, const Model& quantized,
        const SampleSource& samples, const JudgeOptions& options, Progress& progress)
      : runtime_(runtime),
        original_(original),
        quantized_(quantized),
        samples_(samples),
        options_(options),
        progress_(progress) {}

  Result<std::vector<TensorAccuracy>> outputs() const {
    SessionOptions session;
    session.intra_op_threads = options_.threads;
    MK_TRY(const Session reference, open_model(runtime_, original_, session));
    MK_TRY(const Session candidate, open_model(runtime_, quantized_, session));
    std::vector<std::string> names;
    std::vector<Tally> tallies;
    for (const Port& port : candidate.outputs()) {
      const auto other = std::ranges::find(reference.outputs(), port.name, &Port::name);
      if (other == reference.outputs().end() || !port.type.is_tensor() || !is_compared(port.type.element)) continue;
      names.push_back(port.name);
      tallies.emplace_back(port.name);
    }
    if (names.empty()) return std::vector<TensorAccuracy>{};
    const auto add_sample = [&](std::size_t number, const std::vector<HostTensor>& inputs) -> Status {
      const auto positions = attended_positions(inputs);
      MK_TRY(const auto given, inputs_for(reference, inputs));
      MK_TRY(const auto given_too, inputs_for(candidate, inputs));
      MK_TRY(const auto expected, reference.run(given, names));
      MK_TRY(const auto actual, candidate.run(given_too, names));
      for (std::size_t i = 0; i < names.size(); ++i)
        MK_CHECK(tallies[i].add(number, view_of(expected[i]), view_of(actual[i]), positions));
      return {};
    };
    MK_CHECK(each_sample("judge", add_sample));
    return results(tallies);
  }

  Result<std::vector<TensorAccuracy>> tensors() const {
    std::vector<std::string> names;
    for (std::string& name : float_values(original_)) {
      const Value* value = quantized_.graph->find(name);
      const bool is_same = value && value->producer() && value->type.is_tensor() && is_compared(value->type.element) &&
                           !find(value->producer()->metadata, smoothed_key);
      if (is_same && !original_.graph->find(name)->is_graph_input()) names.push_back(std::move(name));
    }
    ObserverOptions observing;
    observing.session.intra_op_threads = options_.threads;
    MK_TRY(Observer reference, Observer::open(runtime_, original_, names, observing));
    MK_TRY(Observer candidate, Observer::open(runtime_, quantized_, names, observing));
    std::vector<Tally> tallies(names.begin(), names.end());
    const auto add_sample = [&](std::size_t number, const std::vector<HostTensor>& inputs) -> Status {
      const auto positions = attended_positions(inputs);
      MK_TRY(const auto given, inputs_for(reference.session(), inputs));
      MK_TRY(const auto given_too, inputs_for(candidate.session(), inputs));
      for (const auto& group : reference.groups(given)) {
        MK_TRY(const auto expected, reference.collect(given, group));
        MK_CHECK(candidate.run(given_too, [&](std::size_t index, const TensorView& actual) -> Status {
          const auto value = expected.find(index);
          return value == expected.end() ? Status()
                                         : tallies[index].add(number, view_of(value->second), actual, positions);
        }));
      }
      return {};
    };
    MK_CHECK(each_sample("compare", add_sample));
    return results(tallies);
  }

 private:
  template <typename Use>
  Status each_sample(std::string_view what, Use&& use) const {
    const auto stage = progress_.stage(what);
    for (std::size_t i = 0; i < options_.count; ++i) {
      if (interrupted()) return fail(ErrorCode::interrupted, "interrupted");
      MK_TRY(const auto inputs, samples_.sample(options_.first + i));
      MK_CHECK(use(options_.first + i, inputs));
      stage->update(i + 1, options_.count);
    }
    stage->done(fmt::format("{} samples", options_.count));
    return {};
  }

  const std::shared_ptr<Runtime>& runtime_;
  const Model& original_;
  const Model& quantized_;
  const SampleSource& samples_;
  const JudgeOptions& options_;
  Progress& progress_;
};

}  // namespace

std::string Accuracy::problem() const {
  for (const TensorAccuracy& output : outputs)
    if (!output.problem.empty()) return "output " + output.name + " " + output.problem;
  return {};
}

Result<Accuracy> judge(const std::shared_ptr<Runtime>& runtime, const Model& original, const Model& quantized,
                       const SampleSource& samples, const JudgeOptions& options, Progress& progress) {
  if (options.count == 0 || options.first + options.count > samples.size())
    return fail(ErrorCode::failed, "there are no such samples to judge with", samples.description());
  const Judge judge(runtime, original, quantized, samples, options, progress);
  Accuracy accuracy{options.count, {}, {}};
  MK_TRY(accuracy.outputs, judge.outputs());
  if (options.tensors) {
    MK_TRY(accuracy.tensors, judge.tensors());
  }
  return accuracy;
}

}  // namespace mk
