#include "hub/hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "checkpoint/gguf.h"
#include "hub/hub_connection.h"
#include "hub/hub_download.h"
#include "hub/hub_store.h"

namespace mk {
namespace {

constexpr std::string_view default_revision = "main";

bool is_there(const Path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string revision_of(const ModelRef& ref) {
  return ref.revision.empty() ? std::string(default_revision) : ref.revision;
}

// A mirror may name contents by something else than a hash. As a file name it must be harmless.
std::string blob_name_for(const std::string& etag) {
  const auto harmless = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  };
  constexpr std::size_t longest = 128;
  const bool usable = !etag.empty() && etag.size() <= longest && std::all_of(etag.begin(), etag.end(), harmless);
  return usable ? etag : "etag-" + sha256_hex(etag);
}

// The first shard that an index in the snapshot names and the snapshot does not have; empty for other files.
std::string missing_shard(const Path& index) {
  if (index.extension() != ".json") return {};
  const auto json = read_json(index);
  if (!json) return {};
  const JsonView shards = JsonView(*json, {}).at("weight_map");
  if (!shards.is_object()) return {};
  for (const auto& [tensor, shard] : shards.json().items())
    if (shard.is_string() && !is_there(index.parent_path() / path_from_utf8(shard.get<std::string>())))
      return shard.get<std::string>();
  return {};
}

}  // namespace

Status check_snapshot(const Snapshot& snapshot, const ModelRef& ref, Fetch fetch) {
  const auto lacks = [&](std::string_view what) {
    return fail(ErrorCode::not_found, fmt::format("the cached snapshot of {} has no {}", ref.id, what),
                to_utf8(snapshot.folder));
  };
  if (ref.kind == ModelRefKind::hub_onnx)
    return is_there(snapshot.folder / path_from_utf8(ref.file)) ? Status() : lacks(ref.file);
  if (fetch != Fetch::all || !is_there(snapshot.folder / "config.json")) return {};
  const auto names = weight_file_names();
  const auto found =
      std::find_if(names.begin(), names.end(), [&](std::string_view name) { return is_there(snapshot.folder / name); });
  if (found == names.end()) {
    const auto files = list_folder(snapshot.folder);
    return files && std::any_of(files->begin(), files->end(), is_gguf) ? Status() : lacks("weights");
  }
  const std::string missing = missing_shard(snapshot.folder / *found);
  return missing.empty() ? Status() : lacks(missing);
}

Hub::Hub(HubSettings settings, Progress& progress)
    : settings_(std::move(settings)), progress_(progress), cache_(settings_.roots) {}
Hub::~Hub() = default;

Result<HubConnection*> Hub::connection() {
  if (!connection_) {
    MK_TRY(connection_, HubConnection::open(settings_, progress_));
  }
  return connection_.get();
}

Result<const HubRepositoryInfo*> Hub::repository(const ModelRef& ref, int attempts) {
  const std::pair key(ref.id, revision_of(ref));
  if (const auto known = repositories_.find(key); known != repositories_.end()) return &known->second;
  MK_TRY(HubConnection* const hub, connection());
  hub->set_attempts(attempts);
  auto info = ask_repository(*hub, key.first, key.second);
  hub->set_attempts(settings_.attempts);
  if (!info) return tl::make_unexpected(std::move(info).error());
  return &repositories_.emplace(key, std::move(*info)).first->second;
}

// Where the commit is already, so that another root is not filled with the same.
Path Hub::root_of(const ModelRef& ref, const std::string& commit) const {
  for (const Path& root : settings_.roots)
    if (is_there(HubStore(root, ref.id).snapshot(commit))) return root;
  return settings_.roots.front();
}

Result<HubFile> Hub::with_facts(HubFile file, const ModelRef& ref, const std::string& commit) {
  if (!file.etag.empty()) return file;
  MK_TRY(HubConnection* const hub, connection());
  MK_TRY(const HubAnswer facts, hub->head(file_address(ref.id, commit, file.name), {ref.id, commit, file.name}));
  if (facts.etag.empty())
    return fail(ErrorCode::failed, fmt::format("the Hub does not say what names the content of {}", file.name), ref.id,
                "Check HF_ENDPOINT");
  file.etag = is_blob_name(facts.etag) ? facts.etag : blob_name_for(facts.etag);
  if (facts.size) file.size = facts.size;
  return file;
}

Status Hub::fetch_files(const ModelRef& ref, const HubRepositoryInfo& repository, const HubStore& store,
                        const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const HubFile& listed = *repository.find(name);
    const Path place = store.file(repository.commit, name);
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(place, error);
    if (!error) {
      if (listed.size && size != *listed.size)
        return fail(ErrorCode::malformed,
                    fmt::format("the cached {} of {} has {} bytes instead of {}", name, ref.id, size, *listed.size),
                    to_utf8(place), "Remove it, and what it links to, and try again");
      continue;
    }
    MK_TRY(HubFile file, with_facts(listed, ref, repository.commit));
    MK_TRY(HubConnection* const hub, connection());
    MK_CHECK(download({ref.id, repository.commit, std::move(file)}, store, *hub,
                      settings_.progress ? progress_ : silent_progress()));
  }
  return {};
}

Result<Snapshot> Hub::fetch_snapshot(const ModelRef& ref, WantedModel wanted, Fetch fetch) {
  MK_TRY(const HubRepositoryInfo* const info, repository(ref, settings_.attempts));
  MK_TRY(const std::vector<std::string> first, files_to_fetch(*info, ref, wanted, fetch));
  const HubStore store(root_of(ref, info->commit), ref.id);
  MK_CHECK(fetch_files(ref, *info, store, first));
  const Snapshot snapshot{store.snapshot(info->commit), info->commit};
  MK_TRY(const std::vector<std::string> second, files_named_by(snapshot.folder, first, *info));
  MK_CHECK(fetch_files(ref, *info, store, second));
  // A cache that cannot be written serves all the same.
  if (ref.kind == ModelRefKind::hub_id && info->find("config.json") == nullptr)
    (void)store.note_absence(info->commit, "config.json");
  if (auto noted = store.set_ref(revision_of(ref), info->commit); !noted) progress_.info(noted.error().to_string());
  return snapshot;
}

Result<Snapshot> Hub::snapshot(const ModelRef& ref, WantedModel wanted, Fetch fetch) {
  auto cached = cache_.find(ref.id, ref.revision);
  Status suffices;
  if (!cached)
    suffices = tl::make_unexpected(cached.error());
  else
    suffices = check_snapshot(*cached, ref, fetch);

  if (offline()) {
    if (suffices) return cached;
    Error error = std::move(suffices).error();
    error.hint = fmt::format("{} forbids the network; without it, the model is downloaded{}{}", settings_.offline,
                             error.hint.empty() ? "" : ". ", error.hint);
    return tl::make_unexpected(std::move(error));
  }

  // With something to fall back on, a Hub that does not answer is asked once only.
  // It knows commits by their whole names only.
  ModelRef asked = ref;
  if (cached && !ref.revision.empty() && cached->commit.starts_with(ref.revision)) asked.revision = cached->commit;
  const auto info = repository(asked, suffices ? 1 : settings_.attempts);
  if (info) return fetch_snapshot(asked, wanted, fetch);
  if (!suffices || info.error().code == ErrorCode::interrupted || info.error().code == ErrorCode::usage)
    return tl::make_unexpected(info.error());
  progress_.warn(fmt::format("{}; using what the cache has of {} ({})", info.error().message, ref.id,
                             cached->commit.substr(0, 8)));
  return cached;
}

}  // namespace mk
