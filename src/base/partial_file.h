#pragma once
// A file that grows over several runs: what an earlier run wrote stays, and more is added behind it. Not buffered: what
// append() took is there after the process was killed. One writer at a time is the caller's business
// (base/file_lock.h).

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/path.h"
#include "base/result.h"

namespace mk {

class PartialFile {
 public:
  static Result<PartialFile> open(const Path& path);  // made where it is not there
  PartialFile(PartialFile&& other) noexcept
      : path_(std::move(other.path_)), handle_(std::exchange(other.handle_, -1)), size_(other.size_) {}
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  std::uint64_t size() const { return size_; }
  const Path& path() const { return path_; }
  Status append(std::span<const std::byte> bytes);
  Status clear();  // back to no bytes
  Status sync();

 private:
  PartialFile(Path path, std::intptr_t handle, std::uint64_t size)
      : path_(std::move(path)), handle_(handle), size_(size) {}
  Path path_;
  std::intptr_t handle_;
  std::uint64_t size_;
};

}  // namespace mk
