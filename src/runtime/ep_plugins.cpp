#include "runtime/ep_plugins.h"

#include <algorithm>

#include "base/file.h"
#include "base/system.h"
#include "base/text.h"

namespace mk {
namespace {

#if defined(_WIN32)
constexpr char list_separator = ';';
#else
constexpr char list_separator = ':';
#endif

// libonnxruntime_providers_qnn.so, onnxruntime_providers_qnn.dll
const ExecutionProvider* ep_of_file(const Path& file) {
  std::string stem = to_utf8(file.stem());
  if (stem.starts_with("lib")) stem.erase(0, 3);
  const std::string suffix = lower_case(to_utf8(file.extension()));
  if (suffix != ".so" && suffix != ".dll" && suffix != ".dylib") return nullptr;
  for (const ExecutionProvider& ep : execution_providers())
    if (!ep.plugin.empty() && stem == ep.plugin) return &ep;
  return nullptr;
}

class Finder {
 public:
  void add(const ExecutionProvider* ep, const Path& library, std::string_view source) {
    std::error_code ignored;
    Path path = std::filesystem::weakly_canonical(library, ignored);
    if (path.empty()) path = library;
    for (const EpPlugin& known : found_)
      if (known.library == path) return;
    found_.push_back({ep, std::move(path), std::string(source)});
  }

  // Plugins in a folder and `depth` levels below it.
  void search(const Path& folder, int depth, std::string_view source) {
    const auto names = list_folder(folder);
    if (!names) return;
    std::error_code ignored;
    for (const Path& name : *names) {
      const Path path = folder / name.filename();
      if (const auto* ep = ep_of_file(path)) {
        add(ep, path, source);
      } else if (depth > 0 && std::filesystem::is_directory(path, ignored)) {
        search(path, depth - 1, source);
      }
    }
  }

  std::vector<EpPlugin> found() && { return std::move(found_); }

 private:
  std::vector<EpPlugin> found_;
};

void search_environment(const Path& root, Finder& finder) {
  std::vector<Path> packages{root / "Lib" / "site-packages"};
  if (const auto names = list_folder(root / "lib"))
    for (const Path& name : *names) packages.push_back(root / "lib" / name.filename() / "site-packages");
  for (const Path& folder : packages) {
    const auto names = list_folder(folder);
    if (!names) continue;
    for (const Path& name : *names)
      if (to_utf8(name.filename()).starts_with("onnxruntime")) finder.search(folder / name.filename(), 2, "pypi");
  }
}

}  // namespace

PluginPlaces plugin_places() {
  PluginPlaces places;
  if (const auto list = environment("WINMLCLI_EP_PATH")) {
    for (std::size_t start = 0; start <= list->size();) {
      const std::size_t end = std::min(list->find(list_separator, start), list->size());
      if (end > start) places.named.push_back(path_from_utf8(list->substr(start, end - start)));
      start = end + 1;
    }
  }
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const auto value = environment(name)) places.environments.push_back(path_from_utf8(*value));
  return places;
}

std::vector<EpPlugin> find_plugins(const PluginPlaces& places) {
  Finder finder;
  std::error_code ignored;
  for (const Path& path : places.named) {
    if (std::filesystem::is_directory(path, ignored)) {
      finder.search(path, 0, "directory");
    } else if (std::filesystem::exists(path, ignored)) {
      finder.add(ep_of_file(path), path, "directory");
    }
  }
  for (const Path& root : places.environments) search_environment(root, finder);
  return std::move(finder).found();
}

}  // namespace mk
