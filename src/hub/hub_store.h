#pragma once
// One repository of the local cache, for writing: blobs under the names of their content, snapshots that link to them,
// refs, and notes of what a commit does not have, all as huggingface_hub lays them out. Nothing is ever removed but
// what this process made; what appears under a final name is whole.

#include <functional>
#include <string>
#include <string_view>

#include "base/file_lock.h"
#include "base/path.h"
#include "base/result.h"
#include "hub/hub_cache.h"

namespace mk {

class HubStore {
 public:
  HubStore(const Path& root, std::string_view id);

  Path snapshot(std::string_view commit) const;
  Path file(std::string_view commit, std::string_view name) const;
  Path blob(std::string_view etag) const;
  Path partial(std::string_view etag) const;  // blobs/ETAG.incomplete, which the next run continues
  // A name that no other process has, where locks keep nobody out: not continued.
  Path partial_of_this_process(std::string_view etag) const;

  // Of one blob, among all processes that use the cache, Python's too (.locks/models--ORG--NAME/ETAG.lock).
  Result<FileLock> lock(std::string_view etag, const std::function<void()>& on_wait) const;
  Status make_folders(std::string_view commit) const;
  // The blob's name in a snapshot: a relative link; where the file system has no links, the file itself if it is
  // `fresh` (nobody else can know of it), else a copy.
  Status place(std::string_view commit, std::string_view name, std::string_view etag, bool fresh) const;
  Status set_ref(std::string_view revision, std::string_view commit) const;
  Status note_absence(std::string_view commit, std::string_view name) const;  // .no_exist/COMMIT/NAME

 private:
  Path scratch() const;  // a name of our own in the folder of locks

  Path folder_;
  Path locks_;
};

}  // namespace mk
