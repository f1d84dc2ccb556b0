// Any model that can be read: types are inferred or an error says why not, again with what the first run wrote, and
// what is inferred is well formed.

#include <cstdint>
#include <cstdlib>

#include "graph/onnx_reader.h"
#include "graph/shape_inference.h"

namespace {

void check(const mk::Type& type) {
  if (type.inner) check(*type.inner);
  if (!type.shape) return;
  for (const mk::Dim& dim : *type.shape) {
    if (dim.value < -1 || (dim.value >= 0 && !dim.symbol.empty())) std::abort();
  }
}

void check(mk::Graph& graph) {
  mk::for_each_node(graph, [](const mk::Node& node) {
    for (const mk::Value* output : node.outputs()) {
      if (output) check(output->type);
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mk;
  const auto model = read_onnx(std::as_bytes(std::span(data, size)), "/nonexistent", {.require_external_data = false});
  if (!model) return 0;
  for (int round = 0; round < 2 && infer_shapes(**model); ++round) check(*(*model)->graph);
  return 0;
}
