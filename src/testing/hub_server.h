#pragma once
// A Hub for tests: repositories in memory, served at the Hub's addresses (GET /api/models/ID/revision/REV, HEAD and GET
// of /ID/resolve/REV/FILE) with its headers. Large files are on another origin, which the Hub leads to.

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "testing/http_server.h"

namespace mk::testing {

struct HubServerFile {
  std::string bytes;
  bool large = false;  // stored by SHA-256 on the other host; else named by git's hash
};

struct HubServerRepository {
  std::string commit = std::string(40, 'a');
  std::map<std::string, HubServerFile> files;
  std::string token;          // that is needed to see it; empty: public
  bool gated = false;         // seen, but not given without the token
  std::string moved_to;       // another id that the API leads to
  bool lists_content = true;  // the API tells the hashes (blobs=true)
};

class HubServer {
 public:
  HubServer();

  std::string url() const { return hub_.url(); }
  HttpServer& hub() { return hub_; }
  HttpServer& storage() { return storage_; }

  void put(const std::string& id, HubServerRepository repository);
  void add(const std::string& id, const std::string& file, std::string bytes, bool large = false);
  void commit(const std::string& id, const std::string& commit);
  // Called first for each request to either server, with true for the storage; an answer replaces the server's own.
  using Hook = std::function<std::optional<ServedResponse>(const ServedRequest&, bool storage)>;
  void intercept(Hook hook);
  // What the storage sends of a file, instead of all of it.
  void change(std::function<void(ServedResponse&)> change);

  // Of the requests so far: "GET /org/name/resolve/..." to the Hub.
  std::vector<std::string> asked() const;
  std::size_t stored_requests() const { return storage_.requests().size(); }

 private:
  ServedResponse answer(const ServedRequest& request);
  ServedResponse answer_storage(const ServedRequest& request);
  ServedResponse describe(const std::string& id, const std::string& revision, bool with_content);
  ServedResponse resolve(const std::string& id, const std::string& revision, const std::string& file);
  std::optional<ServedResponse> refuse(const HubServerRepository* repository, const ServedRequest& request, bool file);

  mutable std::mutex mutex_;
  std::map<std::string, HubServerRepository> repositories_;
  Hook hook_;
  std::function<void(ServedResponse&)> change_;
  HttpServer storage_;
  HttpServer hub_;
};

// The names of contents, as the Hub has them.
std::string etag_of(const HubServerFile& file);

}  // namespace mk::testing
