// Values of small tensors as numbers.

#include "graph/element_access.h"
#include "graph/tensor.h"

namespace mk {
namespace {

// All bytes of the tensor: those in memory, else read into `buffer`.
Result<std::span<const std::byte>> bytes_of(const Tensor& tensor, std::vector<std::byte>& buffer) {
  if (!tensor.data) return fail(ErrorCode::failed, "the tensor has no data", "tensor " + tensor.name);
  if (tensor.data->size() != tensor.byte_count()) {
    return fail(ErrorCode::malformed, "the tensor's data has another size than its shape says",
                "tensor " + tensor.name);
  }
  if (const auto memory = tensor.data->in_memory()) return *memory;
  MK_TRY(buffer, read_all(*tensor.data));
  return std::span<const std::byte>(buffer);
}

tl::unexpected<Error> not_numbers(const Tensor& tensor, std::string_view wanted) {
  return fail(ErrorCode::unsupported,
              std::string(name_of(tensor.type)) + " where " + std::string(wanted) + " are expected",
              "tensor " + tensor.name);
}

bool is_whole(DataType type) { return is_integer(type) || type == DataType::boolean; }

}  // namespace

Result<std::vector<std::int64_t>> integer_values(const Tensor& tensor) {
  if (!is_whole(tensor.type)) return not_numbers(tensor, "integers");
  std::vector<std::byte> buffer;
  MK_TRY(const std::span<const std::byte> bytes, bytes_of(tensor, buffer));
  std::vector<std::int64_t> values(static_cast<std::size_t>(tensor.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = load_integer(tensor.type, bytes.data(), i);
    if (tensor.type == DataType::uint64 && values[i] < 0) {
      return fail(ErrorCode::malformed, "a uint64 that int64 does not hold", "tensor " + tensor.name);
    }
  }
  return values;
}

Result<std::vector<double>> number_values(const Tensor& tensor) {
  if (!is_whole(tensor.type) && !is_float(tensor.type)) return not_numbers(tensor, "numbers");
  std::vector<std::byte> buffer;
  MK_TRY(const std::span<const std::byte> bytes, bytes_of(tensor, buffer));
  std::vector<double> values(static_cast<std::size_t>(tensor.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_float(tensor.type)) {
      values[i] = load_float(tensor.type, bytes.data(), i);
    } else {
      const std::int64_t value = load_integer(tensor.type, bytes.data(), i);
      values[i] = tensor.type == DataType::uint64 ? static_cast<double>(static_cast<std::uint64_t>(value))
                                                  : static_cast<double>(value);
    }
  }
  return values;
}

}  // namespace mk
