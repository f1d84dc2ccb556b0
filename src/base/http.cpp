#include "base/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/system.h"
#include "base/text.h"

namespace mk {
namespace {

// What is used of libcurl, by its own names.
struct Curl {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_reset) easy_reset = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;
  decltype(&curl_slist_append) slist_append = nullptr;
  decltype(&curl_slist_free_all) slist_free_all = nullptr;
};

constexpr std::array<const char*, 6> library_names{"libcurl.so.4",    "libcurl-gnutls.so.4", "libcurl-nss.so.4",
                                                   "libcurl.4.dylib", "libcurl-x64.dll",     "libcurl.dll"};

template <typename Function>
bool bind(const SharedLibrary& library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(library.symbol(name));
  return function != nullptr;
}

Result<Curl> load_curl() {
  for (const char* name : library_names) {
    const auto library = SharedLibrary::load_installed(name);
    if (!library) continue;
    Curl curl;
    const bool whole =
        bind(*library, "curl_global_init", curl.global_init) && bind(*library, "curl_easy_init", curl.easy_init) &&
        bind(*library, "curl_easy_setopt", curl.easy_setopt) &&
        bind(*library, "curl_easy_perform", curl.easy_perform) &&
        bind(*library, "curl_easy_getinfo", curl.easy_getinfo) && bind(*library, "curl_easy_reset", curl.easy_reset) &&
        bind(*library, "curl_easy_cleanup", curl.easy_cleanup) &&
        bind(*library, "curl_easy_strerror", curl.easy_strerror) &&
        bind(*library, "curl_slist_append", curl.slist_append) &&
        bind(*library, "curl_slist_free_all", curl.slist_free_all);
    if (whole && curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return curl;
  }
  return fail(ErrorCode::failed, "libcurl is not installed, and nothing can be downloaded without it",
              fmt::format("{}", fmt::join(library_names, ", ")),
              "Install it (the package libcurl4 on Debian and Ubuntu), or give a local folder");
}

// Loaded once, for good.
const Result<Curl>& shared_curl() {
  static const Result<Curl> curl = load_curl();
  return curl;
}

bool is_transient(CURLcode code) {
  constexpr std::array<CURLcode, 14> codes{CURLE_COULDNT_RESOLVE_PROXY,
                                           CURLE_COULDNT_RESOLVE_HOST,
                                           CURLE_COULDNT_CONNECT,
                                           CURLE_OPERATION_TIMEDOUT,
                                           CURLE_PARTIAL_FILE,
                                           CURLE_SSL_CONNECT_ERROR,
                                           CURLE_GOT_NOTHING,
                                           CURLE_SEND_ERROR,
                                           CURLE_RECV_ERROR,
                                           CURLE_HTTP2,
                                           CURLE_HTTP2_STREAM,
                                           CURLE_HTTP3,
                                           CURLE_WEIRD_SERVER_REPLY,
                                           CURLE_PROXY};
  return std::find(codes.begin(), codes.end(), code) != codes.end();
}

std::string hint_for(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
      return "Check the network, and https_proxy where this machine needs a proxy";
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
      return "Check the proxy that http_proxy, https_proxy or all_proxy names";
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return "Where a proxy has certificates of its own, name them with SSL_CERT_FILE";
    default:
      return "Try again later";
  }
}

std::string trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1));
}

// One transfer, as the callbacks see it.
struct Transfer {
  HttpSink& sink;
  HttpResponse response;
  bool begun = false;
  std::optional<Error> error;  // of the sink

  bool keep(Status status) {
    if (status) return true;
    error = std::move(status).error();
    return false;
  }
};

std::size_t on_header(char* text, std::size_t size, std::size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(text, size * count);
  if (line.starts_with("HTTP/")) {  // also after a proxy's answer, and after "100 Continue"
    transfer.response.headers.clear();
  } else if (const auto colon = line.find(':'); colon != std::string_view::npos) {
    transfer.response.headers.emplace_back(lower_case(trimmed(line.substr(0, colon))), trimmed(line.substr(colon + 1)));
  }
  return size * count;
}

int on_progress(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) { return interrupted() ? 1 : 0; }

}  // namespace

struct HttpClient::State {
  const Curl& curl;
  HttpOptions options;
  std::string certificates;
  CURL* handle = nullptr;

  State(const Curl& functions, HttpOptions given) : curl(functions), options(std::move(given)) {
    for (const char* name : {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})
      if (certificates.empty()) certificates = environment(name).value_or("");
    handle = curl.easy_init();
  }
  ~State() {
    if (handle != nullptr) curl.easy_cleanup(handle);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  template <typename Value>
  void set(CURLoption option, Value value) const {
    curl.easy_setopt(handle, option, value);
  }

  long status() const {
    long value = 0;
    curl.easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &value);
    return value;
  }

  void prepare(const HttpRequest& request, const char* error_text) const {
    curl.easy_reset(handle);
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_ERRORBUFFER, error_text);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(CURLOPT_USERAGENT, options.user_agent.c_str());
    set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_timeout.count()));
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(options.stall_timeout);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(seconds.count()));
    set(CURLOPT_BUFFERSIZE, 256L << 10);
    if (!certificates.empty()) set(CURLOPT_CAINFO, certificates.c_str());
    if (request.head)
      set(CURLOPT_NOBODY, 1L);
    else
      set(CURLOPT_HTTPGET, 1L);
  }
};

namespace {

// The body's bytes, which the sink gets after the head.
struct Body {
  Transfer& transfer;
  std::function<long()> status;

  bool begin() {
    if (std::exchange(transfer.begun, true)) return true;
    transfer.response.status = static_cast<int>(status());
    return transfer.keep(transfer.sink.begin(transfer.response));
  }
};

std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* user) {
  auto& body = *static_cast<Body*>(user);
  const std::span<const char> all(bytes, size * count);
  if (!body.begin() || !body.transfer.keep(body.transfer.sink.data(std::as_bytes(all)))) return 0;
  return all.size();
}

}  // namespace

std::string_view HttpResponse::header(std::string_view name) const {
  const auto found = std::find_if(headers.rbegin(), headers.rend(), [&](const auto& row) { return row.first == name; });
  return found == headers.rend() ? std::string_view() : std::string_view(found->second);
}

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::create(const HttpOptions& options) {
  const auto& curl = shared_curl();
  if (!curl) return tl::make_unexpected(curl.error());
  auto state = std::make_unique<State>(*curl, options);
  if (state->handle == nullptr) return fail(ErrorCode::failed, "libcurl cannot make a connection");
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(state)));
}

tl::expected<HttpResponse, HttpError> HttpClient::send(const HttpRequest& request, HttpSink& sink) {
  const auto url = parse_url(request.url);
  if (!url) return tl::make_unexpected(HttpError{{ErrorCode::usage, "this is no http or https address", "", ""}});
  const State& state = *state_;
  std::array<char, CURL_ERROR_SIZE> reason{};
  state.prepare(request, reason.data());
  curl_slist* headers = nullptr;
  for (const std::string& header : request.headers) headers = state.curl.slist_append(headers, header.c_str());
  // As a header of our own: a server that ignores it is no error then, its status tells.
  if (request.offset > 0)
    headers = state.curl.slist_append(headers, fmt::format("Range: bytes={}-", request.offset).c_str());
  state.set(CURLOPT_HTTPHEADER, headers);

  Transfer transfer{.sink = sink};
  Body body{transfer, [&] { return state.status(); }};
  state.set(CURLOPT_HEADERFUNCTION, &on_header);
  state.set(CURLOPT_HEADERDATA, &transfer);
  state.set(CURLOPT_WRITEFUNCTION, &on_body);
  state.set(CURLOPT_WRITEDATA, &body);
  state.set(CURLOPT_NOPROGRESS, 0L);
  state.set(CURLOPT_XFERINFOFUNCTION, &on_progress);
  const CURLcode code = state.curl.easy_perform(state.handle);
  state.curl.slist_free_all(headers);

  if (interrupted()) return tl::make_unexpected(HttpError{{ErrorCode::interrupted, "interrupted", "", ""}});
  if (transfer.error) return tl::make_unexpected(HttpError{std::move(*transfer.error)});
  transfer.response.status = static_cast<int>(state.status());
  if (code == CURLE_OK) return std::move(transfer.response);
  const char* text = reason[0] != '\0' ? reason.data() : state.curl.easy_strerror(code);
  return tl::make_unexpected(
      HttpError{{ErrorCode::failed, fmt::format("no answer from {}: {}", url->host, text), "", hint_for(code)},
                is_transient(code)});
}

}  // namespace mk
