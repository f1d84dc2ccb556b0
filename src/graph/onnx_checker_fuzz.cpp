// Any model that can be read is accepted or refused by ONNX's checker, and keeps what it has.

#include <cstdint>
#include <cstdlib>

#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "graph/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mk;
  const auto model = read_onnx(std::as_bytes(std::span(data, size)), "/nonexistent", {.require_external_data = false});
  if (!model) return 0;
  const auto before = serialize_onnx(**model);
  static_cast<void>(check_onnx(**model));
  const auto after = serialize_onnx(**model);
  if (!before || !after || *before != *after) std::abort();
  return 0;
}
