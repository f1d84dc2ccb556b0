#pragma once
// The safetensors format (huggingface/safetensors, README "Format"): eight bytes little-endian N, a JSON object of N
// bytes {name: {dtype, shape, data_offsets: [begin, end]}}, then the data without holes. Checked as strictly as the
// reference reader does: a header that is no object or over 100 MB, a name twice, sizes that overflow or do not match
// the shape, holes, overlaps, missing and trailing bytes are malformed.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "graph/data_type.h"

namespace mk {

struct SafetensorsEntry {
  std::string name;
  DataType type = DataType::undefined;
  std::vector<std::int64_t> dims;
  std::uint64_t begin = 0;  // from the end of the header
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        // sorted by name
  std::map<std::string, std::string> metadata;  // __metadata__
  std::uint64_t data_begin = 0;                 // of the data, in the file
};

// The JSON alone; `data_size` is what follows it, `where` what errors call the file.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::uint64_t data_size,
                                                   const std::string& where);
Result<SafetensorsHeader> read_safetensors_header(const File& file);

}  // namespace mk
