#include "graph/tensor.h"

#include <cassert>
#include <limits>

namespace mk {

std::uint64_t Tensor::element_count() const {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t count = 1;
  for (const std::int64_t dim : dims) {
    if (dim <= 0) return 0;
    const auto size = static_cast<std::uint64_t>(dim);
    count = count > most / size ? most : count * size;
  }
  return count;
}

std::uint64_t Tensor::byte_count() const {
  return byte_size(type, element_count()).value_or(std::numeric_limits<std::uint64_t>::max());
}

Tensor make_tensor(std::string name, DataType type, std::vector<std::int64_t> dims, Bytes data) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = type;
  tensor.dims = std::move(dims);
  tensor.data = std::move(data);
  assert(tensor.data == nullptr || tensor.data->size() == tensor.byte_count());
  return tensor;
}

Tensor scalar_tensor(std::string name, float value) {
  return make_tensor(std::move(name), DataType::float32, {}, owned_values(std::span<const float>(&value, 1)));
}

Tensor scalar_tensor(std::string name, std::int64_t value) {
  return make_tensor(std::move(name), DataType::int64, {}, owned_values(std::span<const std::int64_t>(&value, 1)));
}

Tensor int64_tensor(std::string name, std::span<const std::int64_t> values) {
  return make_tensor(std::move(name), DataType::int64, {static_cast<std::int64_t>(values.size())},
                     owned_values(values));
}

}  // namespace mk
