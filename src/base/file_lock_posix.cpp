#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/file_lock.h"
#include "base/system.h"
#include "base/system_error.h"

namespace mk {
namespace {

constexpr auto poll_time = std::chrono::milliseconds(50);

int open_retrying(const Path& file, int flags) {
  int handle;
  do handle = ::open(file.c_str(), flags | O_CLOEXEC, 0666);
  while (handle < 0 && errno == EINTR);
  return handle;
}

// Another user's lock file may be read-only for us; it can be locked all the same.
int open_lock(const Path& file) {
  const int handle = open_retrying(file, O_RDWR | O_CREAT);
  return handle < 0 && errno == EACCES ? open_retrying(file, O_RDONLY) : handle;
}

// Whether a second opening of the locked file is kept out, as it must be.
bool keeps_out(const Path& file) {
  const int second = open_lock(file);
  if (second < 0) return true;
  const bool busy = ::flock(second, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(second);
  return busy;
}

// Some holders remove the file when they are done: a lock on a removed file keeps nobody out.
bool is_still_there(int handle, const Path& file) {
  struct stat held {
  }, named{};
  return ::fstat(handle, &held) == 0 && ::stat(file.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

}  // namespace

Result<FileLock> FileLock::acquire(const Path& file, const std::function<void()>& on_wait) {
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error) return tl::make_unexpected(system_error(error, "cannot create", file.parent_path()));
  for (bool told = false;;) {
    const int handle = open_lock(file);
    if (handle < 0) return tl::make_unexpected(system_error(last_system_error(), "cannot create", file));
    FileLock lock(handle);
    while (::flock(handle, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return lock;
      if (interrupted()) return fail(ErrorCode::interrupted, "interrupted");
      if (errno == EWOULDBLOCK && !std::exchange(told, true) && on_wait) on_wait();
      std::this_thread::sleep_for(poll_time);
    }
    if (!is_still_there(handle, file)) continue;
    lock.is_exclusive_ = keeps_out(file);
    return lock;
  }
}

FileLock::~FileLock() {
  if (handle_ != -1) ::close(static_cast<int>(handle_));
}

}  // namespace mk
