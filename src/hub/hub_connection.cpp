#include "hub/hub_connection.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <random>
#include <thread>

#include "base/system.h"
#include "hub/hub_refusal.h"

namespace mk {
namespace {

constexpr int most_redirects = 10;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}
bool is_success(int status) { return status == 200 || status == 206; }

std::string bare_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// What the Hub itself says of a file; a host that it leads to names other things by the same headers.
void take_facts(HubAnswer& answer, const HttpResponse& response) {
  if (const auto commit = response.header("x-repo-commit"); !commit.empty()) answer.commit = commit;
  const bool leads_on = is_redirect(response.status);
  const std::string_view linked = response.header("x-linked-etag");
  if (!linked.empty() || !leads_on) answer.etag = bare_etag(linked.empty() ? response.header("etag") : linked);
  const std::string_view size = response.header("x-linked-size");
  if (!size.empty() || !leads_on) answer.size = number_in(size.empty() ? response.header("content-length") : size);
}

// Lets only what was asked for through to the body; the text of redirects and errors is dropped.
class Gate final : public HttpSink {
 public:
  explicit Gate(HubBody* body) : body_(body) {}
  Status begin(const HttpResponse& response) override {
    open_ = body_ != nullptr && is_success(response.status);
    begun_ |= open_;
    return open_ ? body_->begin(response) : Status();
  }
  Status data(std::span<const std::byte> bytes) override { return open_ ? body_->data(bytes) : Status(); }
  bool begun() const { return begun_; }

 private:
  HubBody* body_;
  bool open_ = false;
  bool begun_ = false;
};

Status pause(std::chrono::milliseconds time) {
  constexpr auto step = std::chrono::milliseconds(50);
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    if (interrupted()) return fail(ErrorCode::interrupted, "interrupted");
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(step, end - std::chrono::steady_clock::now()));
  }
  return {};
}

}  // namespace

// How one attempt ended: with an answer, or with an error and whether another attempt may help.
struct HubConnection::Attempt {
  std::optional<HubAnswer> answer;
  HubRefusal refusal{};
};

Result<std::unique_ptr<HubConnection>> HubConnection::open(const HubSettings& settings, Progress& progress) {
  auto origin = parse_url(settings.endpoint);
  if (!origin)
    return fail(ErrorCode::usage, "HF_ENDPOINT is no address that begins with http:// or https://", "HF_ENDPOINT",
                "Unset it, or give something like https://huggingface.co");
  MK_TRY(auto client, HttpClient::create({.user_agent = settings.user_agent,
                                          .connect_timeout = settings.connect_timeout,
                                          .stall_timeout = settings.stall_timeout}));
  return std::unique_ptr<HubConnection>(new HubConnection(settings, progress, std::move(*origin), std::move(client)));
}

HubConnection::Attempt HubConnection::attempt(std::string url, const HubSubject& subject, HubBody* body) {
  const auto ended = [](Error error, bool transient = false) {
    return Attempt{std::nullopt, HubRefusal{std::move(error), transient, std::nullopt}};
  };
  HubAnswer answer;
  for (int hop = 0; hop <= most_redirects; ++hop) {
    const auto parts = parse_url(url);
    if (!parts) return ended({ErrorCode::failed, "the Hub leads to an address that is none", subject.id, ""});
    const bool foreign = !parts->same_origin(origin_);
    if (foreign && body == nullptr) return {std::move(answer), {}};
    if (foreign && origin_.scheme == "https" && parts->scheme != "https")
      return ended({ErrorCode::failed, "the Hub leads from https to http; that is not followed", parts->host, ""});

    HttpRequest request{.url = url, .head = body == nullptr, .headers = {}, .offset = body ? body->offset() : 0};
    if (!foreign && !settings_.token.empty()) request.headers.push_back("Authorization: Bearer " + settings_.token);
    Gate gate(body);
    auto response = client_->send(request, gate);
    if (!response) return ended(std::move(response.error().error), response.error().transient);
    answer.status = response->status;
    if (!foreign) take_facts(answer, *response);
    if (is_redirect(response->status) && !response->header("location").empty()) {
      url = resolve_url(url, response->header("location"));
      continue;
    }
    if (response->status == 416 && body != nullptr && request.offset > 0) {
      if (auto cleared = body->restart(); !cleared) return ended(std::move(cleared).error());
      return ended({ErrorCode::failed, "the host has less than what was fetched before", parts->host, ""}, true);
    }
    if (!is_success(response->status)) return {std::nullopt, refusal_of(*response, subject, settings_, foreign)};
    if (body == nullptr) return {std::move(answer), {}};
    if (!gate.begun()) {  // a body of no bytes
      if (auto begun = body->begin(*response); !begun) return ended(std::move(begun).error());
    }
    if (!body->whole())
      return ended({ErrorCode::failed, "the connection ended before the file did", parts->host, "Try again"}, true);
    return {std::move(answer), {}};
  }
  return ended({ErrorCode::failed, "the Hub leads around in a circle", subject.id, "Check HF_ENDPOINT"});
}

Result<HubAnswer> HubConnection::persist(std::string_view path, const HubSubject& subject, HubBody* body) {
  const std::string url = settings_.endpoint + std::string(path);
  std::minstd_rand random(std::random_device{}());
  auto wait = settings_.first_pause;
  std::uint64_t reached = body ? body->offset() : 0;
  for (int tried = 1;; ++tried) {
    Attempt result = attempt(url, subject, body);
    if (result.answer) return std::move(*result.answer);
    HubRefusal& refusal = result.refusal;
    if (body && body->offset() > reached) {  // got on: what counts is attempts in vain
      reached = body->offset();
      tried = 1;
      wait = settings_.first_pause;
    }
    const bool too_long = refusal.after && *refusal.after > settings_.longest_wait;
    if (!refusal.transient || tried >= attempts_ || too_long) return tl::make_unexpected(std::move(refusal.error));
    // Between half of the pause and all of it, so that many clients do not come back at once.
    const auto jittered =
        wait / 2 + std::chrono::milliseconds(random() % (static_cast<unsigned>(wait.count()) / 2 + 1));
    const auto time = refusal.after.value_or(jittered);
    progress_.info(fmt::format("{}; trying again in {:.1f} s", refusal.error.message,
                               std::chrono::duration<double>(time).count()));
    MK_CHECK(pause(time));
    wait = std::min(wait * 2, settings_.longest_pause);
  }
}

Result<HubAnswer> HubConnection::get(std::string_view path, const HubSubject& subject, HubBody& body) {
  return persist(path, subject, &body);
}

Result<HubAnswer> HubConnection::head(std::string_view path, const HubSubject& subject) {
  return persist(path, subject, nullptr);
}

}  // namespace mk
