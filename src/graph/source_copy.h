#pragma once
// Writes byte sources to a file: ranges of files are copied by the system where it can, the rest goes block by block
// through one buffer that is kept between calls.

#include <cstddef>
#include <memory>

#include "base/file.h"
#include "base/result.h"
#include "graph/tensor.h"

namespace mk {

class SourceCopier {
 public:
  Status copy(const ByteSource& source, FileWriter& file);

 private:
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0;
};

}  // namespace mk
