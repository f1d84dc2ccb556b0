#include "graph/permuted.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace mk {

Tensor permuted(const Tensor& tensor, const std::vector<std::int64_t>& permutation) {
  std::vector<std::int64_t> dims;
  for (const std::int64_t axis : permutation) dims.push_back(tensor.dims[static_cast<std::size_t>(axis)]);
  // One transposition of two groups of dims at a time: the dim that belongs next moves in front of those before it.
  std::vector<std::int64_t> order(permutation.size());
  std::iota(order.begin(), order.end(), 0);
  const auto width = static_cast<std::uint64_t>(bits_of(tensor.type) / 8);
  const auto product = [&](std::size_t from, std::size_t to) {
    std::uint64_t count = 1;
    for (std::size_t i = from; i < to; ++i)
      count *= static_cast<std::uint64_t>(tensor.dims[static_cast<std::size_t>(order[i])]);
    return count;
  };
  Bytes data = tensor.data;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto found = static_cast<std::size_t>(
        std::find(order.begin() + static_cast<std::ptrdiff_t>(i), order.end(), permutation[i]) - order.begin());
    if (found == i) continue;
    // [before i][i, found)[the dims that already follow in the order wanted][after] with the two middle groups swapped.
    std::size_t end = found + 1;
    while (end < order.size() && i + (end - found) < order.size() && order[end] == permutation[i + (end - found)])
      ++end;
    const std::uint64_t rows = product(i, found);
    const std::uint64_t columns = product(found, end);
    const std::uint64_t inner = product(end, order.size());
    if (rows != 1 && columns != 1) {
      if (inner == 1) {
        data = transposed(std::move(data), product(0, i), rows, columns, width);
      } else {
        // [rows, columns, inner] -> [columns, inner, rows] -> [columns, rows, inner].
        data = transposed(std::move(data), product(0, i), rows, columns * inner, width);
        data = transposed(std::move(data), product(0, i) * columns, inner, rows, width);
      }
    }
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(i), order.begin() + static_cast<std::ptrdiff_t>(found),
                order.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return make_tensor(tensor.name, tensor.type, std::move(dims), std::move(data));
}

}  // namespace mk
