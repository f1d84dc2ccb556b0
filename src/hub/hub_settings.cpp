#include "hub/hub_settings.h"

#include <algorithm>
#include <charconv>

#include "base/file.h"
#include "base/system.h"
#include "hub/hub_cache.h"

namespace mk {
namespace {

constexpr std::uint64_t longest_token = 4096;

// Line ends and blanks around a token are no part of it. A token with other than visible ASCII in it is none: it could
// break out of the header.
std::string cleaned(std::string text) {
  const auto visible = [](char c) { return c > ' ' && c < '\x7f'; };
  text.erase(text.begin(), std::find_if(text.begin(), text.end(), visible));
  text.erase(std::find_if(text.rbegin(), text.rend(), visible).base(), text.end());
  return std::all_of(text.begin(), text.end(), visible) ? text : std::string();
}

std::string token_from_environment() {
  if (environment_flag("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return {};
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (const auto text = environment(name))
      if (std::string token = cleaned(*text); !token.empty()) return token;
  const auto path = environment("HF_TOKEN_PATH");
  const auto text = read_text(path ? path_from_utf8(*path) : hub_home() / "token", longest_token);
  return text ? cleaned(*text) : std::string();
}

}  // namespace

Path hub_home() {
  if (const auto home = environment("HF_HOME")) return path_from_utf8(*home);
  if (const auto base = environment("XDG_CACHE_HOME")) return path_from_utf8(*base) / "huggingface";
  return home_folder() / ".cache" / "huggingface";
}

HubSettings HubSettings::from_environment() {
  HubSettings settings;
  if (const auto endpoint = environment("HF_ENDPOINT")) settings.endpoint = *endpoint;
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  settings.roots = HubCache::from_environment().roots();
  for (const char* name : {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"})
    if (settings.offline.empty() && environment_flag(name)) settings.offline = name;
  settings.progress = !environment_flag("HF_HUB_DISABLE_PROGRESS_BARS");
  if (const auto text = environment("HF_HUB_DOWNLOAD_TIMEOUT")) {
    int seconds = 0;
    std::from_chars(text->data(), text->data() + text->size(), seconds);
    if (seconds > 0) settings.stall_timeout = std::chrono::seconds(seconds);
  }
  if (settings.offline.empty()) settings.token = token_from_environment();
  return settings;
}

}  // namespace mk
