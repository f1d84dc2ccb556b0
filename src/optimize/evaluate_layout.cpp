#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "graph/element_access.h"
#include "graph/node_facts.h"
#include "graph/permuted.h"
#include "optimize/evaluate.h"

namespace mk {
namespace {

std::size_t width_of(DataType type) { return static_cast<std::size_t>(bits_of(type)) / 8; }

std::int64_t product(const std::vector<std::int64_t>& dims, std::size_t from, std::size_t to) {
  return std::accumulate(dims.begin() + static_cast<std::ptrdiff_t>(from),
                         dims.begin() + static_cast<std::ptrdiff_t>(to), std::int64_t{1}, std::multiplies<>());
}

std::vector<std::int64_t> strides_of(const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

// Elements of `x` at `start` + sum of index * stride, for every index of the output's shape.
Bytes strided(const Tensor& x, const std::vector<std::int64_t>& dims, std::int64_t start,
              std::vector<std::int64_t> strides) {
  if (bits_of(x.type) < 8) return nullptr;
  return made_bytes(x.type, dims, [x, start, strides = std::move(strides), dims](std::span<std::byte> out) -> Status {
    MK_TRY(const std::vector<std::byte> from, read_all(*x.data));
    const std::size_t width = width_of(x.type), rank = dims.size();
    const bool runs = rank > 0 && strides[rank - 1] == 1;
    const std::size_t run = (runs ? static_cast<std::size_t>(dims[rank - 1]) : 1) * width;
    const std::size_t axes = runs ? rank - 1 : rank;
    std::vector<std::int64_t> at(axes, 0);
    std::int64_t offset = start;
    for (std::size_t done = 0; run > 0 && done + run <= out.size(); done += run) {
      std::memcpy(out.data() + done, from.data() + static_cast<std::size_t>(offset) * width, run);
      for (std::size_t axis = axes; axis-- > 0;) {
        offset += strides[axis];
        if (++at[axis] < dims[axis]) break;
        offset -= strides[axis] * dims[axis];
        at[axis] = 0;
      }
    }
    return {};
  });
}

Bytes same_bytes(const EvaluationCall& call) {
  const Tensor* x = call.input(0);
  return x && x->type == call.type ? x->data : nullptr;
}

Bytes permuted_bytes(const Tensor& x, const std::vector<std::int64_t>& perm) {
  const std::size_t rank = x.dims.size();
  if (perm.size() != rank || bits_of(x.type) < 8) return nullptr;
  for (const std::int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(rank)) return nullptr;
  }
  return permuted(x, perm).data;
}

Bytes transpose(const EvaluationCall& call) {
  const Tensor* x = call.input(0);
  if (!x || x->type != call.type) return nullptr;
  std::vector<std::int64_t> perm(x->dims.size());
  for (std::size_t i = 0; i < perm.size(); ++i) perm[i] = static_cast<std::int64_t>(perm.size() - 1 - i);
  if (const auto* given = call.node.integers("perm")) perm = *given;
  return permuted_bytes(*x, perm);
}

Bytes expand(const EvaluationCall& call) {
  const Tensor* x = call.input(0);
  if (!x || x->type != call.type || x->dims.size() > call.dims.size()) return nullptr;
  const std::vector<std::int64_t> own = strides_of(x->dims);
  std::vector<std::int64_t> strides(call.dims.size(), 0);
  const std::size_t missing = call.dims.size() - x->dims.size();
  for (std::size_t i = 0; i < x->dims.size(); ++i) {
    if (x->dims[i] == 1) continue;
    if (x->dims[i] != call.dims[missing + i]) return nullptr;
    strides[missing + i] = own[i];
  }
  return strided(*x, call.dims, 0, std::move(strides));
}

Bytes slice(const EvaluationCall& call) {
  const Tensor* x = call.input(0);
  const auto starts = call.integers("starts", 1), ends = call.integers("ends", 2);
  if (!x || x->type != call.type || !starts || !ends || starts->size() != ends->size()) return nullptr;
  const std::size_t rank = x->dims.size();
  std::vector<std::int64_t> axes(starts->size()), steps(starts->size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (call.node.attribute("axes") || call.input(3)) {
    const auto given = call.integers("axes", 3);
    if (!given) return nullptr;
    axes = *given;
  }
  if (call.input(4)) {
    const auto given = call.integers("steps", 4);
    if (!given) return nullptr;
    steps = *given;
  }
  if (axes.size() != starts->size() || steps.size() != starts->size()) return nullptr;
  std::vector<std::int64_t> strides = strides_of(x->dims);
  std::int64_t start = 0;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto axis = normal_axis(axes[i], rank);
    if (!axis || steps[i] == 0) return nullptr;
    const std::int64_t dim = x->dims[*axis];
    std::int64_t first = (*starts)[i];
    if (first < 0) first += dim;
    first = std::clamp<std::int64_t>(first, 0, steps[i] > 0 ? dim : std::max<std::int64_t>(dim - 1, 0));
    start += first * strides[*axis];
    strides[*axis] *= steps[i];
  }
  const bool is_empty = std::find(call.dims.begin(), call.dims.end(), 0) != call.dims.end();
  return strided(*x, call.dims, is_empty ? 0 : start, std::move(strides));
}

Bytes split(const EvaluationCall& call) {
  const Tensor* x = call.input(0);
  if (!x || x->type != call.type) return nullptr;
  const auto axis = normal_axis(call.node.integer("axis", 0), x->dims.size());
  if (!axis) return nullptr;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < call.output; ++i) {
    const Value* before = call.node.output(i);
    const Shape* shape = before && before->type.shape ? &*before->type.shape : nullptr;
    if (!shape || shape->size() <= *axis || !(*shape)[*axis].is_known()) return nullptr;
    start += (*shape)[*axis].value;
  }
  const std::vector<std::int64_t> strides = strides_of(x->dims);
  const std::int64_t offset = start * strides[*axis];
  return strided(*x, call.dims, offset, strides);
}

Bytes concat(const EvaluationCall& call) {
  const auto axis = normal_axis(call.node.integer("axis", 0), call.dims.size());
  if (!axis) return nullptr;
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor* part = call.input(i);
    if (!part || part->type != call.type || part->dims.size() != call.dims.size() || bits_of(part->type) < 8) {
      return nullptr;
    }
    parts.push_back(*part);
  }
  const std::int64_t outer = product(call.dims, 0, *axis);
  if (outer == 0) return owned_bytes({});
  if (outer == 1) {
    std::vector<Bytes> bytes;
    bytes.reserve(parts.size());
    for (const Tensor& part : parts) bytes.push_back(part.data);
    return concatenated(std::move(bytes));
  }
  return call.made([parts, outer](std::span<std::byte> out) -> Status {
    std::size_t row = 0;
    for (const Tensor& part : parts) {
      row += static_cast<std::size_t>(part.byte_count()) / static_cast<std::size_t>(outer);
    }
    std::size_t column = 0;
    for (const Tensor& part : parts) {
      MK_TRY(const auto from, read_all(*part.data));
      const std::size_t length = from.size() / static_cast<std::size_t>(outer);
      for (std::size_t i = 0; i < static_cast<std::size_t>(outer) && length > 0; ++i) {
        std::memcpy(out.data() + i * row + column, from.data() + i * length, length);
      }
      column += length;
    }
    return {};
  });
}

Bytes gather(const EvaluationCall& call) {
  const Tensor *x = call.input(0), *indices = call.input(1);
  if (!x || !indices || bits_of(x->type) < 8 || x->type != call.type) return nullptr;
  const auto axis = normal_axis(call.node.integer("axis", 0), x->dims.size());
  auto at = integer_values(*indices);
  if (!axis || !at) return nullptr;
  const std::int64_t dim = x->dims[*axis];
  for (std::int64_t& index : *at) {
    if (index < 0) index += dim;
    if (index < 0 || index >= dim) return nullptr;
  }
  const auto outer = static_cast<std::size_t>(product(x->dims, 0, *axis));
  const std::size_t inner = static_cast<std::size_t>(product(x->dims, *axis + 1, x->dims.size())) * width_of(x->type);
  return call.made([x = *x, at = *at, dim, outer, inner](std::span<std::byte> out) -> Status {
    std::byte* to = out.data();
    for (std::size_t i = 0; i < outer; ++i) {
      for (const std::int64_t index : at) {
        const std::size_t from = (i * static_cast<std::size_t>(dim) + static_cast<std::size_t>(index)) * inner;
        MK_CHECK(x.data->read(from, {to, inner}));
        to += inner;
      }
    }
    return {};
  });
}

Bytes tile(const EvaluationCall& call) {
  const Tensor* x = call.input(0);
  const std::size_t rank = call.dims.size();
  if (!x || x->dims.size() != rank || bits_of(x->type) < 8) return nullptr;
  return call.made([x = *x, dims = call.dims](std::span<std::byte> out) -> Status {
    MK_TRY(const auto from, read_all(*x.data));
    const std::size_t width = width_of(x.type);
    const std::vector<std::int64_t> to = strides_of(dims), own = strides_of(x.dims);
    for (std::size_t i = 0; i < out.size() / width; ++i) {
      std::int64_t rest = static_cast<std::int64_t>(i), source = 0;
      for (std::size_t axis = 0; axis < dims.size(); ++axis) {
        source += rest / to[axis] % x.dims[axis] * own[axis];
        rest %= to[axis];
      }
      std::memcpy(out.data() + i * width, from.data() + static_cast<std::size_t>(source) * width, width);
    }
    return {};
  });
}

Bytes constant_of_shape(const EvaluationCall& call) {
  std::vector<std::byte> element(width_of(call.type));
  if (const Attribute* attribute = call.node.attribute("value")) {
    const auto* held = std::get_if<std::shared_ptr<const Tensor>>(&attribute->value);
    if (!held || !(*held)->data || (*held)->data->size() != element.size()) return nullptr;
    if (!(*held)->data->read(0, element)) return nullptr;
  }
  return call.made([element](std::span<std::byte> out) -> Status {
    for (std::size_t i = 0; i < out.size(); i += element.size()) {
      std::memcpy(out.data() + i, element.data(), element.size());
    }
    return {};
  });
}

template <typename T>
Bytes range_in(const EvaluationCall& call, T start, T step) {
  return call.made([start, step](std::span<std::byte> out) -> Status {
    T value = start;  // added up, as ONNX Runtime does
    for (std::size_t i = 0; i < out.size(); i += sizeof(T), value += step) {
      std::memcpy(out.data() + i, &value, sizeof(T));
    }
    return {};
  });
}

Bytes range(const EvaluationCall& call) {
  const Tensor *start = call.input(0), *step = call.input(2);
  if (!start || !step) return nullptr;
  if (call.type == DataType::float32) {
    const auto a = number_values(*start), d = number_values(*step);
    if (!a || !d || a->empty() || d->empty()) return nullptr;
    return range_in<float>(call, static_cast<float>(a->front()), static_cast<float>(d->front()));
  }
  const auto a = integer_values(*start), d = integer_values(*step);
  if (!a || !d || a->empty() || d->empty()) return nullptr;
  if (call.type == DataType::int64) return range_in<std::int64_t>(call, a->front(), d->front());
  if (call.type != DataType::int32) return nullptr;
  return range_in<std::int32_t>(call, static_cast<std::int32_t>(a->front()), static_cast<std::int32_t>(d->front()));
}

Bytes trilu(const EvaluationCall& call) {
  const Tensor* x = call.input(0);
  if (!x || x->dims.size() < 2 || bits_of(x->type) < 8) return nullptr;
  std::int64_t k = 0;
  if (const Tensor* given = call.input(1)) {
    const auto values = integer_values(*given);
    if (!values || values->size() != 1) return nullptr;
    k = values->front();
  }
  const bool upper = call.node.integer("upper", 1) != 0;
  return call.made([x = *x, k, upper](std::span<std::byte> out) -> Status {
    MK_CHECK(x.data->read(0, out));
    const std::int64_t rows = x.dims[x.dims.size() - 2], columns = x.dims.back();
    const std::size_t width = width_of(x.type);
    for (std::size_t i = 0; i < out.size() / width; ++i) {
      const std::int64_t column = static_cast<std::int64_t>(i) % columns;
      const std::int64_t row = static_cast<std::int64_t>(i) / columns % rows;
      const bool stays = upper ? column - row >= k : column - row <= k;
      if (!stays) std::memset(out.data() + i * width, 0, width);
    }
    return {};
  });
}

}  // namespace

std::span<const KernelRow> layout_kernels() {
  static constexpr std::array rows{
      KernelRow{"Identity", same_bytes},
      KernelRow{"Reshape", same_bytes},
      KernelRow{"Flatten", same_bytes},
      KernelRow{"Squeeze", same_bytes},
      KernelRow{"Unsqueeze", same_bytes},
      KernelRow{"Transpose", transpose},
      KernelRow{"Expand", expand},
      KernelRow{"Slice", slice},
      KernelRow{"Split", split},
      KernelRow{"Concat", concat},
      KernelRow{"Gather", gather},
      KernelRow{"Tile", tile},
      KernelRow{"ConstantOfShape", constant_of_shape},
      KernelRow{"Range", range},
      KernelRow{"Trilu", trilu},
  };
  return rows;
}

}  // namespace mk
