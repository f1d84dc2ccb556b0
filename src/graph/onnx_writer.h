#pragma once
// Writes the IR as ONNX. Weights are streamed: memory does not grow with the model.

#include <cstdint>
#include <string>
#include <vector>

#include "base/path.h"
#include "base/publish.h"
#include "base/result.h"
#include "graph/ir.h"

namespace mk {

enum class ExternalData {
  automatic,  // when the serialized model reaches 100 MiB, or the model it came from had external data
  always,
  never,  // failed when the result would pass 2 GiB
};

struct WriteOptions {
  ExternalData external = ExternalData::automatic;
  std::uint64_t external_threshold = 100u << 20;  // bytes
  std::uint64_t inline_below = 1024;              // tensors smaller than this stay in the model file
};

struct WrittenModel {
  std::vector<Path> files;  // the model first, then its data file
  std::uint64_t bytes = 0;
};

// Adds `path` (and `path`.data) to the publication; nothing has its final name before commit.
Result<WrittenModel> write_onnx(const Model& model, const Path& path, Publication& publication, bool overwrite,
                                const WriteOptions& options = {});
// The whole model in memory, for tests and small graphs.
Result<std::string> serialize_onnx(const Model& model);

// The model in memory without the data of its larger initializers (sub-graphs keep theirs): for readers that are handed
// the tensors beside it.
struct SkeletonModel {
  std::string bytes;                  // names them as external data at a location that is no file
  std::vector<const Tensor*> beside;  // of the model's graph, each of at least `inline_below` bytes
};
Result<SkeletonModel> serialize_skeleton(const Model& model, std::uint64_t inline_below = 1024);

}  // namespace mk
