#include "hub/hub_refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

namespace mk {
namespace {

constexpr std::string_view sign_in = "set HF_TOKEN or run `hf auth login`";

// A server's words: one line of visible characters, and not too many.
std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 200;
  std::string line(text.substr(0, longest));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, ' ');
  while (line.ends_with('.') || line.ends_with(' ')) line.pop_back();
  return line;
}

std::optional<std::chrono::milliseconds> seconds_in(std::string_view text) {
  long long seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end == text.data() || seconds < 0 || seconds > 1'000'000) return std::nullopt;
  return std::chrono::seconds(seconds);
}

// Retry-After in seconds, or the reset of the Hub's own RateLimit header ("api";r=0;t=55).
std::optional<std::chrono::milliseconds> asked_pause(const HttpResponse& response) {
  if (const auto pause = seconds_in(response.header("retry-after"))) return pause;
  const std::string_view limit = response.header("ratelimit");
  const auto reset = limit.find(";t=");
  return reset == std::string_view::npos ? std::nullopt : seconds_in(limit.substr(reset + 3));
}

std::string missing_hint(const HubSettings& settings) {
  return settings.token.empty() ? fmt::format("Check the name; for a private or gated model, {}", sign_in)
                                : "Check the name, and that the token may read it";
}

Error named(ErrorCode code, std::string message, const std::string& page, std::string hint) {
  return {code, std::move(message), page, std::move(hint)};
}

}  // namespace

HubRefusal refusal_of(const HttpResponse& response, const HubSubject& subject, const HubSettings& settings,
                      bool foreign) {
  const int status = response.status;
  const std::string_view code = response.header("x-error-code");
  const auto url = parse_url(settings.endpoint);
  const std::string host = url ? url->host : settings.endpoint;
  const std::string page = fmt::format("{}/{}", host, subject.id);
  const std::string at = subject.revision.empty() ? std::string() : " at " + subject.revision;
  const std::string message = quoted(response.header("x-error-message"));

  if (status == 429) {
    const auto pause = asked_pause(response);
    const auto seconds = pause ? pause->count() / 1000 : 0;
    return {named(ErrorCode::failed, "the Hub limits the number of requests, and this one was too many", host,
                  fmt::format("Try again {}{}", pause ? fmt::format("in {} s", seconds) : "later",
                              settings.token.empty() ? "; with a token (HF_TOKEN) the limit is higher" : "")),
            true, pause};
  }
  if (status == 408 || status >= 500)
    return {named(ErrorCode::failed, fmt::format("the Hub answers with an error of its own ({})", status), host,
                  "Try again later"),
            status != 501, asked_pause(response)};
  if (foreign)  // signed addresses end with time: the next attempt gets a new one
    return {named(ErrorCode::failed,
                  fmt::format("the host that the Hub stores {} at refuses it ({})", subject.file, status), page,
                  "Try again later"),
            true};
  if (code == "GatedRepo")
    return {named(ErrorCode::not_found, fmt::format("{} is gated: its owners give access on request", subject.id), page,
                  settings.token.empty() ? fmt::format("Ask for access on that page, then {}", sign_in)
                                         : "Ask for access on that page, with the account of the token")};
  if (status == 401 && !settings.token.empty() && code.empty())
    return {named(ErrorCode::not_found, "the Hub refuses the token", host,
                  fmt::format("It may have ended: make a new one, and {}", sign_in))};
  if (code == "RevisionNotFound")
    return {named(ErrorCode::not_found, fmt::format("{} has no revision {}", subject.id, subject.revision), page,
                  "Give a branch, a tag or a commit that the page lists")};
  if (code == "EntryNotFound" || (status == 404 && !subject.file.empty()))
    return {named(ErrorCode::not_found, fmt::format("{} has no file {}{}", subject.id, subject.file, at), page,
                  "See the page for what it has")};
  if (status == 403)
    return {named(ErrorCode::not_found,
                  fmt::format("the Hub refuses access to {}{}", subject.id, message.empty() ? "" : ": " + message),
                  page,
                  settings.token.empty() ? fmt::format("For a private or gated model, {}", sign_in)
                                         : "Check that the token may read it")};
  if (status == 401 || status == 404 || code == "RepoNotFound")
    return {named(ErrorCode::not_found, fmt::format("there is no model {} on {}, or it is private", subject.id, host),
                  "", missing_hint(settings))};
  return {named(ErrorCode::failed,
                fmt::format("unexpected answer of the Hub ({}){}", status, message.empty() ? "" : ": " + message), page,
                "Check HF_ENDPOINT, and try again")};
}

}  // namespace mk
