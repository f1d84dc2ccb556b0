#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/partial_file.h"
#include "base/system_error.h"

namespace mk {

Result<PartialFile> PartialFile::open(const Path& path) {
  int handle;
  do handle = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  while (handle < 0 && errno == EINTR);
  if (handle < 0) return tl::make_unexpected(system_error(last_system_error(), "cannot create", path));
  PartialFile file(path, handle, 0);
  struct stat status {};
  if (::fstat(handle, &status) != 0)
    return tl::make_unexpected(system_error(last_system_error(), "cannot look at", path));
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

PartialFile::~PartialFile() {
  if (handle_ != -1) ::close(static_cast<int>(handle_));
}

Status PartialFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(static_cast<int>(handle_), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return tl::make_unexpected(system_error(last_system_error(), "cannot write", path_));
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    size_ += static_cast<std::uint64_t>(put);
  }
  return {};
}

Status PartialFile::clear() {
  if (::ftruncate(static_cast<int>(handle_), 0) != 0)
    return tl::make_unexpected(system_error(last_system_error(), "cannot write", path_));
  size_ = 0;
  return {};
}

Status PartialFile::sync() {
  int outcome;
  do outcome = ::fsync(static_cast<int>(handle_));
  while (outcome != 0 && errno == EINTR);
  if (outcome == 0 || errno == EINVAL || errno == EROFS) return {};
  return tl::make_unexpected(system_error(last_system_error(), "cannot write to disk", path_));
}

}  // namespace mk
