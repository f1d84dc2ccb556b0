#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/http.h"
#include "base/text.h"

namespace mk {
namespace {

bool has_scheme(std::string_view text) {
  const auto colon = text.find("://");
  return colon != std::string_view::npos && text.find_first_of("/?#") > colon;
}

}  // namespace

std::optional<UrlParts> parse_url(std::string_view url) {
  const auto bad = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == '\\'; };
  if (std::any_of(url.begin(), url.end(), bad)) return std::nullopt;
  const auto colon = url.find("://");
  if (colon == std::string_view::npos) return std::nullopt;
  UrlParts parts;
  parts.scheme = lower_case(url.substr(0, colon));
  if (parts.scheme != "http" && parts.scheme != "https") return std::nullopt;
  parts.port = parts.scheme == "http" ? 80 : 443;

  std::string_view rest = url.substr(colon + 3);
  const auto slash = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, slash);
  rest.remove_prefix(slash);
  parts.path = rest.starts_with('/') ? std::string(rest) : "/" + std::string(rest);
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) authority.remove_prefix(at + 1);
  const auto bracket = authority.find(']');
  const auto port = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (port != std::string_view::npos) {
    const std::string_view digits = authority.substr(port + 1);
    if (!digits.empty()) {
      const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parts.port);
      if (error != std::errc() || end != digits.data() + digits.size() || parts.port < 1 || parts.port > 65535)
        return std::nullopt;
    }
    authority = authority.substr(0, port);
  }
  if (authority.empty()) return std::nullopt;
  parts.host = lower_case(authority);
  return parts;
}

std::string resolve_url(std::string_view base, std::string_view location) {
  if (has_scheme(location)) return std::string(location);
  const auto authority = base.find("://");
  if (authority == std::string_view::npos) return std::string(location);
  if (location.starts_with("//")) return fmt::format("{}:{}", base.substr(0, authority), location);
  const auto root = std::min(base.find_first_of("/?#", authority + 3), base.size());
  if (location.starts_with('/')) return fmt::format("{}{}", base.substr(0, root), location);
  std::string_view folder = base.substr(0, base.find_first_of("?#", authority + 3));
  if (location.starts_with('?')) return fmt::format("{}{}", folder, location);
  const auto last = folder.rfind('/');
  if (last < root || last == std::string_view::npos) return fmt::format("{}/{}", base.substr(0, root), location);
  return fmt::format("{}{}", folder.substr(0, last + 1), location);
}

std::string percent_encoded(std::string_view path) {
  constexpr std::string_view kept = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string text;
  for (const char c : path) {
    if (kept.find(c) != std::string_view::npos)
      text += c;
    else
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

}  // namespace mk
