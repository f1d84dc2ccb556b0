#pragma once
// The local cache of the Hugging Face Hub, as its Python library lays it out: ROOT/models--org--name/ (or datasets--)
// with refs/main (a commit), snapshots/COMMIT/ (links into blobs/, or copies where the system has no links) and blobs/
// (each named by its hash). Only read here; hub_store.h writes.

#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/result.h"

namespace mk {

struct Snapshot {
  Path folder;         // snapshots/COMMIT
  std::string commit;  // 40 hex digits
};

enum class HubRepository { model, dataset };

// 40 lower-case hex digits.
bool is_commit(std::string_view text);
// What names a blob: the 40 or 64 lower-case hex digits of a hash.
bool is_blob_name(std::string_view text);
// "models--org--name".
std::string repository_folder_name(std::string_view id, HubRepository kind = HubRepository::model);

class HubCache {
 public:
  explicit HubCache(std::vector<Path> roots) : roots_(std::move(roots)) {}
  // HF_HUB_CACHE, else HUGGINGFACE_HUB_CACHE, else HF_HOME/hub, else XDG_CACHE_HOME/huggingface/hub, else
  // ~/.cache/huggingface/hub; then TRANSFORMERS_CACHE, where it is set.
  static HubCache from_environment();

  const std::vector<Path>& roots() const { return roots_; }
  // The snapshot of a revision: a branch or tag by its ref, a commit by its hash or seven digits of it; "main" where
  // `revision` is empty. not_found naming the folder looked in, and what is there.
  Result<Snapshot> find(std::string_view id, std::string_view revision,
                        HubRepository kind = HubRepository::model) const;

 private:
  std::vector<Path> roots_;
};

// The SHA-256 of a file of a snapshot, where it is a link to a blob of that name (large files are); else empty.
std::string blob_sha256(const Path& file);

}  // namespace mk
