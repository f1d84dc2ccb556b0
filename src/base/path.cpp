#include "base/path.h"

#include <algorithm>

#include "base/system.h"

namespace mk {

Path path_from_utf8(std::string_view text) {
  const auto convert = [](std::string_view utf8) { return Path(std::u8string(utf8.begin(), utf8.end())); };
  if (text == "~") return home_folder();
  if (text.starts_with("~/")) return home_folder() / convert(text.substr(2));
  return convert(text);
}

std::string to_utf8(const Path& path) {
  const std::u8string text = path.u8string();
  return {text.begin(), text.end()};
}

Path cache_root() {
  if (const auto named = environment("WINML_CACHE_DIR")) return path_from_utf8(*named);
  return home_folder() / ".cache" / "winml";
}

Path with_suffix(const Path& path, std::string_view suffix) {
  Path result = path;
  result += std::u8string(suffix.begin(), suffix.end());
  return result;
}

bool stays_inside(const Path& relative) {
  if (relative.empty() || relative.has_root_path()) return false;
  if (relative.native().find(Path::value_type{}) != Path::string_type::npos) return false;
  return std::none_of(relative.begin(), relative.end(), [](const Path& part) { return part == ".."; });
}

}  // namespace mk
