// Any model that can be read: converted or refused; one that was well formed is so afterwards, and its weights can be
// read.

#include <cstdint>
#include <cstdlib>

#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "graph/verifier.h"
#include "quantize/float16.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace mk;
  const auto model = read_onnx(std::as_bytes(std::span(data, size)), "/nonexistent", {.require_external_data = false});
  if (!model) return 0;
  const bool well_formed = verify(**model).has_value();
  for (const bool keep_io_types : {true, false}) {
    const auto copy = clone(**model);
    const auto report = convert_to_float16(*copy, {.keep_io_types = keep_io_types});
    if (!report) continue;
    if (well_formed && !verify(*copy)) std::abort();
    static_cast<void>(serialize_onnx(*copy));
    static_cast<void>(report->out_of_range());
  }
  return 0;
}
