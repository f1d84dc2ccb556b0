#pragma once
// One HTTP request and its response, by libcurl. Nothing is followed and nothing is tried again: that is the caller's,
// who knows what a redirect or a second attempt may do. Proxies are those of the environment (http_proxy, https_proxy,
// all_proxy, no_proxy), certificates those of the system or of REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE.
// libcurl is loaded when the first client is made: commands that need no network start without it.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace mk {

// "https://host:8080/path" and so on.
struct UrlParts {
  std::string scheme;  // lower case
  std::string host;    // lower case, "[::1]" with its brackets; without user and password
  int port = 0;        // the scheme's own where the text has none
  std::string path;    // with the query, from the "/" on; "/" where there is none

  // Requests to the same origin may carry the same secrets (RFC 6454).
  bool same_origin(const UrlParts& other) const {
    return scheme == other.scheme && host == other.host && port == other.port;
  }
};
// Of http and https only; none for anything else, and for text that is no URL.
std::optional<UrlParts> parse_url(std::string_view url);
// Where a Location header leads, absolute (RFC 3986, section 5.2, without dot segments).
std::string resolve_url(std::string_view base, std::string_view location);
// Bytes other than letters, digits and "-._~" (and "/") become %XX.
std::string percent_encoded(std::string_view path);

struct HttpRequest {
  std::string url;
  bool head = false;                 // ask for the headers alone
  std::vector<std::string> headers;  // "Name: value"
  std::uint64_t offset = 0;          // not 0: ask for the bytes from here on (Range)
};

struct HttpResponse {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  // The last header of that name (given in lower case); empty where there is none.
  std::string_view header(std::string_view name) const;
};

// Takes a response as it arrives. An error ends the transfer and is what send() returns.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  virtual Status begin(const HttpResponse& response) = 0;  // before the first byte; not without a body
  virtual Status data(std::span<const std::byte> bytes) = 0;
};

struct HttpError {
  Error error;
  bool transient = false;  // another attempt may work: a lost connection, a timeout, a name server that is busy
};

struct HttpOptions {
  std::string user_agent;
  std::chrono::milliseconds connect_timeout{10'000};
  std::chrono::milliseconds stall_timeout{30'000};  // nothing arrives for so long
};

class HttpClient {
 public:
  // failed where libcurl is not on this machine.
  static Result<std::unique_ptr<HttpClient>> create(const HttpOptions& options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Any status is a response. Connections are kept for the next request. ErrorCode::interrupted when the user asks to
  // stop. Errors name the host, never the path or a header.
  tl::expected<HttpResponse, HttpError> send(const HttpRequest& request, HttpSink& sink);

 private:
  struct State;
  explicit HttpClient(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mk
