#include "base/staging.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "base/publish.h"
#include "base/system_error.h"

namespace mk {
namespace {

constexpr std::string_view suffix = ".winml-tmp";

std::string random_name() {
  std::random_device random;
  return fmt::format(".{}-{:08x}{:08x}{}", process_id(), random(), random(), suffix);
}

// ".<digits>-<16 hex digits>.winml-tmp"
bool is_staging_name(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(suffix)) return false;
  name = name.substr(1, name.size() - 1 - suffix.size());
  const std::size_t dash = name.find('-');
  if (dash == 0 || dash == name.npos || name.size() - dash - 1 != 16) return false;
  return name.find_first_not_of("0123456789") == dash &&
         name.find_first_not_of("0123456789abcdef", dash + 1) == name.npos;
}

}  // namespace

Result<FolderLock> wait_for_lock(const Path& folder) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (true) {
    FolderLock lock = FolderLock::take(folder);
    if (lock.state() != FolderLock::State::busy) return lock;
    if (std::chrono::steady_clock::now() > give_up) {
      return fail(ErrorCode::failed, "another process keeps the folder locked", to_utf8(folder),
                  "Run again when it has ended");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Result<std::unique_ptr<StagingFolder>> StagingFolder::create(const Path& folder) {
  // Between its making and its locking another process may sweep a folder: then it is made anew.
  for (int attempt = 0; attempt < 100; ++attempt) {
    const Path path = folder / random_name();
    std::error_code code;
    if (!std::filesystem::create_directory(path, code)) {
      if (!code) continue;
      return tl::make_unexpected(system_error(code, "cannot write into the folder", folder));
    }
    FolderLock lock = FolderLock::take(path);
    if (lock.state() == FolderLock::State::gone || lock.state() == FolderLock::State::busy) continue;
    std::unique_ptr<StagingFolder> staging(new StagingFolder(folder, path, std::move(lock)));
    for (const Path& inner : {staging->fresh(), staging->old()}) {
      if (!std::filesystem::create_directory(inner, code)) {
        return tl::make_unexpected(system_error(code, "cannot write into the folder", folder));
      }
    }
    return staging;
  }
  return fail(ErrorCode::failed, "cannot make a temporary folder", to_utf8(folder));
}

StagingFolder::~StagingFolder() {
  std::error_code ignored;
  if (!kept_) std::filesystem::remove_all(path_, ignored);
}

void StagingFolder::mark_complete() {
  if (auto mark = create_output(path_ / "complete", path_ / "complete")) static_cast<void>((*mark)->close());
}

void StagingFolder::keep() {
  if (std::exchange(kept_, true)) return;
  Path kept = path_;
  kept.replace_extension(".winml-kept");
  std::error_code code;
  std::filesystem::rename(path_, kept, code);
  if (!code) path_ = kept;
}

namespace {

bool is_there(const Path& path) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
}

struct StagingPlaces {
  Path fresh, old, mark;
};

// Moves files into `folder` under their own names, models last: they name their data.
void move_home(const Path& from, std::vector<Path> names, const Path& folder) {
  std::stable_partition(names.begin(), names.end(), [](const Path& name) { return name.extension() != ".onnx"; });
  for (const Path& name : names) {
    if (!is_there(folder / name)) static_cast<void>(move_file(from / name, folder / name, false));
  }
}

// Ends the swap of a process that was killed during it: what is old and still there goes away, models first, then the
// new files, which were whole before the first move, come in.
void finish_swap(const StagingPlaces& places, const Path& folder) {
  const auto names = list_folder(places.fresh);
  if (!is_there(places.mark) || !names) return;
  std::vector<Path> leaving = *names;
  std::stable_partition(leaving.begin(), leaving.end(), [](const Path& name) { return name.extension() == ".onnx"; });
  for (const Path& name : leaving) {
    if (is_there(folder / name)) static_cast<void>(move_file(folder / name, places.old / name, true));
  }
  move_home(places.fresh, *names, folder);
}

}  // namespace

void sweep_leftovers(const Path& folder) {
  const Result<std::vector<Path>> names = list_folder(folder);
  if (!names) return;
  for (const Path& name : *names) {
    if (!is_staging_name(to_utf8(name))) continue;
    const Path path = folder / name;
    std::error_code ignored;
    if (!std::filesystem::is_directory(std::filesystem::symlink_status(path, ignored))) continue;
    const FolderLock lock = FolderLock::take(path);
    if (lock.state() != FolderLock::State::held) continue;
    finish_swap({path / "new", path / "old", path / "complete"}, folder);
    std::filesystem::remove_all(path, ignored);
  }
}

}  // namespace mk
