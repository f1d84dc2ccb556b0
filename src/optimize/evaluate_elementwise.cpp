#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "graph/element_access.h"
#include "graph/float_formats.h"
#include "optimize/evaluate.h"

namespace mk {
namespace {

enum class Arithmetic { none, real32, real64, integer };

Arithmetic arithmetic_of(DataType type) {
  switch (type) {
    case DataType::float32:
    case DataType::float16:
    case DataType::bfloat16:
      return Arithmetic::real32;
    case DataType::float64:
      return Arithmetic::real64;
    case DataType::uint64:  // does not fit into int64
      return Arithmetic::none;
    default:
      return (is_integer(type) && bits_of(type) >= 8) || type == DataType::boolean ? Arithmetic::integer
                                                                                   : Arithmetic::none;
  }
}

template <typename T>
Result<std::vector<T>> load(const Tensor& tensor) {
  MK_TRY(const std::vector<std::byte> bytes, read_all(*tensor.data));
  std::vector<T> values(static_cast<std::size_t>(tensor.element_count()));
  if constexpr (std::is_same_v<T, std::int64_t>) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = load_integer(tensor.type, bytes.data(), i);
  } else {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<T>(load_float(tensor.type, bytes.data(), i));
  }
  return values;
}

template <typename T>
void store(DataType type, std::size_t index, T value, std::byte* out) {
  if constexpr (std::is_same_v<T, std::int64_t>) {
    store_integer(type, out, index, value);
  } else {
    const DataType from = std::is_same_v<T, float> ? DataType::float32 : DataType::float64;
    const auto width = static_cast<std::size_t>(bits_of(type)) / 8;
    if (type == from) {
      std::memcpy(out + index * width, &value, sizeof(T));
    } else {
      float_conversion(from, type)(reinterpret_cast<const std::byte*>(&value), out + index * width, 1);
    }
  }
}

// Calls `visit(output index, input indices)` for every element of a shape, inputs broadcast to it.
template <typename Visit>
void for_each_broadcast(const std::vector<std::int64_t>& dims, const std::vector<std::vector<std::int64_t>>& inputs,
                        Visit&& visit) {
  const std::size_t rank = dims.size();
  std::vector<std::vector<std::size_t>> strides;
  for (const std::vector<std::int64_t>& shape : inputs) {
    std::vector<std::size_t>& steps = strides.emplace_back(rank, 0);
    std::size_t step = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
      if (shape[i] != 1) steps[rank - shape.size() + i] = step;
      step *= static_cast<std::size_t>(shape[i]);
    }
  }
  std::size_t count = 1;
  for (const std::int64_t dim : dims) count *= static_cast<std::size_t>(dim);
  std::vector<std::int64_t> at(rank, 0);
  std::vector<std::size_t> offsets(inputs.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    visit(i, offsets);
    for (std::size_t axis = rank; axis-- > 0;) {
      for (std::size_t k = 0; k < offsets.size(); ++k) offsets[k] += strides[k][axis];
      if (++at[axis] < dims[axis]) break;
      for (std::size_t k = 0; k < offsets.size(); ++k) {
        offsets[k] -= strides[k][axis] * static_cast<std::size_t>(dims[axis]);
      }
      at[axis] = 0;
    }
  }
}

bool broadcasts(const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to) {
  if (from.size() > to.size()) return false;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t dim = from[from.size() - 1 - i];
    if (dim != 1 && dim != to[to.size() - 1 - i]) return false;
  }
  return true;
}

// One operator in each arithmetic; null where it has none.
template <typename Function32, typename Function64, typename FunctionInteger>
struct In {
  Function32 real32 = nullptr;
  Function64 real64 = nullptr;
  FunctionInteger integer = nullptr;
  template <typename T>
  auto of() const {
    if constexpr (std::is_same_v<T, float>) {
      return real32;
    } else if constexpr (std::is_same_v<T, double>) {
      return real64;
    } else {
      return integer;
    }
  }
};
template <typename T>
using UnaryOf = T (*)(T);
template <typename T>
using BinaryOf = T (*)(T, T);
template <typename T>
using PredicateOf = bool (*)(T, T);
using Unary = In<UnaryOf<float>, UnaryOf<double>, UnaryOf<std::int64_t>>;
using Binary = In<BinaryOf<float>, BinaryOf<double>, BinaryOf<std::int64_t>>;
using Predicate = In<PredicateOf<float>, PredicateOf<double>, PredicateOf<std::int64_t>>;

template <typename T>
Bytes apply_unary(const EvaluationCall& call, const Unary& operation) {
  const auto function = operation.of<T>();
  const Tensor* x = call.input(0);
  if (!function || !x || x->dims != call.dims || x->type != call.type) return nullptr;
  return call.made([x = *x, function](std::span<std::byte> out) -> Status {
    MK_TRY(const std::vector<T> values, load<T>(x));
    for (std::size_t i = 0; i < values.size(); ++i) store<T>(x.type, i, function(values[i]), out.data());
    return {};
  });
}

// The same type in and out; folds from the left where there are more than two inputs.
template <typename T>
Bytes apply_binary(const EvaluationCall& call, const Binary& operation) {
  const auto function = operation.of<T>();
  if (!function || call.inputs.empty()) return nullptr;
  std::vector<Tensor> inputs;
  std::vector<std::vector<std::int64_t>> shapes;
  for (const auto& input : call.inputs) {
    if (!input || input->type != call.type || !broadcasts(input->dims, call.dims)) return nullptr;
    inputs.push_back(*input);
    shapes.push_back(input->dims);
  }
  return call.made([inputs, shapes, function, dims = call.dims, type = call.type](std::span<std::byte> out) -> Status {
    std::vector<std::vector<T>> values;
    for (const Tensor& input : inputs) {
      MK_TRY(std::vector<T> loaded, load<T>(input));
      values.push_back(std::move(loaded));
    }
    for_each_broadcast(dims, shapes, [&](std::size_t i, const std::vector<std::size_t>& at) {
      T result = values[0][at[0]];
      for (std::size_t k = 1; k < values.size(); ++k) result = function(result, values[k][at[k]]);
      store<T>(type, i, result, out.data());
    });
    return {};
  });
}

template <typename T>
Bytes apply_predicate(const EvaluationCall& call, const Predicate& operation) {
  const auto function = operation.of<T>();
  const Tensor *a = call.input(0), *b = call.input(1);
  if (!function || !a || !b || a->type != b->type || call.type != DataType::boolean) return nullptr;
  if (!broadcasts(a->dims, call.dims) || !broadcasts(b->dims, call.dims)) return nullptr;
  return call.made([a = *a, b = *b, function, dims = call.dims](std::span<std::byte> out) -> Status {
    MK_TRY(const std::vector<T> left, load<T>(a));
    MK_TRY(const std::vector<T> right, load<T>(b));
    for_each_broadcast(dims, {a.dims, b.dims}, [&](std::size_t i, const std::vector<std::size_t>& at) {
      out[i] = static_cast<std::byte>(function(left[at[0]], right[at[1]]) ? 1 : 0);
    });
    return {};
  });
}

template <typename T>
constexpr bool is_whole = std::is_same_v<T, std::int64_t>;

template <typename T>
bool is_nan(T value) {
  if constexpr (is_whole<T>) {
    return false;
  } else {
    return std::isnan(value);
  }
}

// Integers wrap, as they do in ONNX Runtime.
template <typename T, typename Operation>
T wrapping(T a, T b, Operation operation) {
  if constexpr (is_whole<T>) {
    return static_cast<T>(operation(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  } else {
    return operation(a, b);
  }
}

std::int64_t negative(std::int64_t x) { return wrapping(std::int64_t{0}, x, std::minus<>()); }

const Unary* unary_named(std::string_view name) {
  struct Row {
    std::string_view name;
    Unary operation;
  };
  const auto real = [](auto f) { return Unary{f, f, nullptr}; };
  const auto number = [](auto f) { return Unary{f, f, f}; };
  static const std::array rows{
      Row{"Sqrt", real([](auto x) { return std::sqrt(x); })},
      Row{"Exp", real([](auto x) { return std::exp(x); })},
      Row{"Log", real([](auto x) { return std::log(x); })},
      Row{"Sin", real([](auto x) { return std::sin(x); })},
      Row{"Cos", real([](auto x) { return std::cos(x); })},
      Row{"Tanh", real([](auto x) { return std::tanh(x); })},
      Row{"Erf", real([](auto x) { return std::erf(x); })},
      Row{"Sigmoid", real([](auto x) { return 1 / (1 + std::exp(-x)); })},
      Row{"Reciprocal", real([](auto x) { return 1 / x; })},
      Row{"Floor", real([](auto x) { return std::floor(x); })},
      Row{"Ceil", real([](auto x) { return std::ceil(x); })},
      Row{"Round", real([](auto x) { return std::nearbyint(x); })},
      Row{"Neg", Unary{[](float x) { return -x; }, [](double x) { return -x; }, negative}},
      Row{"Abs", Unary{[](float x) { return std::abs(x); }, [](double x) { return std::abs(x); },
                       [](std::int64_t x) { return x < 0 ? negative(x) : x; }}},
      Row{"Relu", number([](auto x) { return x > 0 ? x : decltype(x){0}; })},
      Row{"Sign", number([](auto x) { return static_cast<decltype(x)>((x > 0) - (x < 0)); })},
      Row{"Not", Unary{nullptr, nullptr, [](std::int64_t x) -> std::int64_t { return x == 0; }}},
  };
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &found->operation;
}

const Binary* binary_named(std::string_view name) {
  struct Row {
    std::string_view name;
    Binary operation;
  };
  const auto number = [](auto f) { return Binary{f, f, f}; };
  const auto whole = [](BinaryOf<std::int64_t> f) { return Binary{nullptr, nullptr, f}; };
  static const std::array rows{
      Row{"Add", number([](auto a, auto b) { return wrapping(a, b, std::plus<>()); })},
      Row{"Sum", number([](auto a, auto b) { return wrapping(a, b, std::plus<>()); })},
      Row{"Sub", number([](auto a, auto b) { return wrapping(a, b, std::minus<>()); })},
      Row{"Mul", number([](auto a, auto b) { return wrapping(a, b, std::multiplies<>()); })},
      Row{"Max", number([](auto a, auto b) { return a < b || is_nan(b) ? b : a; })},
      Row{"Min", number([](auto a, auto b) { return b < a || is_nan(b) ? b : a; })},
      Row{"And", whole([](std::int64_t a, std::int64_t b) { return a & b; })},
      Row{"Or", whole([](std::int64_t a, std::int64_t b) { return a | b; })},
      Row{"Xor", whole([](std::int64_t a, std::int64_t b) { return a ^ b; })},
  };
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &found->operation;
}

const Predicate* predicate_named(std::string_view name) {
  struct Row {
    std::string_view name;
    Predicate operation;
  };
  const auto all = [](auto f) { return Predicate{f, f, f}; };
  static const std::array rows{
      Row{"Equal", all([](auto a, auto b) { return a == b; })},
      Row{"Less", all([](auto a, auto b) { return a < b; })},
      Row{"LessOrEqual", all([](auto a, auto b) { return a <= b; })},
      Row{"Greater", all([](auto a, auto b) { return a > b; })},
      Row{"GreaterOrEqual", all([](auto a, auto b) { return a >= b; })},
  };
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &found->operation;
}

Bytes unary(const EvaluationCall& call) {
  const Unary* operation = unary_named(call.node.op_type);
  if (!operation) return nullptr;
  switch (arithmetic_of(call.type)) {
    case Arithmetic::real32:
      return apply_unary<float>(call, *operation);
    case Arithmetic::real64:
      return apply_unary<double>(call, *operation);
    case Arithmetic::integer:
      return apply_unary<std::int64_t>(call, *operation);
    default:
      return nullptr;
  }
}

Bytes binary(const EvaluationCall& call) {
  const Binary* operation = binary_named(call.node.op_type);
  if (!operation) return nullptr;
  switch (arithmetic_of(call.type)) {
    case Arithmetic::real32:
      return apply_binary<float>(call, *operation);
    case Arithmetic::real64:
      return apply_binary<double>(call, *operation);
    case Arithmetic::integer:
      return apply_binary<std::int64_t>(call, *operation);
    default:
      return nullptr;
  }
}

Bytes predicate(const EvaluationCall& call) {
  const Predicate* operation = predicate_named(call.node.op_type);
  const Tensor* a = call.input(0);
  if (!operation || !a) return nullptr;
  switch (arithmetic_of(a->type)) {
    case Arithmetic::real32:
      return apply_predicate<float>(call, *operation);
    case Arithmetic::real64:
      return apply_predicate<double>(call, *operation);
    case Arithmetic::integer:
      return apply_predicate<std::int64_t>(call, *operation);
    default:
      return nullptr;
  }
}

Bytes divide(const EvaluationCall& call) {
  static const Binary reals{[](float a, float b) { return a / b; }, [](double a, double b) { return a / b; }, nullptr};
  static const Binary wholes{nullptr, nullptr, [](std::int64_t a, std::int64_t b) { return a / b; }};
  switch (arithmetic_of(call.type)) {
    case Arithmetic::real32:
      return apply_binary<float>(call, reals);
    case Arithmetic::real64:
      return apply_binary<double>(call, reals);
    case Arithmetic::integer: {
      const Tensor* divisor = call.input(1);
      const auto values = divisor ? integer_values(*divisor) : fail(ErrorCode::failed, "absent");
      if (!values) return nullptr;
      const auto is_special = [](std::int64_t value) { return value == 0 || value == -1; };
      if (std::any_of(values->begin(), values->end(), is_special)) return nullptr;
      return apply_binary<std::int64_t>(call, wholes);
    }
    default:
      return nullptr;
  }
}

// A constant exponent of one element; squares and cubes are products, as in ONNX Runtime.
template <typename T>
Bytes power_of(const EvaluationCall& call, double exponent) {
  const Tensor* x = call.input(0);
  if (x->dims != call.dims || x->type != call.type) return nullptr;
  return call.made([x = *x, exponent](std::span<std::byte> out) -> Status {
    MK_TRY(const std::vector<T> values, load<T>(x));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T v = values[i];
      const T result = exponent == 2   ? v * v
                       : exponent == 3 ? v * v * v
                                       : static_cast<T>(std::pow(v, static_cast<T>(exponent)));
      store<T>(x.type, i, result, out.data());
    }
    return {};
  });
}

Bytes power(const EvaluationCall& call) {
  const Tensor *x = call.input(0), *exponent = call.input(1);
  if (!x || !exponent || exponent->element_count() != 1) return nullptr;
  const auto value = number_values(*exponent);
  if (!value) return nullptr;
  switch (arithmetic_of(call.type)) {
    case Arithmetic::real32:
      return power_of<float>(call, value->front());
    case Arithmetic::real64:
      return power_of<double>(call, value->front());
    default:
      return nullptr;
  }
}

// As Python's for integers; fmod=1 is C's.
Bytes modulo(const EvaluationCall& call) {
  static const Binary floored{nullptr, nullptr, [](std::int64_t a, std::int64_t b) {
                                const std::int64_t rest = a % b;
                                return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
                              }};
  if (arithmetic_of(call.type) != Arithmetic::integer || call.node.integer("fmod", 0) != 0) return nullptr;
  const Tensor* divisor = call.input(1);
  const auto values = divisor ? integer_values(*divisor) : fail(ErrorCode::failed, "absent");
  if (!values) return nullptr;
  if (std::any_of(values->begin(), values->end(), [](auto v) { return v == 0 || v == -1; })) return nullptr;
  return apply_binary<std::int64_t>(call, floored);
}

Bytes where(const EvaluationCall& call) {
  const Tensor *condition = call.input(0), *yes = call.input(1), *no = call.input(2);
  if (!condition || !yes || !no || yes->type != call.type || no->type != call.type) return nullptr;
  for (const Tensor* input : {condition, yes, no}) {
    if (!broadcasts(input->dims, call.dims)) return nullptr;
  }
  return call.made(
      [condition = *condition, yes = *yes, no = *no, dims = call.dims](std::span<std::byte> out) -> Status {
        MK_TRY(const auto choice, read_all(*condition.data));
        MK_TRY(const auto a, read_all(*yes.data));
        MK_TRY(const auto b, read_all(*no.data));
        const auto width = static_cast<std::size_t>(bits_of(yes.type)) / 8;
        for_each_broadcast(dims, {condition.dims, yes.dims, no.dims},
                           [&](std::size_t i, const std::vector<std::size_t>& at) {
                             const bool taken = choice[at[0]] != std::byte{0};
                             const std::byte* from = taken ? a.data() + at[1] * width : b.data() + at[2] * width;
                             std::memcpy(out.data() + i * width, from, width);
                           });
        return {};
      });
}

Bytes cast_elements(const EvaluationCall& call) {
  const Tensor* x = call.input(0);
  if (!x || x->dims != call.dims) return nullptr;
  const Arithmetic from = arithmetic_of(x->type), to = arithmetic_of(call.type);
  if (from == Arithmetic::none || to == Arithmetic::none) return nullptr;
  if (x->type == call.type) return x->data;
  if (from != Arithmetic::integer && to != Arithmetic::integer) return cast(x->data, x->type, call.type);
  if (from != Arithmetic::integer && call.is_large()) return nullptr;
  return call.made([x = *x, from, to, type = call.type](std::span<std::byte> out) -> Status {
    if (from == Arithmetic::integer) {
      MK_TRY(const std::vector<std::int64_t> values, load<std::int64_t>(x));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t value = values[i];
        if (to == Arithmetic::integer) {
          store<std::int64_t>(type, i, value, out.data());
        } else if (to == Arithmetic::real32) {
          store<float>(type, i, static_cast<float>(value), out.data());
        } else {
          store<double>(type, i, static_cast<double>(value), out.data());
        }
      }
      return {};
    }
    MK_TRY(const std::vector<double> values, load<double>(x));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (type == DataType::boolean) {
        out[i] = static_cast<std::byte>(values[i] != 0 ? 1 : 0);
        continue;
      }
      const double limit = std::ldexp(1.0, std::min(bits_of(type) - 1, 62));
      if (!(std::abs(values[i]) < limit)) return fail(ErrorCode::unsupported, "the value does not fit");
      store<std::int64_t>(type, i, static_cast<std::int64_t>(values[i]), out.data());
    }
    return {};
  });
}

}  // namespace

std::span<const KernelRow> elementwise_kernels() {
  static constexpr std::array rows{
      KernelRow{"Sqrt", unary},
      KernelRow{"Exp", unary},
      KernelRow{"Log", unary},
      KernelRow{"Sin", unary},
      KernelRow{"Cos", unary},
      KernelRow{"Tanh", unary},
      KernelRow{"Erf", unary},
      KernelRow{"Sigmoid", unary},
      KernelRow{"Reciprocal", unary},
      KernelRow{"Floor", unary},
      KernelRow{"Ceil", unary},
      KernelRow{"Round", unary},
      KernelRow{"Neg", unary},
      KernelRow{"Abs", unary},
      KernelRow{"Relu", unary},
      KernelRow{"Sign", unary},
      KernelRow{"Not", unary},
      KernelRow{"Add", binary},
      KernelRow{"Sum", binary},
      KernelRow{"Sub", binary},
      KernelRow{"Mul", binary},
      KernelRow{"Max", binary},
      KernelRow{"Min", binary},
      KernelRow{"And", binary},
      KernelRow{"Or", binary},
      KernelRow{"Xor", binary},
      KernelRow{"Equal", predicate},
      KernelRow{"Less", predicate},
      KernelRow{"Greater", predicate},
      KernelRow{"LessOrEqual", predicate},
      KernelRow{"GreaterOrEqual", predicate},
      KernelRow{"Div", divide},
      KernelRow{"Pow", power},
      KernelRow{"Mod", modulo},
      KernelRow{"Where", where},
      KernelRow{"Cast", cast_elements},
  };
  return rows;
}

}  // namespace mk
