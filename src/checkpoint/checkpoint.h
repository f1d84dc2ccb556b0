#pragma once
// A checkpoint's tensors by name, as views of its files: safetensors (one file, or shards with an index) or
// pytorch_model.bin (zip form, read by a restricted unpickler that can build tensors and nothing else), or GGUF.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/result.h"
#include "checkpoint/quantized_matrix.h"
#include "graph/tensor.h"

namespace mk {

class Checkpoint {
 public:
  // Of a model folder or GGUF file. Prefers model.safetensors(.index.json), pytorch_model.bin(.index.json), GGUF.
  // not_found naming the files looked for; malformed with the file and the tensor or byte offset.
  static Result<Checkpoint> open(const Path& folder);
  static Result<Checkpoint> open_safetensors(const Path& file);
  static Result<Checkpoint> open_pytorch(const Path& file);

  const Tensor* find(std::string_view name) const;
  // The codes of a matrix that is stored quantized (its tensor has the values that they mean); null of any other.
  const QuantizedMatrix* quantized(std::string_view name) const;
  // Sorted by name.
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }
  const std::vector<Path>& files() const { return files_; }
  std::uint64_t total_bytes() const;  // of data; what two names share counts once
  const std::map<std::string, std::string>& metadata() const { return metadata_; }  // safetensors __metadata__

 private:
  friend struct CheckpointReaders;
  std::map<std::string, Tensor, std::less<>> tensors_;
  std::map<std::string, QuantizedMatrix, std::less<>> quantized_;
  std::vector<Path> files_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace mk
