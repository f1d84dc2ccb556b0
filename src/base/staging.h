#pragma once
// What publishing needs of the file system: a locked folder for files that are not ready, moves, and syncs.

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/output_file.h"
#include "base/path.h"
#include "base/result.h"

namespace mk {

// A lock on a folder, among processes. It ends with the object, or with the process however that ends.
class FolderLock {
 public:
  enum class State {
    held,
    busy,
    gone,
    unavailable
  };  // unavailable: the file system or the permissions do not allow it
  static FolderLock take(const Path& folder);
  FolderLock(FolderLock&& other) noexcept : state_(other.state_), handle_(std::exchange(other.handle_, -1)) {}
  FolderLock& operator=(FolderLock&&) = delete;
  ~FolderLock();
  State state() const { return state_; }

 private:
  FolderLock(State state, std::intptr_t handle) : state_(state), handle_(handle) {}
  State state_;
  std::intptr_t handle_;
};

// Waits for the lock: publications hold it while they move files in. The state is held, gone or unavailable.
// failed where another process keeps it for half a minute.
Result<FolderLock> wait_for_lock(const Path& folder);

// A hidden folder ".<process>-<random>.winml-tmp" in `folder`, locked; removed with all it holds in the end. New files
// are in fresh(), old ones that were moved away in old().
class StagingFolder {
 public:
  static Result<std::unique_ptr<StagingFolder>> create(const Path& folder);
  ~StagingFolder();
  StagingFolder(const StagingFolder&) = delete;
  StagingFolder& operator=(const StagingFolder&) = delete;

  const Path& folder() const { return folder_; }  // the one it is in
  Path fresh() const { return path_ / "new"; }
  Path old() const { return path_ / "old"; }
  // All new files are whole: from here on a sweep finishes the swap instead of dropping it.
  void mark_complete();
  void keep();  // as ".<process>-<random>.winml-kept", which nothing sweeps: it holds what could not be put back

 private:
  StagingFolder(Path folder, Path path, FolderLock lock)
      : folder_(std::move(folder)), path_(std::move(path)), lock_(std::move(lock)) {}
  Path folder_;
  Path path_;
  FolderLock lock_;
  bool kept_ = false;
};

// A new file for writing at `path`; errors name `shown`.
Result<std::shared_ptr<OutputFile>> create_output(const Path& path, const Path& shown);

// Gives a file another name in the same file system, at once. `replace` false: exists when there is such a name.
Status move_file(const Path& from, const Path& to, bool replace);

// Waits until a file's bytes, or a folder's names, are on the disk.
Status sync_to_disk(const Path& path);

std::uint64_t process_id();

}  // namespace mk
