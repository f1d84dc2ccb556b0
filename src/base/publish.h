#pragma once
// Outputs appear whole or not at all.
//
// Files are written in a hidden folder beside their final places, under their final names (so that a model finds its
// data there too), and published together: old files are moved away, the model first, then the new ones are moved in,
// the model last. A reader sees the old set, none, or the new set, never a mixture. Everything is fsync'ed before.
// A process that dies leaves only its hidden folder, which the next publication into the same folder sweeps: where the
// dead one had begun to move whole files, the moves are finished; else what it wrote goes. The folder of a process that
// is still alive stays (each holds a lock).

#include <memory>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/path.h"
#include "base/result.h"

namespace mk {

class StagingFolder;

class Publication {
 public:
  Publication();
  Publication(const Publication&) = delete;
  Publication& operator=(const Publication&) = delete;
  Publication(Publication&&) noexcept;
  Publication& operator=(Publication&&) noexcept;
  ~Publication();  // what was not committed is removed, made folders too

  // A file that commit() will put at `final_path`. Parent folders are made. Files are published in the order they were
  // added; the last one is the one that readers look for first (the model), so add data before it.
  // usage when the path is a folder, a device or a name given twice; `overwrite` false: exists when the final path is
  // there, now or at commit. A symbolic link at the final path is replaced, not followed.
  Result<FileWriter> add(const Path& final_path, bool overwrite);
  // The same for a small file.
  Status add_text(const Path& final_path, std::string_view text, bool overwrite);
  // Where the file is that will become `final_path` (to read back what was written; close its writer first), or an
  // empty path. Files that will be neighbours are neighbours there, under their final names.
  Path staged(const Path& final_path) const;
  // A file of an older publication that commit() removes (an old model's data that the new one does not have).
  // One that is not there, or that is added too, is no error.
  void remove_on_commit(const Path& path);
  // Renames this one after all others: what readers look for first, where it had to be written earlier.
  void publish_last(const Path& final_path);

  // Closes the writers; one that had an error is an error here. After an error the old set is in place, unless the
  // message says where it is. After it, in either case, the Publication is empty.
  Status commit();

 private:
  struct Entry {
    Path final_path;
    Path staged;
    bool overwrite;
    std::shared_ptr<OutputFile> output;
  };
  struct Move {
    Path from;
    Path to;
    StagingFolder* keeper;  // of an old file, which it holds now; null for a new one
  };
  Result<StagingFolder*> staging_beside(const Path& folder);
  Status make_folders(const Path& folder);
  Status close_and_sync();
  Status swap_in();
  Status move_away(const Path& path, std::vector<Move>& moves);
  Error undo(std::vector<Move>& moves, Error error);
  void discard();

  std::vector<Entry> entries_;
  std::vector<Path> removals_;
  std::vector<Path> made_folders_;
  std::vector<std::unique_ptr<StagingFolder>> stagings_;
};

// Removes what killed runs left in the folder: hidden folders of publications whose lock nobody holds.
void sweep_leftovers(const Path& folder);

}  // namespace mk
