#include "build/numeric_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "graph/random_operators.h"
#include "runtime/input_shapes.h"
#include "runtime/model_session.h"
#include "runtime/random_inputs.h"
#include "runtime/value_ranges.h"

namespace mk {
namespace {

constexpr double half_precision_factor = 10;
constexpr std::int64_t short_axis = 16;  // of dynamic dimensions: enough for differences to show

bool has_half_precision(const Model& model) {
  const auto is_half = [](const Value* value) {
    return value && (value->type.element == DataType::float16 || value->type.element == DataType::bfloat16);
  };
  bool found = false;
  for_each_node(*model.graph,
                [&](const Node& node) { found |= std::any_of(node.outputs().begin(), node.outputs().end(), is_half); });
  return found;
}

class Checker {
 public:
  Checker(const NumericCheckOptions& options, Progress& progress) : options_(options), progress_(progress) {}

  Result<NumericVerdict> operator()(const Model& before, const Model& after) {
    if (!reference_ && not_compared_.empty()) MK_CHECK(run_reference(before));
    if (!not_compared_.empty()) return NumericVerdict{.not_compared = not_compared_};
    const auto outputs = outputs_of(after);
    if (!outputs) return NumericVerdict{.same = false, .difference = "it does not run: " + outputs.error().message};
    return compare(*outputs, has_half_precision(after));
  }

 private:
  Status run_reference(const Model& before) {
    if (draws_random_numbers(before)) {
      not_compared_ = "the model draws random numbers";
      return {};
    }
    auto runtime = Runtime::load({.ort = options_.ort, .progress = &progress_});
    if (!runtime) {
      if (options_.ort) return tl::make_unexpected(std::move(runtime).error());
      not_compared_ = "there is no ONNX Runtime here";
      return {};
    }
    runtime_ = *runtime;
    auto reference = open(before);
    if (!reference) {
      not_compared_ = "the model does not open: " + reference.error().message;
      return {};
    }
    ShapeOverrides overrides;
    for (const Port& input : reference->inputs()) {
      if (!input.type.shape) continue;
      for (const Dim& dim : *input.type.shape) {
        const bool is_sum = dim.symbol.find_first_of("+-*/ ") != std::string::npos;  // follows from its parts
        if (dim.is_symbolic() && !is_sum) overrides.symbols.emplace(dim.symbol, short_axis);
      }
    }
    // Short axes do not suit every model (a detector that shrinks its image five times); the usual ones come next.
    for (const ShapeOverrides& shapes : {overrides, ShapeOverrides{}}) {
      auto chosen = choose_shapes(reference->inputs(), shapes, 1);
      if (!chosen) {
        not_compared_ = "there are no random inputs for it: " + chosen.error().message;
        continue;
      }
      apply_ranges(value_ranges(before), chosen->inputs);
      MK_TRY(inputs_, random_inputs(chosen->inputs));
      auto outputs = reference->run(inputs_);
      if (outputs) {
        reference_ = std::move(*outputs);
        not_compared_.clear();
        return {};
      }
      not_compared_ = "the model does not run on random inputs: " + outputs.error().message;
    }
    return {};
  }

  Result<Session> open(const Model& model) const {
    return open_model(runtime_, model, {.optimization = GraphOptimization::none});
  }

  Result<std::vector<HostTensor>> outputs_of(const Model& model) const {
    MK_TRY(const Session session, open(model));
    return session.run(inputs_);
  }

  Result<NumericVerdict> compare(const std::vector<HostTensor>& outputs, bool half) const {
    NumericVerdict verdict;
    const auto differs = [&](std::string what) {
      verdict.same = false;
      if (verdict.difference.empty()) verdict.difference = std::move(what);
    };
    if (outputs.size() != reference_->size()) differs("it has another number of outputs");
    for (std::size_t i = 0; i < std::min(outputs.size(), reference_->size()); ++i) {
      const HostTensor &wanted = (*reference_)[i], &found = outputs[i];
      if (wanted.type != found.type || wanted.dims != found.dims) {
        differs(found.name + " has another type or shape");
        continue;
      }
      if (wanted.type == DataType::string) {
        if (wanted.strings != found.strings) differs(found.name + " has other text");
        continue;
      }
      MK_TRY(const std::vector<double> a, float64_values(wanted));
      MK_TRY(const std::vector<double> b, float64_values(found));
      double largest = 0, difference = 0;
      for (std::size_t k = 0; k < a.size(); ++k) {
        if (std::isfinite(a[k])) largest = std::max(largest, std::abs(a[k]));
        if (a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k]))) continue;
        const double d = std::abs(a[k] - b[k]);
        difference = std::isfinite(d) ? std::max(difference, d) : INFINITY;
      }
      verdict.max_abs_diff = std::max(verdict.max_abs_diff, difference);
      verdict.max_rel_diff = std::max(verdict.max_rel_diff, largest > 0 ? difference / largest : difference);
      const double limit = options_.tolerance * (half ? half_precision_factor : 1) * std::max(1.0, largest);
      if (difference > limit)
        differs(fmt::format("{}: max_abs_diff {:.3g}, the limit is {:.3g}", found.name, difference, limit));
    }
    return verdict;
  }

  NumericCheckOptions options_;
  Progress& progress_;
  std::shared_ptr<Runtime> runtime_;
  std::vector<HostTensor> inputs_;
  std::optional<std::vector<HostTensor>> reference_;
  std::string not_compared_;
};

}  // namespace

NumericCheck numeric_check(const NumericCheckOptions& options, Progress& progress) {
  const auto checker = std::make_shared<Checker>(options, progress);
  return [checker](const Model& before, const Model& after) { return (*checker)(before, after); };
}

}  // namespace mk
