#include "base/publish.h"

#include <algorithm>

#include "base/staging.h"
#include "base/system_error.h"

namespace mk {
namespace {

namespace fs = std::filesystem;

Path folder_of(const Path& path) { return path.has_parent_path() ? path.parent_path() : Path("."); }

bool is_there(const Path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

Status check_place(const Path& path, bool overwrite) {
  if (!path.has_filename() || path.filename() == "." || path.filename() == "..") {
    return fail(ErrorCode::usage, "the output is a folder; a file is needed", to_utf8(path), "Name a file in it");
  }
  if (path.native().find(Path::value_type{}) != Path::string_type::npos) {
    return fail(ErrorCode::usage, "the output path contains a zero byte");
  }
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) {
    return fail(ErrorCode::usage, "the output is a folder; a file is needed", to_utf8(path), "Name a file in it");
  }
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    return fail(ErrorCode::usage, "the output is a device or a pipe, not a file", to_utf8(path), "Name a file");
  }
  if (!overwrite && is_there(path)) {
    return fail(ErrorCode::exists, "the output already exists", to_utf8(path), "Re-run with --overwrite to replace it");
  }
  return {};
}

// Two publications into one folder take turns, so that their files do not mix. Where the system has no such locks we
// go on without. In the order of the names, so that two never wait for each other.
Result<std::vector<FolderLock>> lock_all(std::vector<Path> folders) {
  std::error_code ignored;
  for (Path& folder : folders) folder = fs::weakly_canonical(folder, ignored);
  std::sort(folders.begin(), folders.end());
  std::vector<FolderLock> locks;
  for (auto folder = folders.begin(); folder != folders.end(); ++folder) {
    // One folder can have two names (a bind mount).
    if (std::any_of(folders.begin(), folder,
                    [&](const Path& other) { return fs::equivalent(*folder, other, ignored); })) {
      continue;
    }
    MK_TRY(FolderLock lock, wait_for_lock(*folder));
    locks.push_back(std::move(lock));
  }
  return locks;
}

}  // namespace

Publication::Publication() = default;
Publication::Publication(Publication&&) noexcept = default;
Publication::~Publication() { discard(); }

Publication& Publication::operator=(Publication&& other) noexcept {
  if (this == &other) return *this;
  discard();
  entries_ = std::move(other.entries_);
  removals_ = std::move(other.removals_);
  made_folders_ = std::move(other.made_folders_);
  stagings_ = std::move(other.stagings_);
  return *this;
}

Result<FileWriter> Publication::add(const Path& final_path, bool overwrite) {
  MK_CHECK(check_place(final_path, overwrite));
  if (!staged(final_path).empty()) {
    return fail(ErrorCode::usage, "two outputs have the same name", to_utf8(final_path), "Choose another name");
  }
  MK_TRY(StagingFolder* const staging, staging_beside(folder_of(final_path)));
  const Path path = staging->fresh() / final_path.filename();
  MK_TRY(std::shared_ptr<OutputFile> output, create_output(path, final_path));
  entries_.push_back({final_path, path, overwrite, output});
  return FileWriter(std::move(output));
}

Status Publication::add_text(const Path& final_path, std::string_view text, bool overwrite) {
  MK_TRY(FileWriter writer, add(final_path, overwrite));
  MK_CHECK(writer.write(text));
  return writer.close();
}

Path Publication::staged(const Path& final_path) const {
  for (const Entry& entry : entries_) {
    if (entry.final_path.lexically_normal() == final_path.lexically_normal()) return entry.staged;
  }
  return {};
}

void Publication::remove_on_commit(const Path& path) { removals_.push_back(path); }

void Publication::publish_last(const Path& final_path) {
  const auto entry = std::ranges::find(entries_, final_path.lexically_normal(),
                                       [](const Entry& e) { return e.final_path.lexically_normal(); });
  if (entry != entries_.end()) std::rotate(entry, entry + 1, entries_.end());
}

Result<StagingFolder*> Publication::staging_beside(const Path& folder) {
  for (const auto& staging : stagings_) {
    if (staging->folder().lexically_normal() == folder.lexically_normal()) return staging.get();
  }
  MK_CHECK(make_folders(folder));
  sweep_leftovers(folder);
  MK_TRY(stagings_.emplace_back(), StagingFolder::create(folder));
  return stagings_.back().get();
}

Status Publication::make_folders(const Path& folder) {
  std::error_code code;
  const fs::file_status status = fs::status(folder, code);
  if (fs::is_directory(status)) return {};
  if (fs::exists(status)) {
    return fail(ErrorCode::usage, "a file is where the output folder should be", to_utf8(folder),
                "Choose another folder with -o");
  }
  const Path parent = folder_of(folder);
  if (parent != folder && !folder.empty()) MK_CHECK(make_folders(parent));
  code.clear();
  if (fs::create_directory(folder, code)) {
    made_folders_.push_back(folder);
  } else if (code) {
    Error error = system_error(code, "cannot make the folder", folder);
    if (error.code == ErrorCode::not_found) error.code = ErrorCode::usage;
    return tl::make_unexpected(std::move(error));
  }
  return {};
}

Status Publication::commit() {
  Status status = close_and_sync();
  if (status) status = swap_in();
  if (status) made_folders_.clear();
  discard();
  return status;
}

Status Publication::close_and_sync() {
  for (const Entry& entry : entries_) MK_CHECK(entry.output->close());
  for (const Entry& entry : entries_) MK_CHECK(sync_to_disk(entry.staged));
  return {};
}

Status Publication::swap_in() {
  std::vector<Path> leaving;
  for (const Path& path : removals_) {
    std::error_code ignored;
    if (!staged(path).empty() || !is_there(path) || fs::is_directory(fs::symlink_status(path, ignored))) continue;
    MK_CHECK(staging_beside(folder_of(path)));
    leaving.push_back(path);
  }
  std::vector<Path> folders;
  for (const auto& staging : stagings_) folders.push_back(staging->folder());
  MK_TRY(const std::vector<FolderLock> locks, lock_all(folders));
  for (const Entry& entry : entries_) MK_CHECK(check_place(entry.final_path, entry.overwrite));

  for (const auto& staging : stagings_) staging->mark_complete();
  std::vector<Move> moves;
  Status status;
  // One file alone replaces the old one in one step.
  if (entries_.size() > 1 || !leaving.empty()) {
    for (auto entry = entries_.rbegin(); status && entry != entries_.rend(); ++entry) {
      if (entry->overwrite) status = move_away(entry->final_path, moves);
    }
    for (auto path = leaving.begin(); status && path != leaving.end(); ++path) status = move_away(*path, moves);
  }
  for (auto entry = entries_.begin(); status && entry != entries_.end(); ++entry) {
    status = move_file(entry->staged, entry->final_path, entry->overwrite);
    if (status) moves.push_back({entry->staged, entry->final_path, nullptr});
  }
  if (!status) return tl::make_unexpected(undo(moves, std::move(status).error()));

  for (const Path& made : made_folders_) folders.push_back(folder_of(made));
  for (const Path& folder : folders) {
    if (Status synced = sync_to_disk(folder); !synced) {
      synced.error().message += "; the new files are in place";
      return synced;
    }
  }
  return {};
}

Status Publication::move_away(const Path& path, std::vector<Move>& moves) {
  if (!is_there(path)) return {};
  MK_TRY(StagingFolder* const staging, staging_beside(folder_of(path)));
  const Path kept = staging->old() / path.filename();
  MK_CHECK(move_file(path, kept, false));
  moves.push_back({path, kept, staging});
  return {};
}

// Undoes the moves, the last first, and adds to the error what could not be undone.
Error Publication::undo(std::vector<Move>& moves, Error error) {
  for (; !moves.empty(); moves.pop_back()) {
    const Move& done = moves.back();
    if (move_file(done.to, done.from, false)) continue;
    if (done.keeper == nullptr) {
      error.message += "; the new " + to_utf8(done.to) + " is in place already";
    } else {
      done.keeper->keep();
      error.message +=
          "; the old " + to_utf8(done.from) + " is now " + to_utf8(done.keeper->old() / done.from.filename());
    }
  }
  return error;
}

void Publication::discard() {
  for (const Entry& entry : entries_) static_cast<void>(entry.output->close());
  entries_.clear();
  removals_.clear();
  stagings_.clear();
  for (; !made_folders_.empty(); made_folders_.pop_back()) {
    std::error_code ignored;
    if (fs::is_directory(fs::symlink_status(made_folders_.back(), ignored))) fs::remove(made_folders_.back(), ignored);
  }
}

}  // namespace mk
