#pragma once
// The report of `winml quantize`.

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/path.h"
#include "quantize/quantize.h"
#include "winml/style.h"

namespace mk::cli {

struct QuantizeCommandReport {
  Path model;
  std::string precision;  // "w8a8", "int4 + fp16"
  std::vector<Path> files;
  std::uint64_t bytes_before = 0, bytes_after = 0;
  QuantizeReport quantized;
  double seconds = 0;
};

std::string quantize_text(const QuantizeCommandReport& report, const Style& style);
Json quantize_json(const QuantizeCommandReport& report);

}  // namespace mk::cli
