#include "optimize/evaluate.h"

#include <unordered_map>

#include "optimize/constants.h"

namespace mk {
namespace {

// Results up to this size are made at once: passes look at them, and they cost less than what would make them.
constexpr std::uint64_t large = 64 << 10;

}  // namespace

std::optional<std::vector<std::int64_t>> EvaluationCall::integers(std::string_view name, std::size_t i) const {
  if (const auto* list = node.integers(name)) return *list;
  const Tensor* tensor = input(i);
  if (!tensor || !is_integer(tensor->type)) return std::nullopt;
  auto values = integer_values(*tensor);
  return values ? std::optional(std::move(*values)) : std::nullopt;
}

bool EvaluationCall::is_large() const { return make_tensor({}, type, dims, nullptr).byte_count() > large; }

Bytes EvaluationCall::made(std::function<Status(std::span<std::byte>)> fill) const {
  return made_bytes(type, dims, std::move(fill));
}

Bytes made_bytes(DataType type, const std::vector<std::int64_t>& dims,
                 std::function<Status(std::span<std::byte>)> fill) {
  const std::uint64_t size = make_tensor({}, type, dims, nullptr).byte_count();
  if (size > large) return computed(size, std::move(fill));
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  if (!fill(bytes)) return nullptr;
  return owned_bytes(std::move(bytes));
}

Kernel kernel_of(std::string_view op_type) {
  static const auto table = [] {
    std::unordered_map<std::string_view, Kernel> kernels;
    for (const auto& [name, kernel] : elementwise_kernels()) kernels.emplace(name, kernel);
    for (const auto& [name, kernel] : layout_kernels()) kernels.emplace(name, kernel);
    return kernels;
  }();
  const auto found = table.find(op_type);
  return found == table.end() ? nullptr : found->second;
}

std::optional<std::vector<Tensor>> evaluate(const Node& node, std::int64_t opset,
                                            const std::vector<std::optional<Tensor>>& inputs) {
  const Kernel kernel = node.domain.empty() || node.domain == "ai.onnx" ? kernel_of(node.op_type) : nullptr;
  if (!kernel) return std::nullopt;
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < node.outputs().size(); ++i) {
    const Value* output = node.output(i);
    const auto dims = static_dims(output);
    if (!dims || bits_of(output->type.element) < 8) return std::nullopt;
    const EvaluationCall call{node, opset, inputs, i, output->type.element, *dims};
    Bytes bytes = kernel(call);
    Tensor tensor = make_tensor({}, call.type, *dims, bytes);
    if (!bytes || bytes->size() != tensor.byte_count()) return std::nullopt;
    outputs.push_back(std::move(tensor));
  }
  return outputs;
}

}  // namespace mk
