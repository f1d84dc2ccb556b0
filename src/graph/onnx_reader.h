#pragma once
// Reads ONNX files (onnx.proto3, IR 3 to current) straight from the wire format into the IR, without protobuf.
// Tensor data from 1 KiB on stays a range of the file or of the external data files. Fields that we do not know are
// kept in all messages but dimensions, metadata entries and opset imports, and are written back.
//
// A model that was read is consistent (names are defined, once; data has the size that its shape says), but may still
// be wrong: see verifier.h.

#include <memory>
#include <span>

#include "base/path.h"
#include "base/progress.h"
#include "base/result.h"
#include "graph/ir.h"

namespace mk {

struct ReadOptions {
  Progress* progress = nullptr;  // for warnings (an initializer that an input contradicts, a missing data file ...)
  // A missing or short external data file is an error; with false those tensors have no data and a warning says so.
  bool require_external_data = true;
};

// not_found, or malformed with the byte offset or the node's name.
Result<std::unique_ptr<Model>> read_onnx(const Path& path, const ReadOptions& options = {});
// From memory; external data is looked for in `folder`.
Result<std::unique_ptr<Model>> read_onnx(std::span<const std::byte> bytes, const Path& folder,
                                         const ReadOptions& options = {});

}  // namespace mk
