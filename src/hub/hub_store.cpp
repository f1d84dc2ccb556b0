#include "hub/hub_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <system_error>

#include "base/file.h"
#include "base/staging.h"
#include "base/system_error.h"

namespace mk {
namespace {

Status make_folder(const Path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return {};
  Error reason = system_error(error, "cannot create", folder);
  reason.code = ErrorCode::failed;
  reason.hint = "Set HF_HOME or HF_HUB_CACHE to a folder that can be written";
  return tl::make_unexpected(std::move(reason));
}

bool is_there(const Path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string unique_name() {
  std::random_device random;
  return fmt::format("{}-{:08x}{:08x}", process_id(), random(), random());
}

Status write_small(const Path& path, std::string_view text) {
  MK_TRY(FileWriter writer, FileWriter::create(path));
  MK_CHECK(writer.write(text));
  return writer.close();
}

}  // namespace

HubStore::HubStore(const Path& root, std::string_view id)
    : folder_(root / repository_folder_name(id)), locks_(root / ".locks" / repository_folder_name(id)) {}

Path HubStore::snapshot(std::string_view commit) const { return folder_ / "snapshots" / path_from_utf8(commit); }
Path HubStore::file(std::string_view commit, std::string_view name) const {
  return snapshot(commit) / path_from_utf8(name);
}
Path HubStore::blob(std::string_view etag) const { return folder_ / "blobs" / path_from_utf8(etag); }
Path HubStore::partial(std::string_view etag) const { return with_suffix(blob(etag), ".incomplete"); }

Path HubStore::partial_of_this_process(std::string_view etag) const {
  return with_suffix(blob(etag), fmt::format(".{}.incomplete", unique_name()));
}

Path HubStore::scratch() const { return locks_ / (unique_name() + ".tmp"); }

Result<FileLock> HubStore::lock(std::string_view etag, const std::function<void()>& on_wait) const {
  MK_CHECK(make_folder(locks_));
  return FileLock::acquire(with_suffix(locks_ / path_from_utf8(etag), ".lock"), on_wait);
}

Status HubStore::make_folders(std::string_view commit) const {
  for (const Path& folder : {locks_, folder_ / "blobs", folder_ / "refs", snapshot(commit)})
    MK_CHECK(make_folder(folder));
  return {};
}

Status HubStore::place(std::string_view commit, std::string_view name, std::string_view etag, bool fresh) const {
  const Path final_path = file(commit, name), source = blob(etag);
  if (is_there(final_path)) return {};
  MK_CHECK(make_folder(final_path.parent_path()));
  // Made elsewhere and moved in: a broken link of that name, or another process's, is replaced at once.
  const Path made = scratch();
  std::error_code error;
  std::filesystem::create_symlink(source.lexically_relative(final_path.parent_path()), made, error);
  if (error && fresh) return move_file(source, final_path, true);
  if (error) {
    error.clear();
    std::filesystem::copy_file(source, made, error);
    if (error) return tl::make_unexpected(system_error(error, "cannot copy", source));
    MK_CHECK(sync_to_disk(made));
  }
  auto moved = move_file(made, final_path, true);
  if (!moved) std::filesystem::remove(made, error);
  return moved;
}

Status HubStore::set_ref(std::string_view revision, std::string_view commit) const {
  if (revision == commit) return {};
  const Path path = folder_ / "refs" / path_from_utf8(revision);
  if (const auto known = read_text(path, 1024); known && *known == commit) return {};
  MK_CHECK(make_folder(path.parent_path()));
  MK_CHECK(make_folder(locks_));
  const Path made = scratch();
  MK_CHECK(write_small(made, commit));
  return move_file(made, path, true);
}

Status HubStore::note_absence(std::string_view commit, std::string_view name) const {
  const Path path = folder_ / ".no_exist" / path_from_utf8(commit) / path_from_utf8(name);
  if (is_there(path)) return {};
  MK_CHECK(make_folder(path.parent_path()));
  auto written = write_small(path, {});
  if (!written && written.error().code == ErrorCode::exists) return {};
  return written;
}

}  // namespace mk
