#pragma once
// What must hold for any bytes, for the fuzzer and for the tests that run its corpus: they are an error or a model, and
// a model is written, read again and cloned without a change.

#include <span>
#include <string>

#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "graph/summary.h"
#include "graph/verifier.h"

namespace mk {

// Empty where it holds, and what does not where not.
inline std::string round_trip_fault(std::span<const std::byte> bytes) {
  const ReadOptions options{.require_external_data = false};
  const auto model = read_onnx(bytes, "/nonexistent", options);
  if (!model) return {};
  static_cast<void>(summarize(**model));
  const auto written = serialize_onnx(**model);
  if (!written) return "not written: " + written.error().to_string();
  const auto again = read_onnx(std::as_bytes(std::span(*written)), "/nonexistent", options);
  if (!again) return "not read again: " + again.error().to_string();
  if (verify(**model).has_value() != verify(**again).has_value()) return "valid only once";
  const auto twice = serialize_onnx(**again);
  if (!twice || *twice != *written) return "written differently the second time";
  const auto cloned = serialize_onnx(*clone(**again));
  if (!cloned || *cloned != *written) return "cloned with a difference";
  return {};
}

}  // namespace mk
