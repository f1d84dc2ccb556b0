#include "nn/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

namespace mk::nn {
namespace {

void fail_shapes(const Scope& s, std::string_view what, Value a, Value b) {
  if (!a || !b) return;
  s.builder().fail({ErrorCode::malformed,
                    fmt::format("the configuration's sizes do not fit together: {} of {} and {}", what,
                                to_string(a.shape()), to_string(b.shape())),
                    s.module().path.empty() ? s.module().class_name : s.module().path, ""});
}

// Null where they cannot match.
std::optional<Dim> broadcast(const Dim& a, const Dim& b) {
  if (a.value == 1) return b;
  if (b.value == 1) return a;
  if (a.is_known() && b.is_known()) return a.value == b.value ? std::optional(a) : std::nullopt;
  if (a.is_known()) return a;
  if (b.is_known()) return b;
  return a.is_symbolic() ? a : b;
}

// Of all axes but the last `skip`.
std::optional<Shape> broadcast(const Shape& a, const Shape& b, std::size_t skip = 0) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape result(rank - skip);
  for (std::size_t i = skip; i < rank; ++i) {
    const Dim one = Dim::known(1);
    const auto dim = broadcast(i < a.size() ? a[a.size() - 1 - i] : one, i < b.size() ? b[b.size() - 1 - i] : one);
    if (!dim) return std::nullopt;
    result[rank - 1 - i] = *dim;
  }
  return result;
}

Value elementwise(const Scope& s, const char* type, Value a, Value b, DataType result = DataType::undefined) {
  if (!a || !b) return {};
  auto shape = broadcast(a.shape(), b.shape());
  if (!shape) {
    fail_shapes(s, type, a, b);
    return {};
  }
  return Op(s, type, {a, b}).out(result == DataType::undefined ? a.type() : result, std::move(*shape));
}

Value constant(const Scope& s, Value like, double value) {
  return like ? s.builder().scalar(like.type(), value) : Value();
}

// Unknown where it is beyond int64: no tensor is that large.
Dim product(const Dim& a, const Dim& b) {
  if (a.value == 1) return b;
  if (b.value == 1) return a;
  if (!a.is_known() || !b.is_known()) return {};
  if (b.value > 0 && a.value > INT64_MAX / b.value) return {};
  return Dim::known(a.value * b.value);
}

int positive(int axis, Value x) { return axis < 0 ? axis + x.rank() : axis; }

}  // namespace

Value add(const Scope& s, Value a, Value b) { return elementwise(s, "Add", a, b); }
Value sub(const Scope& s, Value a, Value b) { return elementwise(s, "Sub", a, b); }
Value mul(const Scope& s, Value a, Value b) { return elementwise(s, "Mul", a, b); }
Value div(const Scope& s, Value a, Value b) { return elementwise(s, "Div", a, b); }
Value pow(const Scope& s, Value a, double exponent) { return elementwise(s, "Pow", a, constant(s, a, exponent)); }
Value add(const Scope& s, Value a, double b) { return add(s, a, constant(s, a, b)); }
Value sub(const Scope& s, double a, Value b) { return sub(s, constant(s, b, a), b); }
Value sub(const Scope& s, Value a, double b) { return sub(s, a, constant(s, a, b)); }
Value mul(const Scope& s, Value a, double b) { return mul(s, a, constant(s, a, b)); }
Value div(const Scope& s, Value a, double b) { return div(s, a, constant(s, a, b)); }
Value minimum(const Scope& s, Value a, Value b) { return elementwise(s, "Min", a, b); }
Value greater(const Scope& s, Value a, Value b) { return elementwise(s, "Greater", a, b, DataType::boolean); }
Value equal(const Scope& s, Value a, Value b) { return elementwise(s, "Equal", a, b, DataType::boolean); }

Value where(const Scope& s, Value condition, Value a, Value b) {
  if (!condition || !a || !b) return {};
  auto both = broadcast(a.shape(), b.shape());
  auto all = both ? broadcast(condition.shape(), *both) : std::nullopt;
  if (!all) {
    fail_shapes(s, "Where", a, b);
    return {};
  }
  return Op(s, "Where", {condition, a, b}).out(a.type(), std::move(*all));
}

Value clip(const Scope& s, Value x, double low, double high) {
  return Op(s, "Clip", {x, constant(s, x, low), constant(s, x, high)}).like(x);
}

Value unary(const Scope& s, const char* type, Value x) { return Op(s, type, {x}).like(x); }

Value cast(const Scope& s, Value x, DataType type) {
  if (!x || x.type() == type) return x;
  return Op(s, "Cast", {x}).with("to", static_cast<std::int64_t>(type)).out(type, x.shape());
}

Value matmul(const Scope& s, Value a, Value b) {
  if (!a || !b) return {};
  const Dim inner = a.dim(-1), other = b.dim(-2);
  auto shape = broadcast(a.shape(), b.shape(), 2);
  if (!shape || (inner.is_known() && other.is_known() && inner.value != other.value)) {
    fail_shapes(s, "MatMul", a, b);
    return {};
  }
  shape->push_back(a.dim(-2));
  shape->push_back(b.dim(-1));
  return Op(s, "MatMul", {a, b}).out(a.type(), std::move(*shape));
}

Value softmax(const Scope& s, Value x, int axis) { return Op(s, "Softmax", {x}).with("axis", axis).like(x); }

Value reduce(const Scope& s, const char* type, Value x, std::vector<std::int64_t> axes, bool keep_axes) {
  if (!x) return {};
  Shape shape;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const bool reduced = std::find(axes.begin(), axes.end(), axis) != axes.end() ||
                         std::find(axes.begin(), axes.end(), axis - x.rank()) != axes.end();
    if (!reduced) shape.push_back(x.dim(axis));
    if (reduced && keep_axes) shape.push_back(Dim::known(1));
  }
  const int axes_are_an_input_since = std::string_view(type) == "ReduceSum" ? 13 : 18;
  if (s.builder().opset() >= axes_are_an_input_since)
    return Op(s, type, {x, s.builder().integers(std::move(axes))})
        .with("keepdims", keep_axes ? 1 : 0)
        .out(x.type(), std::move(shape));
  return Op(s, type, {x})
      .with("axes", std::move(axes))
      .with("keepdims", keep_axes ? 1 : 0)
      .out(x.type(), std::move(shape));
}

Value reduce_mean(const Scope& s, Value x, std::vector<std::int64_t> axes, bool keep_axes) {
  return reduce(s, "ReduceMean", x, std::move(axes), keep_axes);
}

Value first_largest(const Scope& s, Value x, int axis, bool keep_axis) {
  if (!x) return {};
  Shape shape = x.shape();
  const auto at = shape.begin() + positive(axis, x);
  if (keep_axis)
    *at = Dim::known(1);
  else
    shape.erase(at);
  return Op(s, "ArgMax", {x})
      .with("axis", axis)
      .with("keepdims", keep_axis ? 1 : 0)
      .out(DataType::int64, std::move(shape));
}

Value pick(const Scope& s, Value x, Value index) {
  if (!x || !index) return {};
  Shape shape = x.shape();
  shape.erase(shape.begin() + 1);
  return Op(s, "GatherND", {x, index}).with("batch_dims", 1).out(x.type(), std::move(shape));
}

Value cumsum(const Scope& s, Value x, int axis) {
  return Op(s, "CumSum", {x, s.builder().scalar(DataType::int64, axis)}).like(x);
}

Value transpose(const Scope& s, Value x, std::vector<std::int64_t> permutation) {
  Shape shape;
  for (const std::int64_t axis : permutation) shape.push_back(x.dim(static_cast<int>(axis)));
  return Op(s, "Transpose", {x}).with("perm", std::move(permutation)).out(x.type(), std::move(shape));
}

Value reshape(const Scope& s, Value x, std::vector<std::int64_t> sizes) {
  if (!x) return {};
  // What the axes that are not kept multiply to: a number, times at most one axis of unknown size.
  Dim from = Dim::known(1), to = Dim::known(1);
  std::vector<Dim> unknown;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    if (i < sizes.size() && sizes[i] == keep) continue;
    if (x.dim(axis).is_known())
      from = product(from, x.dim(axis));
    else
      unknown.push_back(x.dim(axis));
  }
  Shape shape;
  std::size_t open = sizes.size();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    shape.push_back(sizes[i] == keep ? x.dim(static_cast<int>(i)) : Dim{sizes[i], {}, {}});
    if (sizes[i] == rest) open = i;
    if (sizes[i] > 0) to = product(to, Dim::known(sizes[i]));
  }
  const bool fits = from.value > 0 && to.value > 0 &&
                    (!unknown.empty() || (open == sizes.size() ? from == to : from.value % to.value == 0));
  if (!fits) {
    fail_shapes(s, "Reshape", x, s.builder().integers(sizes));
    return {};
  }
  if (open < sizes.size()) {
    if (unknown.empty())
      shape[open] = Dim::known(from.value / to.value);
    else
      shape[open] = unknown.size() == 1 && from == to ? unknown.front() : Dim{};
  }
  return Op(s, "Reshape", {x, s.builder().integers(std::move(sizes))}).out(x.type(), std::move(shape));
}

Value flatten(const Scope& s, Value x, int axis) {
  if (!x) return {};
  Dim sides[2] = {Dim::known(1), Dim::known(1)};
  for (int i = 0; i < x.rank(); ++i) {
    Dim& side = sides[i < axis ? 0 : 1];
    side = product(side, x.dim(i));
  }
  return Op(s, "Flatten", {x}).with("axis", axis).out(x.type(), {sides[0], sides[1]});
}

Value unsqueeze(const Scope& s, Value x, int axis) {
  if (!x) return {};
  Shape shape = x.shape();
  shape.insert(shape.begin() + (axis < 0 ? axis + x.rank() + 1 : axis), Dim::known(1));
  return Op(s, "Unsqueeze", {x, s.builder().integers({axis})}).out(x.type(), std::move(shape));
}

Value concat(const Scope& s, std::initializer_list<Value> parts, int axis) {
  const Value first = *parts.begin();
  if (!first) return {};
  Shape shape = first.shape();
  Dim& total = shape[static_cast<std::size_t>(positive(axis, first))];
  total = Dim::known(0);
  for (const Value& part : parts) {
    const Dim dim = part.dim(axis);
    total = total.is_known() && dim.is_known() ? Dim::known(total.value + dim.value) : Dim{};
    for (int i = 0; i < first.rank(); ++i) {
      Dim& known = shape[static_cast<std::size_t>(i)];
      if (i != positive(axis, first) && !known.is_known() && part.dim(i).is_known()) known = part.dim(i);
    }
  }
  return Op(s, "Concat", parts).with("axis", axis).out(first.type(), std::move(shape));
}

Value slice(const Scope& s, Value x, int axis, std::int64_t begin, std::int64_t end) {
  if (!x) return {};
  Shape shape = x.shape();
  Dim& dim = shape[static_cast<std::size_t>(positive(axis, x))];
  if (dim.is_known()) {
    const auto bound = [&](std::int64_t at) {
      return std::clamp<std::int64_t>(at < 0 ? at + dim.value : at, 0, dim.value);
    };
    dim = Dim::known(std::max<std::int64_t>(0, bound(end) - bound(begin)));
  } else if (begin != 0 || end != to_the_end) {
    dim = Dim{};
  }
  Builder& b = s.builder();
  return Op(s, "Slice", {x, b.integers({begin}), b.integers({end}), b.integers({axis})})
      .out(x.type(), std::move(shape));
}

Value slice(const Scope& s, Value x, int axis, Value begin, Value end) {
  if (!x) return {};
  Shape shape = x.shape();
  shape[static_cast<std::size_t>(positive(axis, x))] = Dim{};
  return Op(s, "Slice", {x, begin, end, s.builder().integers({axis})}).out(x.type(), std::move(shape));
}

Value take(const Scope& s, Value x, int axis, std::int64_t index) {
  if (!x) return {};
  Shape shape = x.shape();
  shape.erase(shape.begin() + positive(axis, x));
  return Op(s, "Gather", {x, s.builder().scalar(DataType::int64, static_cast<double>(index))})
      .with("axis", axis)
      .out(x.type(), std::move(shape));
}

Value gather(const Scope& s, Value table, Value indices) {
  if (!table || !indices) return {};
  Shape shape = indices.shape();
  for (int axis = 1; axis < table.rank(); ++axis) shape.push_back(table.dim(axis));
  return Op(s, "Gather", {table, indices}).out(table.type(), std::move(shape));
}

Value size(const Scope& s, Value x, int axis) {
  if (!x) return {};
  Builder& b = s.builder();
  if (x.dim(axis).is_known()) return b.integers({x.dim(axis).value});
  const int from = positive(axis, x);
  if (b.opset() >= 15)
    return Op(s, "Shape", {x}).with("start", from).with("end", from + 1).out(DataType::int64, static_shape({1}));
  return slice(s, Op(s, "Shape", {x}).out(DataType::int64, static_shape({x.rank()})), 0, from, from + 1);
}

Value expand_batch(const Scope& s, Value x, Value like) {
  if (!x || !like || like.dim(0).value == 1) return x;
  Builder& b = s.builder();
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(x.rank()), 1);
  Value target;
  if (like.dim(0).is_known()) {
    sizes[0] = like.dim(0).value;
    target = b.integers(std::move(sizes));
  } else {
    sizes.pop_back();
    target = sizes.empty() ? size(s, like, 0) : concat(s, {size(s, like, 0), b.integers(std::move(sizes))}, 0);
  }
  Shape shape = x.shape();
  shape[0] = like.dim(0);
  return Op(s, "Expand", {x, target}).out(x.type(), std::move(shape));
}

}  // namespace mk::nn
