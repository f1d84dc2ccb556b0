#include "base/staging.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/system_error.h"

namespace mk {
namespace {

int open_retrying(const Path& path, int flags, mode_t mode = 0) {
  int handle;
  do handle = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (handle < 0 && errno == EINTR);
  return handle;
}

}  // namespace

FolderLock FolderLock::take(const Path& folder) {
  const int handle = open_retrying(folder, O_RDONLY | O_DIRECTORY);
  if (handle < 0) return {errno == ENOENT ? State::gone : State::unavailable, -1};
  int outcome;
  do outcome = ::flock(handle, LOCK_EX | LOCK_NB);
  while (outcome != 0 && errno == EINTR);
  if (outcome != 0) {
    const State state = errno == EWOULDBLOCK ? State::busy : State::unavailable;
    ::close(handle);
    return {state, -1};
  }
  // The holder before us may have removed it.
  struct stat status {};
  if (::fstat(handle, &status) == 0 && status.st_nlink == 0) {
    ::close(handle);
    return {State::gone, -1};
  }
  return {State::held, handle};
}

FolderLock::~FolderLock() {
  if (handle_ != -1) ::close(static_cast<int>(handle_));
}

Result<std::shared_ptr<OutputFile>> create_output(const Path& path, const Path& shown) {
  const int handle = open_retrying(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
  if (handle < 0) return tl::make_unexpected(system_error(last_system_error(), "cannot create", shown));
  return std::make_shared<OutputFile>(path, shown, handle);
}

Status move_file(const Path& from, const Path& to, bool replace) {
  const auto outcome = [&](int result) -> Status {
    if (result == 0) return {};
    return tl::make_unexpected(system_error(last_system_error(), "cannot put the file in place", to));
  };
  if (replace) return outcome(::rename(from.c_str(), to.c_str()));
#ifdef RENAME_NOREPLACE
  const int result = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
  if (result == 0 || (errno != EINVAL && errno != ENOSYS)) return outcome(result);
#endif
  // File systems that cannot do that can link, which never replaces; those without links (FAT) can look first.
  if (::link(from.c_str(), to.c_str()) == 0) return outcome(::unlink(from.c_str()));
  if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS) return outcome(-1);
  struct stat status {};
  if (::lstat(to.c_str(), &status) == 0) {
    errno = EEXIST;
    return outcome(-1);
  }
  return outcome(::rename(from.c_str(), to.c_str()));
}

Status sync_to_disk(const Path& path) {
  const int handle = open_retrying(path, O_RDONLY);
  int outcome = handle < 0 ? -1 : 0;
  if (handle >= 0) {
    do outcome = ::fsync(handle);
    while (outcome != 0 && errno == EINTR);
  }
  // EINVAL and EROFS: there is nothing to sync. EACCES: a folder that we may write but not read.
  const bool ignored = errno == EINVAL || errno == EROFS || errno == EACCES;
  const std::error_code code = last_system_error();
  if (handle >= 0) ::close(handle);
  if (outcome == 0 || ignored) return {};
  return tl::make_unexpected(system_error(code, "cannot write to disk", path));
}

std::uint64_t process_id() { return static_cast<std::uint64_t>(::getpid()); }

}  // namespace mk
