#pragma once
// What FileWriter and Publication share: a file that is being written, its buffer and its first error.
// Not thread-safe.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/file.h"

namespace mk {

class OutputFile {
 public:
  static constexpr std::size_t buffer_bytes = 256 << 10;

  // `handle` is open for writing at position 0, and owned. Errors name `shown` (the final name of a temporary file).
  OutputFile(Path path, Path shown, std::intptr_t handle)
      : path_(std::move(path)), shown_(std::move(shown)), handle_(handle) {}
  ~OutputFile() { close_handle(); }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const Path& path() const { return path_; }
  std::uint64_t position() const { return position_; }

  Status append(std::span<const std::byte> bytes);
  Status append_from(const File& source, std::uint64_t offset, std::uint64_t length);
  Status sync();
  Status close();

 private:
  Status begin(std::string_view action);  // the first error, or that the file is closed
  Status keep(Error error);
  Status flush();
  Result<std::byte*> room_for(std::size_t bytes);  // in the buffer, which is flushed when it is too full

  Status copy_blocks(const File& source, std::uint64_t offset, std::uint64_t length);

  // By the system. copy_range lets the kernel copy what it can, and moves `offset` and `length` on by that.
  Status write_all(std::span<const std::byte> bytes);
  Status copy_range(const File& source, std::uint64_t& offset, std::uint64_t& length);
  Status sync_handle();
  Status close_handle();

  Path path_;
  Path shown_;
  std::intptr_t handle_;
  std::uint64_t position_ = 0;
  std::unique_ptr<std::byte[]> buffer_;  // of buffer_bytes, made when first used
  std::size_t buffered_ = 0;
  std::optional<Error> error_;
};

}  // namespace mk
