#include "export/side_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "hub/side_files.h"

namespace mk {
namespace {

constexpr std::uint64_t size_limit = 256u << 20;

bool same_folder(const Path& a, const Path& b) {
  std::error_code error;
  return std::filesystem::equivalent(a, b, error);
}

}  // namespace

Result<std::vector<std::string>> add_side_files(const Path& source, const Path& target,
                                                std::span<const std::string> ours, bool overwrite,
                                                Publication& publication, Progress& progress) {
  std::vector<std::string> result;
  if (same_folder(source, target)) return result;
  MK_TRY(const std::vector<Path> side_files, side_files_in(source));
  for (const Path& side_file : side_files) {
    const std::string name = to_utf8(side_file);
    std::error_code error;
    MK_TRY(const std::string text, read_text(source / side_file, size_limit));
    const Path destination = target / side_file;
    if (std::filesystem::exists(destination, error)) {
      const auto present = read_text(destination, size_limit);
      if (present && *present == text) {
        result.push_back(name);
        continue;
      }
      if (!overwrite || std::ranges::find(ours, name) == ours.end()) {
        progress.warn(
            fmt::format("{} is there already and differs from the model's; it stays as it is", to_utf8(destination)));
        continue;
      }
    }
    MK_CHECK(publication.add_text(destination, text, overwrite));
    result.push_back(name);
  }
  return result;
}

}  // namespace mk
