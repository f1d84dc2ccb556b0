#pragma once
// The GGUF container (ggml, docs/gguf.md), versions 2 and 3, little-endian: facts by key, then tensors as ranges of the
// file. What the blocks of a quantized tensor mean is gguf_blocks.h's, what keys and names mean gguf_model.h's.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace mk {

using GgufValue = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>, std::vector<double>,
                               std::vector<std::string>>;

struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> dims;  // outermost first, as other formats have them
  std::uint32_t type = 0;          // ggml's number
  std::uint64_t offset = 0;        // in the file
  std::uint64_t bytes = 0;
};

struct GgufFile {
  std::shared_ptr<const File> file;
  std::map<std::string, GgufValue, std::less<>> facts;
  std::vector<GgufTensor> tensors;

  // Null where the fact is absent or of another kind. A number that is whole is both.
  template <typename T>
  const T* fact(std::string_view key) const {
    const auto found = facts.find(key);
    return found == facts.end() ? nullptr : std::get_if<T>(&found->second);
  }
  const GgufTensor* tensor(std::string_view name) const;
};

bool is_gguf(const Path& path);  // a file of that kind, by its name

// malformed with the byte offset: no GGUF, a length beyond the file, a tensor outside of it, a name twice. unsupported
// for version 1, big-endian files, and tensor types that gguf_blocks.h does not read.
Result<GgufFile> read_gguf(const Path& path);

}  // namespace mk
