#pragma once
// The external data files of a model that is being read (onnx's docs/ExternalData.md). A location is relative to the
// model's folder and stays inside it; links are followed. Files stay open while the tensors live, so that they may be
// replaced meanwhile; past the first hundred they are opened at each read instead.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/path.h"
#include "base/result.h"
#include "graph/tensor.h"

namespace mk {

class ExternalFiles {
 public:
  explicit ExternalFiles(Path folder) : folder_(std::move(folder)) {}

  // not_found where there is no such file; malformed where the range is not in it or the location leads elsewhere.
  Result<Bytes> range(const std::string& location, std::uint64_t offset, std::uint64_t length);

  // In order of first mention, those that are missing too.
  std::vector<std::string> locations;

 private:
  struct Entry {
    Path path;
    std::uint64_t size = 0;
    std::shared_ptr<const File> file;  // null past the first hundred
  };
  Result<const Entry*> entry(const std::string& location);
  Path folder_;
  std::map<std::string, Entry> entries_;
};

}  // namespace mk
