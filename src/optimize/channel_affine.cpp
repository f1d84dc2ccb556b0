#include "optimize/channel_affine.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "optimize/constants.h"

namespace mk {
namespace {

bool is_foldable(DataType type) {
  return type == DataType::float32 || type == DataType::float64 || type == DataType::float16 ||
         type == DataType::bfloat16;
}

// A weight in float32 or float64 whose channels are multiplied as they are read.
template <typename T>
class ScaledBytes final : public ByteSource {
 public:
  ScaledBytes(Bytes source, const ChannelLayout& layout, std::vector<double> factor)
      : source_(std::move(source)), layout_(layout), factor_(std::move(factor)) {}
  std::uint64_t size() const override { return source_->size(); }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t first = offset / sizeof(T), end = (offset + out.size() + sizeof(T) - 1) / sizeof(T);
    if (offset % sizeof(T) == 0 && out.size() % sizeof(T) == 0) {
      MK_CHECK(source_->read(offset, out));
      scale(first, out);
      return {};
    }
    std::vector<std::byte> whole((end - first) * sizeof(T));
    MK_CHECK(source_->read(first * sizeof(T), whole));
    scale(first, whole);
    std::memcpy(out.data(), whole.data() + (offset - first * sizeof(T)), out.size());
    return {};
  }

 private:
  void scale(std::uint64_t first, std::span<std::byte> elements) const {
    const std::uint64_t count = elements.size() / sizeof(T);
    for (std::uint64_t done = 0; done < count;) {
      const std::uint64_t at = first + done, run = at / layout_.inner;
      const std::uint64_t group = run / layout_.channels / layout_.rows_per_group;
      const double factor = factor_[group * layout_.channels + run % layout_.channels];
      const std::uint64_t length = std::min(count - done, layout_.inner - at % layout_.inner);
      for (std::uint64_t i = done; i < done + length; ++i) {
        T value;
        std::memcpy(&value, elements.data() + i * sizeof(T), sizeof(T));
        value = static_cast<T>(static_cast<double>(value) * factor);
        std::memcpy(elements.data() + i * sizeof(T), &value, sizeof(T));
      }
      done += length;
    }
  }

  Bytes source_;
  ChannelLayout layout_;
  std::vector<double> factor_;
};

Tensor scaled(const Tensor& weight, const ChannelLayout& layout, const std::vector<double>& factor) {
  Tensor result = make_tensor(weight.name, weight.type, weight.dims, nullptr);
  if (weight.type == DataType::float64) {
    result.data = std::make_shared<ScaledBytes<double>>(weight.data, layout, factor);
    return result;
  }
  const bool is_narrow = weight.type != DataType::float32;
  const Bytes source = is_narrow ? cast(weight.data, weight.type, DataType::float32) : weight.data;
  result.data = std::make_shared<ScaledBytes<float>>(source, layout, factor);
  if (is_narrow) result.data = cast(result.data, DataType::float32, weight.type);
  return result;
}

double largest(DataType type) {
  return type == DataType::float64 ? 1.7e308 : type == DataType::float16 ? 65504 : 3.3e38;
}

bool all_finite(const std::vector<double>& values, DataType type) {
  for (const double value : values) {
    if (!std::isfinite(value) || std::abs(value) > largest(type)) return false;
  }
  return true;
}

}  // namespace

std::optional<Tensor> vector_of(DataType type, const std::vector<double>& values) {
  if (!all_finite(values, type)) return std::nullopt;
  const auto count = static_cast<std::int64_t>(values.size());
  if (type == DataType::float64) return make_tensor({}, type, {count}, owned_values(values));
  const std::vector<float> narrow(values.begin(), values.end());
  const Bytes bytes = owned_values(narrow);
  return make_tensor({}, type, {count}, type == DataType::float32 ? bytes : cast(bytes, DataType::float32, type));
}

std::optional<ChannelLayout> channel_layout(const Node& layer, const Tensor& weight) {
  const std::vector<std::int64_t>& dims = weight.dims;
  if (dims.size() < 2 || weight.element_count() == 0) return std::nullopt;
  const auto product = [&](std::size_t from) {
    return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(from), dims.end(), std::uint64_t{1},
                           [](std::uint64_t a, std::int64_t b) { return a * static_cast<std::uint64_t>(b); });
  };
  const auto dim = [&](std::size_t i) { return static_cast<std::uint64_t>(dims[i]); };
  const auto groups = static_cast<std::uint64_t>(std::max<std::int64_t>(layer.integer("group", 1), 1));
  if (layer.op_type == "Conv") return ChannelLayout{product(1), dim(0)};
  if (layer.op_type == "ConvTranspose") {
    if (dim(0) % groups != 0) return std::nullopt;
    return ChannelLayout{product(2), dim(1), dim(0) / groups, groups};
  }
  if (dims.size() != 2) return std::nullopt;
  if (layer.integer("transB", 0) != 0) return ChannelLayout{dim(1), dim(0)};
  return ChannelLayout{1, dim(1)};
}

std::optional<std::vector<double>> per_channel(const Value* constant, int rank, int axis, std::uint64_t channels) {
  const std::optional<Tensor> tensor = constant_of(constant);
  if (!tensor || !is_foldable(tensor->type) || static_cast<int>(tensor->dims.size()) > rank) return std::nullopt;
  const int missing = rank - static_cast<int>(tensor->dims.size());
  for (std::size_t i = 0; i < tensor->dims.size(); ++i) {
    const bool is_channel = static_cast<int>(i) + missing == axis;
    const std::int64_t dim = tensor->dims[i];
    if (dim != 1 && !(is_channel && static_cast<std::uint64_t>(dim) == channels)) return std::nullopt;
  }
  auto values = number_values(*tensor);
  if (!values || values->empty()) return std::nullopt;
  if (values->size() == 1) values->assign(channels, values->front());
  return std::move(*values);
}

FoldedLayer fold_affine(Patch& patch, const Node& layer, const ChannelAffine& affine) {
  const auto cannot = [](std::string reason) { return FoldedLayer{std::nullopt, std::move(reason)}; };
  const std::optional<Tensor> weight = constant_of(layer.input(1));
  if (!weight) return cannot("the weight is no constant");
  if (!is_foldable(weight->type)) return cannot("the weight is of type " + std::string(name_of(weight->type)));
  const std::optional<ChannelLayout> layout = channel_layout(layer, *weight);
  if (!layout) return cannot("the weight's dims do not fit");
  const std::uint64_t channels = layout->total();
  if ((!affine.factor.empty() && affine.factor.size() != channels) ||
      (!affine.offset.empty() && affine.offset.size() != channels)) {
    return cannot("there is not one number for each output channel");
  }
  std::vector<double> bias;
  const bool is_gemm = layer.op_type == "Gemm";
  if (const Value* old = layer.input(2)) {
    auto values = per_channel(old, is_gemm ? 2 : 1, is_gemm ? 1 : 0, channels);
    if (!values) return cannot("the bias is not one constant for each output channel");
    bias = std::move(*values);
  }
  const double beta = is_gemm && !bias.empty() ? static_cast<double>(layer.real("beta", 1)) : 1;
  const bool has_offset = !affine.offset.empty() || !bias.empty();
  if (has_offset) {
    bias.resize(channels, 0);
    for (std::size_t i = 0; i < channels; ++i) {
      bias[i] = bias[i] * beta * (affine.factor.empty() ? 1 : affine.factor[i]) +
                (affine.offset.empty() ? 0 : affine.offset[i]);
    }
  }
  const std::optional<Tensor> new_bias = vector_of(weight->type, bias);
  if (!all_finite(affine.factor, weight->type) || !new_bias) return cannot("the folded weights would not be finite");
  const bool turns_gemm = layer.op_type == "MatMul" && has_offset;
  std::vector<PatchValue> inputs{layer.input(0), layer.input(1)};
  if (!affine.factor.empty()) inputs[1] = patch.constant(scaled(*weight, *layout, affine.factor));
  if (has_offset) {
    Tensor made = *new_bias;
    if (const Value* old = layer.input(2)) made.name = old->name();
    inputs.push_back(patch.constant(std::move(made)));
  }
  PatchNode node = patch.op(turns_gemm ? "Gemm" : layer.op_type, std::move(inputs));
  for (const Attribute& attribute : layer.attributes()) {
    if (attribute.name != "beta") node.with(attribute);
  }
  return {node, {}};
}

}  // namespace mk
