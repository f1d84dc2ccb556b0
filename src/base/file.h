#pragma once
// Files read and written in blocks, at offsets. No mapping: mapped pages count as our memory, a truncated file would be
// a signal, and Windows locks the source.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/result.h"

namespace mk {

// What tells one state of a file from another without reading it.
struct FileStamp {
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;  // since 1970
  std::int64_t changed_ns = 0;   // of its metadata; programs cannot set it back
  std::uint64_t inode = 0;
};

// A file open for reading. Reads at offsets do not share a position: one File may be read by several threads.
class File {
 public:
  // not_found where there is no such file (or it is a folder), unsupported for pipes and devices, failed for other
  // errors of the system. Symbolic links are followed.
  static Result<std::shared_ptr<const File>> open(const Path& path);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const Path& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // at the time it was opened
  Result<FileStamp> stamp() const;              // now

  // Fills `out` from `offset`; malformed when the file ends first.
  Status read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  friend class OutputFile;
  File(Path path, std::intptr_t handle, std::uint64_t size) : path_(std::move(path)), handle_(handle), size_(size) {}
  Path path_;
  std::intptr_t handle_;
  std::uint64_t size_;
};

class OutputFile;

// A new file, written sequentially. It is what the caller named at once: to publish it whole, see base/publish.h.
// Small pieces are gathered in a buffer. The first error stays: every later call returns it again.
class FileWriter {
 public:
  // exists where there is a file of that name already.
  static Result<FileWriter> create(const Path& path);
  // For Publication, which goes on to hold the file that the writer fills.
  explicit FileWriter(std::shared_ptr<OutputFile> output);
  FileWriter(FileWriter&& other) noexcept;
  FileWriter& operator=(FileWriter&& other) noexcept;
  ~FileWriter();  // closes; what was written stays. An error that only close() would tell is lost here.

  const Path& path() const;
  std::uint64_t position() const;

  Status write(std::span<const std::byte> bytes);
  Status write(std::string_view text);
  Status pad_to(std::uint64_t alignment);  // zero bytes up to a multiple of it
  // Appends bytes of another file; in the kernel where the system can.
  Status copy_from(const File& source, std::uint64_t offset, std::uint64_t length);
  Status sync();   // fsync
  Status close();  // reports what a late error of the system says

 private:
  std::shared_ptr<OutputFile> output_;
};

// A whole small file. `limit` guards against reading gigabytes as configuration: malformed when the file is larger.
Result<std::string> read_text(const Path& path, std::uint64_t limit = 64u << 20);

// The same from whatever can be read once: a pipe, too, as a shell's <(...) makes one.
Result<std::string> read_stream(const Path& path, std::uint64_t limit = 64u << 20);

// Sorted names in a folder, hidden ones too.
Result<std::vector<Path>> list_folder(const Path& folder);

}  // namespace mk
