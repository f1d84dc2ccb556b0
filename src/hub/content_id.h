#pragma once
// The SHA-256 of files' content, at little cost: a large file's is kept in the cache folder with its size and times,
// and a blob of the Hub's cache has it for a name.

#include <chrono>
#include <string>
#include <utility>

#include "base/path.h"
#include "base/result.h"

namespace mk {

class ContentIds {
 public:
  // `memory` is the folder of what is remembered; it is made when needed, and need not be writable.
  // A file changed less than `settling` ago is not remembered: it could change again within one tick of its times.
  explicit ContentIds(Path memory, std::chrono::nanoseconds settling = std::chrono::seconds(2))
      : memory_(std::move(memory)), settling_(settling) {}
  // In the tool's own cache folder.
  static ContentIds from_environment();

  // 64 hex digits. Errors are those of reading the file.
  Result<std::string> sha256(const Path& file) const;

 private:
  Path memory_;
  std::chrono::nanoseconds settling_;
};

}  // namespace mk
