#include "nn/weight_norm.h"

#include <cmath>
#include <cstring>
#include <span>

#include "graph/tensor.h"

namespace mk::nn {
namespace {

Result<std::vector<float>> floats(const Bytes& data, DataType type) {
  MK_TRY(const std::vector<std::byte> bytes, read_all(*cast(data, type, DataType::float32)));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

}  // namespace

Value normed_weight(const Scope& s, std::int64_t rows, std::int64_t columns, std::int64_t width) {
  const Parameter& length = s.parameter("parametrizations.weight.original0", {1, 1, width});
  const Parameter& direction = s.parameter("parametrizations.weight.original1", {rows, columns, width});
  Parameter weight{s.module().path + ".weight", direction.type, direction.dims, nullptr};
  if (length.data && direction.data) {
    const auto fill = [g = length.data, v = direction.data, type = direction.type,
                       lengths = length.type](std::span<std::byte> out) -> Status {
      MK_TRY(std::vector<float> values, floats(v, type));
      MK_TRY(const std::vector<float> wanted, floats(g, lengths));
      std::vector<double> squares(wanted.size());
      for (std::size_t i = 0; i < values.size(); ++i)
        squares[i % squares.size()] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t at = i % squares.size();
        values[i] = static_cast<float>(static_cast<double>(values[i]) * static_cast<double>(wanted[at]) /
                                       std::sqrt(squares[at]));
      }
      std::memcpy(out.data(), values.data(), out.size());
      return {};
    };
    const auto size = static_cast<std::uint64_t>(rows * columns * width) * sizeof(float);
    weight.data = cast(computed(size, fill), DataType::float32, direction.type);
  }
  return s.builder().initializer(weight);
}

}  // namespace mk::nn
