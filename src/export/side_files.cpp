#include "export/side_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/json.h"
#include "checkpoint/config.h"
#include "checkpoint/gguf_model.h"
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
  MK_TRY(std::vector<Path> side_files, side_files_in(source));
  // A checkpoint that is one GGUF file has its configuration inside.
  std::optional<ModelConfig> inside;
  if (std::ranges::find(side_files, Path("config.json")) == side_files.end()) {
    MK_TRY(const Path gguf, gguf_of(source));
    if (!gguf.empty()) {
      MK_TRY(inside, ModelConfig::read(source));
      side_files.emplace_back("config.json");
    }
  }
  for (const Path& side_file : side_files) {
    const std::string name = to_utf8(side_file);
    std::error_code error;
    std::string text;
    if (inside && name == "config.json") {
      text = dump_json(inside->json()) + "\n";
    } else {
      MK_TRY(text, read_text(source / side_file, size_limit));
    }
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
