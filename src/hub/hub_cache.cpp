#include "hub/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/file.h"
#include "base/system.h"

namespace mk {
namespace {

constexpr std::size_t commit_digits = 40, sha256_digits = 64, shortest_commit = 7;
constexpr std::string_view default_revision = "main";

bool is_hex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_folder(const Path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

std::string trimmed(std::string text) {
  const auto end = text.find_last_not_of(" \t\r\n");
  text.resize(end == std::string::npos ? 0 : end + 1);
  return text;
}

std::vector<std::string> snapshots_in(const Path& repository) {
  std::vector<std::string> commits;
  if (const auto names = list_folder(repository / "snapshots"))
    for (const Path& name : *names) commits.push_back(to_utf8(name));
  return commits;
}

// The commit that a revision stands for; empty where the cache does not know it.
std::string commit_of(const Path& repository, std::string_view revision) {
  if (const auto text = read_text(repository / "refs" / path_from_utf8(revision), 1024)) {
    std::string commit = trimmed(*text);
    if (is_commit(commit)) return commit;
  }
  if (revision.size() < shortest_commit || !is_hex(revision)) return {};
  std::string found;
  for (const std::string& commit : snapshots_in(repository)) {
    if (!commit.starts_with(revision)) continue;
    if (!found.empty()) return {};
    found = commit;
  }
  return found;
}

}  // namespace

bool is_commit(std::string_view text) { return text.size() == commit_digits && is_hex(text); }

bool is_blob_name(std::string_view text) {
  return (text.size() == commit_digits || text.size() == sha256_digits) && is_hex(text);
}

std::string repository_folder_name(std::string_view id, HubRepository kind) {
  std::string name = kind == HubRepository::dataset ? "datasets--" : "models--";
  for (const char c : id) c == '/' ? name += "--" : name += c;
  return name;
}

HubCache HubCache::from_environment() {
  std::vector<Path> roots;
  if (const auto cache = environment("HF_HUB_CACHE")) {
    roots.push_back(path_from_utf8(*cache));
  } else if (const auto older = environment("HUGGINGFACE_HUB_CACHE")) {
    roots.push_back(path_from_utf8(*older));
  } else if (const auto home = environment("HF_HOME")) {
    roots.push_back(path_from_utf8(*home) / "hub");
  } else if (const auto base = environment("XDG_CACHE_HOME")) {
    roots.push_back(path_from_utf8(*base) / "huggingface" / "hub");
  } else {
    roots.push_back(home_folder() / ".cache" / "huggingface" / "hub");
  }
  if (const auto legacy = environment("TRANSFORMERS_CACHE")) roots.push_back(path_from_utf8(*legacy));
  return HubCache(std::move(roots));
}

Result<Snapshot> HubCache::find(std::string_view id, std::string_view revision, HubRepository kind) const {
  const std::string_view wanted = revision.empty() ? default_revision : revision;
  const bool dataset = kind == HubRepository::dataset;
  Path known;
  for (const Path& root : roots_) {
    const Path repository = root / path_from_utf8(repository_folder_name(id, kind));
    if (!is_folder(repository)) continue;
    known = repository;
    const std::string commit = commit_of(repository, wanted);
    if (!commit.empty() && is_folder(repository / "snapshots" / commit))
      return Snapshot{repository / "snapshots" / commit, commit};
  }
  if (known.empty()) {
    std::vector<std::string> looked_in;
    for (const Path& root : roots_) looked_in.push_back(to_utf8(root));
    return fail(ErrorCode::not_found, fmt::format("{} is neither a local folder nor in the cache of the Hub", id),
                fmt::format("{}", fmt::join(looked_in, ", ")),
                dataset
                    ? fmt::format("Download it (`hf download --repo-type dataset {}`), set HF_HOME or HF_HUB_CACHE, or "
                                  "give a Parquet file or a folder",
                                  id)
                    : "Set HF_HOME or HF_HUB_CACHE to where it is, or give a folder with config.json and weights");
  }
  const auto commits = snapshots_in(known);
  return fail(ErrorCode::not_found, fmt::format("the cache of the Hub has {}, but not its revision {}", id, wanted),
              to_utf8(known),
              commits.empty() ? "" : fmt::format("Ask for what is there: {}@{}", id, fmt::join(commits, ", @")));
}

std::string blob_sha256(const Path& file) {
  std::error_code error;
  const Path target = std::filesystem::read_symlink(file, error);
  if (error || target.parent_path().filename() != "blobs" || !std::filesystem::exists(file, error)) return {};
  const std::string name = to_utf8(target.filename());
  return name.size() == sha256_digits && is_hex(name) ? name : std::string();
}

}  // namespace mk
