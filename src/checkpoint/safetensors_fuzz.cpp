// The header of a safetensors file: any bytes give a header or an error, and a header's tensors lie within the data.

#include <cstdlib>
#include <string_view>

#include "checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The first two bytes are the size of the data behind the header.
  if (size < 2) return 0;
  const std::uint64_t data_size = data[0] | std::uint64_t{data[1]} << 8;
  const std::string_view json(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto header = mk::parse_safetensors_header(json, data_size, "fuzz");
  if (!header) {
    if (header.error().message.empty()) std::abort();
    return 0;
  }
  for (const auto& entry : header->entries)
    if (entry.begin > entry.end || entry.end > data_size) std::abort();
  return 0;
}
