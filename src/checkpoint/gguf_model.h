#pragma once
// A GGUF file as the checkpoint that it was made from: tensors under the names of transformers with what the conversion
// did to them undone (rows of queries and keys in pairs, norms stored as weight + 1, GPT-2's transposed matrices), and
// a config.json. Sources: llama.cpp's convert_hf_to_gguf.py and transformers' GGUF tables.

#include <map>
#include <string>

#include "base/json_fwd.h"
#include "checkpoint/gguf.h"
#include "checkpoint/quantized_matrix.h"
#include "graph/tensor.h"

namespace mk {

// unsupported for an architecture that has no builder here, naming those that have.
Result<Json> gguf_config(const GgufFile& file);
// Quantized tensors are float32, computed as they are read; those that MatMulNBits can hold have their codes beside
// them.
struct GgufWeights {
  std::map<std::string, Tensor, std::less<>> tensors;
  std::map<std::string, QuantizedMatrix, std::less<>> quantized;
};
Result<GgufWeights> gguf_weights(const GgufFile& file);

// The only GGUF file of a folder, or the path itself where it is one; empty where there is none. usage for several.
Result<Path> gguf_of(const Path& folder);

}  // namespace mk
