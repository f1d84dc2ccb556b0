#include "runtime/host_tensor.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "graph/float_formats.h"

namespace mk {
namespace {

// Half-precision values are kept in these while their type matters.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

double widen(Float16 value) { return float16_value(value.bits); }
double widen(BFloat16 value) { return bfloat16_value(value.bits); }

// Calls `use` with a value of the C++ type of an element type; false where there is none.
template <typename Use>
bool with_type(DataType type, Use&& use) {
  switch (type) {
    case DataType::float32:
      use(float{});
      return true;
    case DataType::float64:
      use(double{});
      return true;
    case DataType::float16:
      use(Float16{});
      return true;
    case DataType::bfloat16:
      use(BFloat16{});
      return true;
    case DataType::uint8:
      use(std::uint8_t{});
      return true;
    case DataType::int8:
      use(std::int8_t{});
      return true;
    case DataType::uint16:
      use(std::uint16_t{});
      return true;
    case DataType::int16:
      use(std::int16_t{});
      return true;
    case DataType::int32:
      use(std::int32_t{});
      return true;
    case DataType::int64:
      use(std::int64_t{});
      return true;
    case DataType::uint32:
      use(std::uint32_t{});
      return true;
    case DataType::uint64:
      use(std::uint64_t{});
      return true;
    case DataType::boolean:
      use(bool{});
      return true;
    default:
      return false;
  }
}

// Reads a value as double, or as itself where it is an integer (64-bit integers do not fit a double).
template <typename T>
auto plain(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return widen(value);
  } else {
    return value;
  }
}

// False where `To` cannot hold the value.
template <typename To, typename From>
bool convert(From value, To& out) {
  if constexpr (std::is_same_v<To, Float16>) {
    out = {float16_bits(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    out = {bfloat16_bits(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<To, bool>) {
    out = value != From{};
  } else if constexpr (std::is_floating_point_v<To>) {
    out = static_cast<To>(value);
  } else if constexpr (std::is_floating_point_v<From>) {
    const double whole = std::trunc(static_cast<double>(value));
    // 2^63 is a double, 2^63 - 1 is not: the upper bound is exclusive.
    const double above = std::ldexp(1.0, std::numeric_limits<To>::digits);
    const double lowest = std::is_signed_v<To> ? -above : 0.0;
    if (!(whole >= lowest && whole < above)) return false;
    out = static_cast<To>(whole);
  } else if constexpr (std::is_same_v<From, bool>) {
    out = static_cast<To>(value);
  } else {
    if (!std::in_range<To>(value)) return false;
    out = static_cast<To>(value);
  }
  return true;
}

template <typename T>
T load(const std::byte* data, std::uint64_t index) {
  if constexpr (std::is_same_v<T, bool>) {
    return data[index] != std::byte{0};
  } else {
    T value;
    std::memcpy(&value, data + index * sizeof(T), sizeof(T));
    return value;
  }
}

Error no_conversion(DataType type, std::string_view name, std::string_view to) {
  return {ErrorCode::unsupported,
          "cannot read " + std::string(name_of(type)) + " values as " + std::string(to),
          std::string(name),
          {}};
}

std::uint64_t product(const std::vector<std::int64_t>& dims) {
  std::uint64_t count = 1;
  for (const std::int64_t dim : dims) count *= static_cast<std::uint64_t>(dim);
  return count;
}

}  // namespace

std::uint64_t HostTensor::element_count() const { return product(dims); }
std::uint64_t TensorView::element_count() const { return product(dims); }

TensorView view_of(const HostTensor& tensor) { return {tensor.name, tensor.type, tensor.dims, tensor.data}; }

Result<HostTensor> zero_tensor(std::string name, DataType type, std::vector<std::int64_t> dims) {
  std::uint64_t count = 1;
  for (const std::int64_t dim : dims) {
    if (dim < 0 || (dim > 0 && count > (std::uint64_t{1} << 48) / static_cast<std::uint64_t>(dim)))
      return fail(ErrorCode::failed, "the shape is too large or negative", name);
    count *= static_cast<std::uint64_t>(dim);
  }
  HostTensor tensor{std::move(name), type, std::move(dims), {}, {}};
  if (type == DataType::string) {
    tensor.strings.resize(count);
    return tensor;
  }
  const auto bytes = byte_size(type, count);
  if (!bytes || (*bytes == 0 && count > 0))
    return fail(ErrorCode::failed, "no tensor can have element type " + std::string(name_of(type)), tensor.name);
  tensor.data.resize(*bytes);
  return tensor;
}

Result<HostTensor> converted(const HostTensor& tensor, DataType type) {
  if (tensor.type == type) return tensor;
  MK_TRY(auto result, zero_tensor(tensor.name, type, tensor.dims));
  const std::uint64_t count = tensor.element_count();
  std::uint64_t failed_at = count;
  const bool known = with_type(tensor.type, [&]<typename From>(From) {
    const bool target_known = with_type(type, [&]<typename To>(To) {
      for (std::uint64_t i = 0; i < count; ++i) {
        To value{};
        if (!convert(plain(load<From>(tensor.data.data(), i)), value)) {
          failed_at = i;
          return;
        }
        std::memcpy(result.data.data() + i * sizeof(To), &value, sizeof(To));
      }
    });
    if (!target_known) failed_at = count + 1;
  });
  if (!known || failed_at > count) return tl::make_unexpected(no_conversion(tensor.type, tensor.name, name_of(type)));
  if (failed_at < count)
    return fail(ErrorCode::failed, "value " + std::to_string(failed_at) + " does not fit " + std::string(name_of(type)),
                tensor.name);
  return result;
}

Result<std::span<const float>> float32_values(const TensorView& tensor, std::vector<float>& scratch) {
  if (tensor.type == DataType::float32)
    return std::span(reinterpret_cast<const float*>(tensor.data.data()), tensor.data.size() / sizeof(float));
  if (!is_float(tensor.type)) return tl::make_unexpected(no_conversion(tensor.type, tensor.name, "float32"));
  scratch.resize(tensor.element_count());
  const bool known = with_type(tensor.type, [&]<typename From>(From) {
    for (std::uint64_t i = 0; i < scratch.size(); ++i)
      scratch[i] = static_cast<float>(plain(load<From>(tensor.data.data(), i)));
  });
  if (!known) return tl::make_unexpected(no_conversion(tensor.type, tensor.name, "float32"));
  return std::span<const float>(scratch);
}

Result<std::vector<double>> float64_values(const HostTensor& tensor) { return float64_values(view_of(tensor)); }

Result<std::vector<double>> float64_values(const TensorView& tensor) {
  std::vector<double> values(tensor.element_count());
  const bool known = with_type(tensor.type, [&]<typename From>(From) {
    for (std::uint64_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(plain(load<From>(tensor.data.data(), i)));
  });
  if (!known) return tl::make_unexpected(no_conversion(tensor.type, tensor.name, "numbers"));
  return values;
}

Result<std::vector<std::int64_t>> int64_values(const HostTensor& tensor) {
  MK_TRY(const auto whole, converted(tensor, DataType::int64));
  const auto values = whole.values<std::int64_t>();
  return std::vector<std::int64_t>(values.begin(), values.end());
}

}  // namespace mk
