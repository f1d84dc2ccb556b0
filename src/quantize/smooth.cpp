#include "quantize/smooth.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include "graph/node_marks.h"
#include "quantize/qdq_constants.h"

namespace mk {
namespace {

// Exponents of the activation's share in a factor; the rest is the weight's.
constexpr std::array exponents{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
// Noise before / after that is worth a change of constants, and one more Mul.
constexpr double worth_folding = 1.1;
constexpr double worth_a_node = 2;
constexpr double smallest_factor = 1e-4;

// float32 values, each multiplied by the factor of its channel.
class ScaledBytes final : public ByteSource {
 public:
  ScaledBytes(Bytes source, std::uint64_t inner, std::shared_ptr<const std::vector<float>> factors)
      : source_(std::move(source)), inner_(inner), factors_(std::move(factors)) {}
  std::uint64_t size() const override { return source_->size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t first = offset / sizeof(float);
    const std::uint64_t last = (offset + out.size() + sizeof(float) - 1) / sizeof(float);
    std::vector<float> values(static_cast<std::size_t>(last - first));
    MK_CHECK(source_->read(first * sizeof(float), std::as_writable_bytes(std::span(values))));
    for (std::size_t i = 0; i < values.size();) {
      const std::uint64_t element = first + i;
      const float factor = (*factors_)[element / inner_ % factors_->size()];
      const auto run = std::min<std::uint64_t>(inner_ - element % inner_, values.size() - i);
      for (const std::size_t end = i + static_cast<std::size_t>(run); i < end; ++i) values[i] *= factor;
    }
    if (!out.empty()) {
      std::memcpy(out.data(), reinterpret_cast<const std::byte*>(values.data()) + offset % sizeof(float), out.size());
    }
    return {};
  }

 private:
  Bytes source_;
  std::uint64_t inner_;
  std::shared_ptr<const std::vector<float>> factors_;
};

// What a product's weight is to the channels of its data.
struct InputChannels {
  std::vector<double> largest;  // |w|
  std::vector<double> squares;  // sums
  double columns = 0;
};

class Smoother {
 public:
  Smoother(Model& model, const QdqOptions& options) : model_(model), options_(options) {
    options_.scope = chosen_scope(model, options);
  }

  // Values with the products that read them, in the order of the graph.
  std::vector<std::pair<Value*, std::vector<Node*>>> candidates() {
    std::vector<std::pair<Value*, std::vector<Node*>>> found;
    if (options_.scope != QdqScope::weighted || bits_of(options_.activation_type) != 8) return found;
    std::unordered_map<const Value*, std::size_t> index;
    for (Node* node : model_.graph->nodes()) {
      if (!is_product(*node)) continue;
      Value* data = node->input(0);
      const auto [entry, added] = index.try_emplace(data, found.size());
      if (added) found.push_back({data, {}});
      found[entry->second].second.push_back(node);
    }
    return found;
  }

  Result<SmoothReport> run(const ChannelRanges& channels, TensorRanges& ranges) {
    SmoothReport report;
    for (const auto& [value, readers] : candidates()) {
      const std::vector<Node*>& products = readers;
      const auto seen = channels.find(value->name());
      if (seen == channels.end()) continue;
      const std::size_t count = seen->second.size();
      if (!std::ranges::all_of(products, [&](const Node* node) { return channels_of(*node) == count; })) continue;
      MK_TRY(const InputChannels weights, weights_of(products));
      const auto [factors, gain] = choose(seen->second, weights);
      const bool folds = only_read_by(*value, products) && can_fold(*value, factors.size());
      if (gain < (folds ? worth_folding : worth_a_node)) continue;
      MK_CHECK(scale_weights(products, factors));
      const TensorRange range = divided(seen->second, factors);
      if (folds) {
        MK_CHECK(fold(*value, factors));
        ranges[value->name()] = range;
      } else {
        ranges[divide(*value, products, factors).name()] = range;
        ++report.added;
      }
      report.worst_gain = report.tensors == 0 ? gain : std::min(report.worst_gain, gain);
      report.best_gain = std::max(report.best_gain, gain);
      ++report.tensors;
    }
    return report;
  }

 private:
  bool is_product(const Node& node) const {
    if (!node.domain.empty() || (node.op_type != "MatMul" && node.op_type != "Gemm")) return false;
    if (node.integer("transA", 0) != 0 || options_.exclude.matches(node)) return false;
    const Tensor* weight = weight_tensor(node.input(1));
    const Value* data = node.input(0);
    return weight && weight->type == DataType::float32 && weight->data && weight->dims.size() == 2 &&
           weight->element_count() > 0 && data && !data->initializer() && data->type.is_tensor() &&
           data->type.element == DataType::float32 && is_norm(data->producer());
  }

  static bool is_norm(const Node* node) {
    return node && node->domain.empty() && node->op_type == "LayerNormalization";
  }

  static bool is_transposed(const Node& node) { return node.integer("transB", 0) != 0; }
  static std::size_t channels_of(const Node& node) {
    return static_cast<std::size_t>(node.input(1)->initializer()->dims[is_transposed(node) ? 1 : 0]);
  }

  static bool only_read_by(const Value& value, const std::vector<Node*>& products) {
    return !value.is_graph_output() && value.uses().size() == products.size();
  }

  static Result<InputChannels> weights_of(const std::vector<Node*>& products) {
    InputChannels found;
    const std::size_t count = channels_of(*products.front());
    found.largest.assign(count, 0.0);
    found.squares.assign(count, 0.0);
    std::vector<float> row;
    for (const Node* node : products) {
      const Tensor& weight = *node->input(1)->initializer();
      const bool transposed = is_transposed(*node);
      row.resize(static_cast<std::size_t>(weight.dims[1]));
      for (std::int64_t r = 0; r < weight.dims[0]; ++r) {
        MK_CHECK(weight.data->read(static_cast<std::uint64_t>(r) * row.size() * sizeof(float),
                                   std::as_writable_bytes(std::span(row))));
        for (std::size_t c = 0; c < row.size(); ++c) {
          const std::size_t channel = transposed ? c : static_cast<std::size_t>(r);
          const double size = std::abs(static_cast<double>(row[c]));
          if (!(size <= std::numeric_limits<float>::max())) continue;
          found.largest[channel] = std::max(found.largest[channel], size);
          found.squares[channel] += size * size;
        }
      }
      found.columns += static_cast<double>(weight.dims[transposed ? 0 : 1]);
    }
    return found;
  }

  static TensorRange divided(const std::vector<TensorRange>& channels, const std::vector<float>& factors) {
    TensorRange range;
    for (std::size_t c = 0; c < channels.size(); ++c) {
      range.low = std::min(range.low, channels[c].low / factors[c]);
      range.high = std::max(range.high, channels[c].high / factors[c]);
    }
    return range;
  }

  // The variance that rounding of data and of weights leaves in the products, up to a common factor.
  static double noise(const std::vector<TensorRange>& channels, const InputChannels& weights,
                      const std::vector<float>& factors) {
    const TensorRange range = divided(channels, factors);
    const double data_step = static_cast<double>(range.high) - static_cast<double>(range.low);
    double weight_step = 0;
    double weight_squares = 0;
    double data_squares = 0;
    const double usual = usual_size(channels);
    for (std::size_t c = 0; c < channels.size(); ++c) {
      const auto factor = static_cast<double>(factors[c]);
      weight_step = std::max(weight_step, 2 * weights.largest[c] * factor);
      weight_squares += weights.squares[c] * factor * factor;
      const double size = std::min(usual, size_of(channels[c])) / 2 / factor;
      data_squares += size * size;
    }
    return data_step * data_step * weight_squares + weight_step * weight_step * weights.columns * data_squares;
  }

  static double size_of(TensorRange range) {
    return static_cast<double>(std::max(std::abs(range.low), std::abs(range.high)));
  }

  // The median of the channels' sizes: the largest values of outliers are rare, and say little of their mean square.
  static double usual_size(const std::vector<TensorRange>& channels) {
    std::vector<double> sizes;
    sizes.reserve(channels.size());
    for (const TensorRange& channel : channels) sizes.push_back(size_of(channel));
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::nth_element(sizes.begin(), middle, sizes.end());
    return *middle;
  }

  // The best factors, and the noise before / after.
  static std::pair<std::vector<float>, double> choose(const std::vector<TensorRange>& channels,
                                                      const InputChannels& weights) {
    const std::vector<float> ones(channels.size(), 1.0f);
    const double before = noise(channels, weights, ones);
    std::vector<float> best = ones;
    double least = before;
    for (const double exponent : exponents) {
      std::vector<float> factors(channels.size(), 1.0f);
      double largest = 0;
      for (std::size_t c = 0; c < channels.size(); ++c) {
        const double data = size_of(channels[c]);
        const double weight = weights.largest[c];
        const double factor = data > 0 && weight > 0 ? std::pow(data, exponent) / std::pow(weight, 1 - exponent) : 0;
        factors[c] = static_cast<float>(factor);
        largest = std::max(largest, factor);
      }
      if (!(largest > 0) || !std::isfinite(largest)) continue;
      for (float& factor : factors)
        factor = static_cast<float>(std::max(static_cast<double>(factor) / largest, smallest_factor));
      const double after = noise(channels, weights, factors);
      if (after < least) {
        least = after;
        best = factors;
      }
    }
    return {best, least > 0 ? before / least : 1.0};
  }

  // The norm that makes a value, where its scale and bias can take the division.
  static bool can_fold(const Value& value, std::size_t channels) {
    const Node& node = *value.producer();
    if (node.output(1) || node.output(2)) return false;
    for (const std::size_t i : {1u, 2u}) {
      if (i == 2 && !node.input(2)) continue;
      const Tensor* tensor = weight_tensor(node.input(i));
      if (!tensor || tensor->type != DataType::float32 || !tensor->data || tensor->dims.size() != 1 ||
          tensor->element_count() != channels)
        return false;
    }
    return true;
  }

  Status fold(Value& value, const std::vector<float>& factors) {
    Node& node = *value.producer();
    for (const std::size_t i : {1u, 2u}) {
      Value* operand = node.input(i);
      if (!operand) continue;
      MK_TRY(const auto numbers, number_values(*operand->initializer()));
      std::vector<float> quotients(factors.size());
      for (std::size_t c = 0; c < quotients.size(); ++c)
        quotients[c] = static_cast<float>(numbers[c] / static_cast<double>(factors[c]));
      node.set_input(i, add_constant(operand->name() + "_smooth", {static_cast<std::int64_t>(factors.size())},
                                     owned_values(quotients)));
      if (operand->is_unused()) operand->graph()->erase_unused(operand);
    }
    set(node.metadata, smoothed_key, "true");
    return {};
  }

  Value& divide(Value& value, const std::vector<Node*>& products, const std::vector<float>& factors) {
    Graph& graph = *model_.graph;
    std::vector<float> inverses;
    inverses.reserve(factors.size());
    for (const float factor : factors) inverses.push_back(1.0f / factor);
    Value* by = add_constant(value.name() + "_smooth_factor", {static_cast<std::int64_t>(factors.size())},
                             owned_values(inverses));
    Value* divided = graph.add_op("Mul", {&value, by}, value.name() + "_smooth", products.front());
    divided->type = value.type;
    divided->producer()->name = divided->name();
    divided->producer()->metadata = products.front()->metadata;
    for (Node* node : products) node->set_input(0, divided);
    return *divided;
  }

  Status scale_weights(const std::vector<Node*>& products, const std::vector<float>& factors) {
    const auto shared = std::make_shared<const std::vector<float>>(factors);
    std::unordered_map<const Value*, Value*> scaled;
    for (Node* node : products) {
      Value* weight = node->input(1);
      // One that is read along both of its axes is scaled along each.
      Value*& made = scaled[is_transposed(*node) ? nullptr : weight];
      const Tensor& tensor = *weight->initializer();
      const std::uint64_t inner = is_transposed(*node) ? 1 : static_cast<std::uint64_t>(tensor.dims[1]);
      if (!made || is_transposed(*node)) {
        made = add_constant(weight->name() + "_smooth", tensor.dims,
                            std::make_shared<ScaledBytes>(tensor.data, inner, shared));
      }
      node->set_input(1, made);
      if (weight->is_unused()) weight->graph()->erase_unused(weight);
    }
    return {};
  }

  Value* add_constant(const std::string& stem, std::vector<std::int64_t> dims, Bytes data) {
    Graph& graph = *model_.graph;
    const Type type = Type::tensor(DataType::float32, static_shape(dims));
    Value* value = graph.add_initializer(
        make_tensor(graph.unique_name(stem), DataType::float32, std::move(dims), std::move(data)));
    value->type = type;
    return value;
  }

  Model& model_;
  QdqOptions options_;
};

}  // namespace

Result<std::vector<std::string>> tensors_to_smooth(Model& model, const QdqOptions& options) {
  MK_CHECK(prepare_qdq(model));
  std::vector<std::string> names;
  for (const auto& [value, products] : Smoother(model, options).candidates()) names.push_back(value->name());
  return names;
}

Result<SmoothReport> smooth_activations(Model& model, const ChannelRanges& channels, TensorRanges& ranges,
                                        const QdqOptions& options) {
  MK_CHECK(prepare_qdq(model));
  return Smoother(model, options).run(channels, ranges);
}

}  // namespace mk
