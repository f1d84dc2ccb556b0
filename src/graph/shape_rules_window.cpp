// Windows that slide over symbolic lengths: convolution and pooling as in the operators' specifications
// (floor((length + padding - extent) / stride) + 1), their transpose, and resizing by factors that are whole.

#include <cmath>
#include <string>

#include "graph/shape_rules.h"

namespace mk {
namespace {

using Length = std::optional<SymbolicInt>;

struct Window {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t padding = 0;  // both sides together
  // Elements of the input that one position covers; nothing on overflow.
  std::optional<std::int64_t> extent() const {
    std::int64_t reach = 0;
    if (kernel < 1 || dilation < 1 || __builtin_mul_overflow(kernel - 1, dilation, &reach)) return std::nullopt;
    return reach == INT64_MAX ? std::nullopt : std::optional(reach + 1);
  }
};

std::int64_t at_or(const std::vector<std::int64_t>* list, std::size_t i, std::int64_t otherwise) {
  return list && i < list->size() ? (*list)[i] : otherwise;
}

std::optional<Window> window_of(const NodeFacts& node, const Shape* weight, std::size_t axis, std::size_t axes) {
  const auto* kernel = node.integers("kernel_shape");
  Window window;
  if (kernel) {
    window.kernel = at_or(kernel, axis, -1);
  } else {
    window.kernel = weight && weight->size() == axes + 2 ? (*weight)[axis + 2].value : -1;
  }
  window.stride = at_or(node.integers("strides"), axis, 1);
  window.dilation = at_or(node.integers("dilations"), axis, 1);
  const auto* pads = node.integers("pads");
  const bool overflows = __builtin_add_overflow(at_or(pads, axis, 0), at_or(pads, axis + axes, 0), &window.padding);
  return window.kernel < 1 || window.stride < 1 || overflows ? std::nullopt : std::optional(window);
}

Length slide(const SymbolicInt& length, const Window& window, std::string_view auto_pad) {
  const auto extent = window.extent();
  if (!extent) return std::nullopt;
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") return divide_up(length, window.stride);
  Length room = subtract(length, *extent);
  if (room && auto_pad == "NOTSET") room = add(*room, window.padding);
  const Length steps = room ? divide_down(*room, window.stride) : std::nullopt;
  return steps ? add(*steps, 1) : std::nullopt;
}

void complete_windows(const NodeFacts& node, const Shape* weight, std::vector<Type>& outputs) {
  const Shape* in = node.input_shape(0);
  if (!in || in->size() < 3 || outputs.empty()) return;
  const std::string_view auto_pad = node.string("auto_pad", "NOTSET");
  for (Type& output : outputs) {
    if (!output.is_tensor() || !output.shape || output.shape->size() != in->size()) continue;
    for (std::size_t i = 2; i < in->size(); ++i) {
      const auto length = SymbolicInt::of((*in)[i]);
      const auto window = window_of(node, weight, i - 2, in->size() - 2);
      if (length && window) complete((*output.shape)[i], slide(*length, *window, auto_pad));
    }
  }
}

}  // namespace

void complete_convolution(const NodeFacts& node, std::vector<Type>& outputs) {
  complete_windows(node, node.input_shape(node.node().op_type == "QLinearConv" ? 3 : 1), outputs);
}

std::string convolution_problem(const NodeFacts& node) {
  const bool transposed = node.node().op_type == "ConvTranspose";
  const std::int64_t group = node.integer("group", 1);
  if (group < 1) return "a group of " + std::to_string(group);
  const Shape* in = node.input_shape(0);
  const Shape* weight = node.input_shape(1);
  if (!in || !weight || in->size() < 3 || weight->size() < 3) return {};
  const std::int64_t channels = (*in)[1].value, taken = (*weight)[transposed ? 0 : 1].value;
  if (channels < 1 || taken < 1) return {};
  const std::int64_t expected = transposed ? taken : taken * group;
  if (channels == expected) return {};
  return "an input of " + std::to_string(channels) + " channels for weights that take " + std::to_string(expected);
}

void complete_pooling(const NodeFacts& node, std::vector<Type>& outputs) {
  if (node.integer("ceil_mode", 0) == 0 && node.attribute("kernel_shape")) complete_windows(node, nullptr, outputs);
}

void complete_transposed_convolution(const NodeFacts& node, std::vector<Type>& outputs) {
  const Shape* in = node.input_shape(0);
  Shape* out = in && in->size() >= 3 ? shape_of_rank(outputs, in->size()) : nullptr;
  if (!out || node.attribute("output_shape") || node.string("auto_pad", "NOTSET") != "NOTSET") return;
  const auto* output_padding = node.integers("output_padding");
  for (std::size_t i = 2; i < in->size(); ++i) {
    const auto length = SymbolicInt::of((*in)[i]);
    const auto window = window_of(node, node.input_shape(1), i - 2, in->size() - 2);
    const auto extent = window ? window->extent() : std::nullopt;
    if (!length || !extent) continue;
    // stride * (length - 1) + output_padding + extent - padding
    Length total = subtract(*length, 1);
    if (total) total = multiply(*total, window->stride);
    if (total) total = add(*total, at_or(output_padding, i - 2, 0));
    if (total) total = add(*total, *extent);
    if (total) total = subtract(*total, window->padding);
    complete((*out)[i], total);
  }
}

void complete_resize(const NodeFacts& node, std::vector<Type>& outputs) {
  const Shape* in = node.input_shape(0);
  Shape* out = in ? shape_of_rank(outputs, in->size()) : nullptr;
  if (!out || node.attribute("axes")) return;
  if (node.has_input(3) && node.string("keep_aspect_ratio_policy", "stretch") == "stretch") {
    const KnownValue* sizes = node.input_value(3);
    if (!sizes || sizes->elements.size() != in->size()) return;
    for (std::size_t i = 0; i < in->size(); ++i) complete((*out)[i], sizes->elements[i]);
    return;
  }
  const Tensor* scales = node.input_tensor(node.input_count() > 2 ? 2 : 1);
  const auto values = scales ? number_values(*scales) : Result<std::vector<double>>();
  if (!values || values->size() != in->size()) return;
  for (std::size_t i = 0; i < in->size(); ++i) {
    const auto length = SymbolicInt::of((*in)[i]);
    const double scale = (*values)[i];
    const double inverse = 1.0 / scale;
    if (!length || !(scale > 1e-6) || !(scale < 1e6)) continue;
    if (scale == std::floor(scale)) complete((*out)[i], multiply(*length, static_cast<std::int64_t>(scale)));
    if (inverse == std::floor(inverse)) complete((*out)[i], divide_down(*length, static_cast<std::int64_t>(inverse)));
  }
}

}  // namespace mk
