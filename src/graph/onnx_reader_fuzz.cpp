// Any bytes: an error or a model. A model that the verifier accepts is written, read again, and then equals itself:
// what the second reading writes is what the first wrote.

#include <cstdint>
#include <cstdlib>

#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "graph/summary.h"
#include "graph/verifier.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mk;
  const auto model = read_onnx(std::as_bytes(std::span(data, size)), "/nonexistent", {.require_external_data = false});
  if (!model) return 0;
  static_cast<void>(summarize(**model));
  const bool valid = verify(**model).has_value();
  const auto written = serialize_onnx(**model);
  if (!written) std::abort();
  const auto again = read_onnx(std::as_bytes(std::span(*written)), "/nonexistent", {.require_external_data = false});
  if (!again || verify(**again).has_value() != valid) std::abort();
  const auto twice = serialize_onnx(**again);
  if (!twice || *twice != *written) std::abort();
  const auto copy = clone(**again);
  const auto cloned = serialize_onnx(*copy);
  if (!cloned || *cloned != *written) std::abort();
  return 0;
}
