#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/file.h"
#include "base/output_file.h"
#include "base/system_error.h"

namespace mk {
namespace {

// Linux moves at most this many bytes in one call.
constexpr std::size_t largest_transfer = 0x7ffff000;

tl::unexpected<Error> system_fail(std::string_view action, const Path& path) {
  return tl::make_unexpected(system_error(last_system_error(), action, path));
}

// A path with a zero byte would name another file to the system.
bool nameable(const Path& path) { return path.native().find('\0') == std::string::npos; }

int open_retrying(const Path& path, int flags, mode_t mode = 0) {
  int handle;
  do handle = ::open(path.c_str(), flags | O_CLOEXEC | O_NOCTTY, mode);
  while (handle < 0 && errno == EINTR);
  return handle;
}

}  // namespace

std::error_code last_system_error() { return {errno, std::system_category()}; }

Result<std::shared_ptr<const File>> File::open(const Path& path) {
  if (path.empty()) return fail(ErrorCode::not_found, "the path is empty", {}, "Name a file");
  if (!nameable(path)) return fail(ErrorCode::not_found, "the path contains a zero byte");
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  const int handle = open_retrying(path, O_RDONLY | O_NONBLOCK);
  if (handle < 0) return system_fail("cannot open", path);
  const std::shared_ptr<File> file(new File(path, handle, 0));
  struct stat status {};
  if (::fstat(handle, &status) != 0) return system_fail("cannot open", path);
  if (S_ISDIR(status.st_mode)) {
    return tl::make_unexpected(system_error({EISDIR, std::system_category()}, "cannot open", path));
  }
  if (!S_ISREG(status.st_mode)) {
    return fail(ErrorCode::unsupported, "cannot open: it is a pipe or a device, not a file", to_utf8(path),
                "Write it to a file first");
  }
  file->size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

Result<std::string> read_stream(const Path& path, std::uint64_t limit) {
  if (path.empty() || !nameable(path)) return read_text(path, limit);
  const int handle = open_retrying(path, O_RDONLY);
  if (handle < 0) return system_fail("cannot open", path);
  std::string text;
  Status status;
  for (std::array<char, 65536> block; status;) {
    const ssize_t got = ::read(handle, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) status = system_fail("cannot read", path);
    if (got <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > limit)
      status = fail(ErrorCode::malformed, "there are more bytes than the " + std::to_string(limit) + " expected",
                    to_utf8(path));
  }
  ::close(handle);
  if (!status) return tl::make_unexpected(std::move(status).error());
  return text;
}

Result<FileStamp> File::stamp() const {
  struct stat status {};
  if (::fstat(static_cast<int>(handle_), &status) != 0) return system_fail("cannot look at", path_);
  const auto nanoseconds = [](const timespec& time) {
    return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
  };
  return FileStamp{static_cast<std::uint64_t>(status.st_size), nanoseconds(status.st_mtim), nanoseconds(status.st_ctim),
                   static_cast<std::uint64_t>(status.st_ino)};
}

File::~File() { ::close(static_cast<int>(handle_)); }

Status File::read(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const std::uint64_t at = offset + filled;
    if (at > static_cast<std::uint64_t>(INT64_MAX)) break;
    const std::size_t want = std::min(out.size() - filled, largest_transfer);
    const ssize_t got = ::pread(static_cast<int>(handle_), out.data() + filled, want, static_cast<off_t>(at));
    if (got < 0) {
      if (errno == EINTR) continue;
      return system_fail("cannot read", path_);
    }
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  if (filled == out.size()) return {};
  const std::string end = filled > 0 ? std::to_string(offset + filled) : std::to_string(std::min(offset, size_));
  return fail(ErrorCode::malformed,
              "the file ends at byte " + end + ", expected " + std::to_string(out.size()) + " bytes at " +
                  std::to_string(offset),
              to_utf8(path_), "Is it complete?");
}

Result<FileWriter> FileWriter::create(const Path& path) {
  if (path.empty()) return fail(ErrorCode::usage, "the path is empty", {}, "Name a file");
  if (!nameable(path)) return fail(ErrorCode::usage, "the path contains a zero byte");
  const int handle = open_retrying(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (handle < 0) return system_fail("cannot create", path);
  return FileWriter(std::make_shared<OutputFile>(path, path, handle));
}

Status OutputFile::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(static_cast<int>(handle_), bytes.data(), std::min(bytes.size(), largest_transfer));
    if (written < 0) {
      if (errno == EINTR) continue;
      return system_fail("cannot write", shown_);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status OutputFile::copy_range(const File& source, std::uint64_t& offset, std::uint64_t& length) {
#ifdef __linux__
  while (length > 0) {
    off_t from = static_cast<off_t>(offset);
    const std::size_t want = static_cast<std::size_t>(std::min<std::uint64_t>(length, largest_transfer));
    const ssize_t copied =
        ::copy_file_range(static_cast<int>(source.handle_), &from, static_cast<int>(handle_), nullptr, want, 0);
    if (copied < 0) {
      if (errno == EINTR) continue;
      if (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM) {
        break;
      }
      return system_fail("cannot write", shown_);
    }
    // Some file systems answer 0 where they cannot; a source that was cut short is found by reading it.
    if (copied == 0) break;
    offset += static_cast<std::uint64_t>(copied);
    length -= static_cast<std::uint64_t>(copied);
  }
#else
  static_cast<void>(source);
  static_cast<void>(offset);
  static_cast<void>(length);
#endif
  return {};
}

Status OutputFile::sync_handle() {
  int outcome;
  do outcome = ::fsync(static_cast<int>(handle_));
  while (outcome != 0 && errno == EINTR);
  // EINVAL and EROFS: a file system that has nothing to sync.
  if (outcome != 0 && errno != EINVAL && errno != EROFS) return system_fail("cannot write to disk", shown_);
  return {};
}

Status OutputFile::close_handle() {
  if (handle_ == -1) return {};
  const int handle = static_cast<int>(std::exchange(handle_, -1));
  // After EINTR Linux has closed the file all the same.
  if (::close(handle) != 0 && errno != EINTR) return system_fail("cannot write", shown_);
  return {};
}

}  // namespace mk
