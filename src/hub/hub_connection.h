#pragma once
// Requests to the Hub: who asks, where redirects lead, what is tried again, and what a refusal means.
//
// The token goes to the endpoint's own origin only: a redirect to another host, port or scheme is followed without it,
// and one from https to http is not followed. Lost connections, 408, 429 and 5xx are tried again with growing pauses,
// or after what Retry-After says; a body that has got on continues where it stopped.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/http.h"
#include "base/progress.h"
#include "base/result.h"
#include "hub/hub_settings.h"

namespace mk {

// What the request is about, for messages.
struct HubSubject {
  std::string id;
  std::string revision;  // may be empty
  std::string file;      // empty for the repository
};

struct HubAnswer {
  int status = 0;
  std::string commit;                 // X-Repo-Commit
  std::string etag;                   // X-Linked-Etag (of what a redirect leads to), else ETag; without quotes and W/
  std::optional<std::uint64_t> size;  // X-Linked-Size, else Content-Length
};

// Takes the bytes of an answer of 200 or 206, over several attempts.
class HubBody {
 public:
  virtual ~HubBody() = default;
  virtual std::uint64_t offset() const = 0;  // what is there already; the next attempt asks for the rest
  virtual Status begin(const HttpResponse& response) = 0;
  virtual Status data(std::span<const std::byte> bytes) = 0;
  virtual bool whole() const = 0;  // after an answer that came to its end
  virtual Status restart() = 0;    // the server says that it has no bytes from offset() on
};

class HubConnection {
 public:
  // `settings` and `progress` outlive it. failed without libcurl; usage where the endpoint is no http(s) address.
  static Result<std::unique_ptr<HubConnection>> open(const HubSettings& settings, Progress& progress);

  // At one request that makes no headway; the settings' number at first.
  void set_attempts(int attempts) { attempts_ = attempts; }

  // `path` is below the endpoint, encoded, and begins with "/". not_found for what is not there or not for this user
  // (401, 403, 404); failed where the Hub does not answer, or not well.
  Result<HubAnswer> get(std::string_view path, const HubSubject& subject, HubBody& body);
  // The headers of the first answer that does not lead on within the Hub; what another host says is not asked.
  Result<HubAnswer> head(std::string_view path, const HubSubject& subject);

 private:
  struct Attempt;
  HubConnection(const HubSettings& settings, Progress& progress, UrlParts origin, std::unique_ptr<HttpClient> client)
      : settings_(settings),
        progress_(progress),
        origin_(std::move(origin)),
        client_(std::move(client)),
        attempts_(settings.attempts) {}
  Attempt attempt(std::string url, const HubSubject& subject, HubBody* body);
  Result<HubAnswer> persist(std::string_view path, const HubSubject& subject, HubBody* body);

  const HubSettings& settings_;
  Progress& progress_;
  UrlParts origin_;
  std::unique_ptr<HttpClient> client_;
  int attempts_;
};

}  // namespace mk
