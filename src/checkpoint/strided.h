#pragma once
// PyTorch's tensors as views of a storage: element (i, j, ...) is at offset + i * strides[0] + j * strides[1] ...

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "graph/tensor.h"

namespace mk {

struct StridedView {
  FileRange storage;
  std::uint64_t width = 0;   // bytes of an element
  std::uint64_t offset = 0;  // in elements, as are the strides
  std::vector<std::int64_t> sizes;
  std::vector<std::int64_t> strides;
};

// The view's elements in row-major order. A contiguous view is the range of the file, so that tensors that share it
// can be told; a transposed one is a lazy transposition; any other is gathered when read.
// The error has only a message: malformed for a view that leaves its storage, unsupported for a view too large to
// gather.
Result<Bytes> strided_bytes(const StridedView& view);

}  // namespace mk
