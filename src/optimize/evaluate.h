#pragma once
// ONNX operators on constants, in the arithmetic of their type (float16 and bfloat16 in float32, rounded at the end, as
// ONNX Runtime does). Results that are large are computed when they are read; views of an input share its bytes.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "graph/ir.h"

namespace mk {

// What a kernel sees of a node: its inputs (nothing where one is absent) and the type of one output.
struct EvaluationCall {
  const Node& node;
  std::int64_t opset = 0;
  const std::vector<std::optional<Tensor>>& inputs;
  std::size_t output = 0;
  DataType type = DataType::undefined;
  std::vector<std::int64_t> dims;

  const Tensor* input(std::size_t i) const { return i < inputs.size() && inputs[i] ? &*inputs[i] : nullptr; }
  // Integers of an attribute, or of an input where there is no such attribute.
  std::optional<std::vector<std::int64_t>> integers(std::string_view name, std::size_t input) const;
  bool is_large() const;
  // The output by made_bytes: `fill` holds all that it needs, and fails for reading only where the result is large.
  Bytes made(std::function<Status(std::span<std::byte>)> fill) const;
};

// `fill` at once, or where the result is large when it is read. Null where it failed.
Bytes made_bytes(DataType type, const std::vector<std::int64_t>& dims,
                 std::function<Status(std::span<std::byte>)> fill);

// The bytes of the output; null where the kernel cannot tell.
using Kernel = Bytes (*)(const EvaluationCall& call);

struct KernelRow {
  std::string_view op_type;
  Kernel kernel;
};
std::span<const KernelRow> elementwise_kernels();
std::span<const KernelRow> layout_kernels();
// Null where there is none. Of ai.onnx.
Kernel kernel_of(std::string_view op_type);

// Every output of the node that has a static type, by index; nothing where one of them cannot be computed.
std::optional<std::vector<Tensor>> evaluate(const Node& node, std::int64_t opset,
                                            const std::vector<std::optional<Tensor>>& inputs);

}  // namespace mk
