#pragma once
// What a repository of the Hub has at a revision, as its API tells it (GET /api/models/ID/revision/REV?blobs=true).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "hub/hub_connection.h"

namespace mk {

struct HubFile {
  std::string name;  // in the repository, with "/"; stays inside a folder it is joined to
  // What names the content: the SHA-256 of a large file, git's SHA-1 of a small one; empty where the API did not say.
  std::string etag;
  std::optional<std::uint64_t> size;
};

struct HubRepositoryInfo {
  std::string commit;          // 40 hex digits
  std::vector<HubFile> files;  // by name
  const HubFile* find(std::string_view name) const;
};

// malformed where the answer is none of the Hub's; else the connection's errors.
Result<HubRepositoryInfo> ask_repository(HubConnection& connection, std::string_view id, std::string_view revision);
// Of an answer's text; `where` is for errors.
Result<HubRepositoryInfo> parse_repository(std::string_view text, const std::string& where);

// The path of a file at a commit below the endpoint, encoded.
std::string file_address(std::string_view id, std::string_view commit, std::string_view name);

}  // namespace mk
