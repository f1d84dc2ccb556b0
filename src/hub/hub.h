#pragma once
// The Hub as a command sees it: a reference becomes a folder of the local cache that has what is needed. The Hub is
// asked once for each reference of a run; what the cache has already is not fetched again. Offline, or where the Hub
// does not answer, what the cache has is used, and said so.

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/progress.h"
#include "base/result.h"
#include "hub/hub_cache.h"
#include "hub/hub_files.h"
#include "hub/hub_settings.h"
#include "hub/model_ref.h"

namespace mk {

class HubConnection;
class HubStore;

class Hub {
 public:
  // No socket is opened, and no file read, before a snapshot is asked for. `progress` outlives it.
  Hub(HubSettings settings, Progress& progress);
  ~Hub();
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  const HubCache& cache() const { return cache_; }
  bool offline() const { return !settings_.offline.empty(); }

  // Of a reference of kind hub_id or hub_onnx. not_found where it leads nowhere, naming what was looked at; usage and
  // unsupported as files_to_fetch() says; failed where the Hub does not answer and the cache does not suffice.
  Result<Snapshot> snapshot(const ModelRef& ref, WantedModel wanted, Fetch fetch);

 private:
  Result<Snapshot> fetch_snapshot(const ModelRef& ref, WantedModel wanted, Fetch fetch);
  Result<const HubRepositoryInfo*> repository(const ModelRef& ref, int attempts);
  Result<HubConnection*> connection();
  Status fetch_files(const ModelRef& ref, const HubRepositoryInfo& repository, const HubStore& store,
                     const std::vector<std::string>& names);
  Result<HubFile> with_facts(HubFile file, const ModelRef& ref, const std::string& commit);
  Path root_of(const ModelRef& ref, const std::string& commit) const;

  HubSettings settings_;
  Progress& progress_;
  HubCache cache_;
  std::unique_ptr<HubConnection> connection_;
  std::map<std::pair<std::string, std::string>, HubRepositoryInfo> repositories_;  // by id and revision
};

// Whether a cached snapshot has what a command needs of it; else an error that says what is missing. Side files are not
// asked for: without the Hub nobody can tell which there are.
Status check_snapshot(const Snapshot& snapshot, const ModelRef& ref, Fetch fetch);

}  // namespace mk
