#pragma once
// One file of the Hub into the cache: locked, continued where an earlier run stopped, checked against its hash.

#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "hub/hub_connection.h"
#include "hub/hub_repository.h"
#include "hub/hub_store.h"

namespace mk {

struct HubDownload {
  std::string id;
  std::string commit;
  HubFile file;
};

// After it, the file is in the snapshot. A blob that is there already is not fetched again, nor what another process
// fetches at the same time. What was fetched before an error or an interruption stays for the next run.
// failed where the content is, twice, not what the Hub's hash says.
Status download(const HubDownload& wanted, const HubStore& store, HubConnection& connection, Progress& progress);

}  // namespace mk
