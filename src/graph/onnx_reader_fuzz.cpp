// Any bytes, as an ONNX model.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "graph/onnx_round_trip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string fault = mk::round_trip_fault(std::as_bytes(std::span(data, size)));
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
