#pragma once
// A lock on a named file, among processes: flock, as Python's filelock takes it, so that both may share a cache. It
// ends with the object, or with the process however that ends. The file stays.

#include <cstdint>
#include <functional>
#include <utility>

#include "base/path.h"
#include "base/result.h"

namespace mk {

class FileLock {
 public:
  // Makes the file and its folders, and waits while another holds the lock; `on_wait` is called once, where that is so.
  // interrupted when the user asks to stop. Where the file system has no locks, it does
  // not wait.
  static Result<FileLock> acquire(const Path& file, const std::function<void()>& on_wait);
  FileLock(FileLock&& other) noexcept : handle_(std::exchange(other.handle_, -1)), is_exclusive_(other.is_exclusive_) {}
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();
  // False where the file system has no locks, or grants them to everybody at once (some network file systems do).
  bool is_exclusive() const { return is_exclusive_; }

 private:
  explicit FileLock(std::intptr_t handle) : handle_(handle) {}
  std::intptr_t handle_;
  bool is_exclusive_ = false;
};

}  // namespace mk
