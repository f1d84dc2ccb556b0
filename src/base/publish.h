#pragma once
// Outputs appear whole or not at all.
//
// Files are written under temporary names beside their final ones and published together: data before the model that
// names it, so that a reader sees the old set, none, or the new set, never a mixture (an old model is unlinked first,
// then the data is renamed, then the model). Everything is fsync'ed before the first rename.
// A process that dies leaves only temporary files, which the next publication into the same folder sweeps; those of a
// process that is still alive stay (each holds a lock).

#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/path.h"
#include "base/result.h"

namespace mk {

class Publication {
 public:
  Publication() = default;
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;
  Publication(Publication&&) noexcept;
  Publication& operator=(Publication&&) noexcept;
  ~Publication();  // what was not committed is removed

  // A temporary file that commit() will name `final_path`. Parent folders are made. Files are renamed in the order they
  // were added; the last one added is the one that readers look for first (the model), so add data before it.
  // `overwrite` false: exists when the final path is there, now or at commit.
  Result<FileWriter> add(const Path& final_path, bool overwrite);
  // The same for a small file.
  Status add_text(const Path& final_path, std::string_view text, bool overwrite);
  // The temporary path that will become `final_path` (to read back what was just written), or an empty path.
  Path staged(const Path& final_path) const;
  // A file of an older publication that commit() unlinks (an old model's data that the new one does not have).
  void remove_on_commit(const Path& path);

  // fsync of files and folders, unlink of the old last file, renames. After an error nothing of the old set was lost
  // unless the message says so.
  Status commit();

 private:
  struct Entry {
    Path temporary;
    Path final_path;
    bool overwrite;
    std::intptr_t lock;
  };
  void discard();
  std::vector<Entry> entries_;
  std::vector<Path> removals_;
  std::vector<Path> made_folders_;
};

// Removes what killed runs left in the folder (temporary names whose lock nobody holds).
void sweep_leftovers(const Path& folder);

}  // namespace mk
