#include "runtime/locate.h"

#include <algorithm>
#include <string_view>

#include "base/file.h"
#include "base/system.h"

namespace mk {
namespace {

#if defined(_WIN32)
constexpr std::string_view library_stem = "onnxruntime";
constexpr std::string_view library_suffix = ".dll";
constexpr std::string_view system_name = "onnxruntime.dll";
#elif defined(__APPLE__)
constexpr std::string_view library_stem = "libonnxruntime.";
constexpr std::string_view library_suffix = ".dylib";
constexpr std::string_view system_name = "libonnxruntime.dylib";
#else
constexpr std::string_view library_stem = "libonnxruntime.so";
constexpr std::string_view library_suffix = "";
constexpr std::string_view system_name = "libonnxruntime.so.1";
#endif

// libonnxruntime.so, libonnxruntime.so.1, libonnxruntime.so.1.32.0; not libonnxruntime_providers_shared.so.
bool is_library_name(std::string_view name) {
  if (!name.starts_with(library_stem) || !name.ends_with(library_suffix)) return false;
  const auto rest = name.substr(library_stem.size());
  return std::all_of(rest.begin(), rest.end() - static_cast<std::ptrdiff_t>(library_suffix.size()),
                     [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

// The library in a folder; the shortest name where there are several (they are links to one file).
std::optional<Path> library_in(const Path& folder) {
  std::optional<Path> best;
  const auto names = list_folder(folder);
  if (!names) return best;
  for (const Path& name : *names) {
    const std::string text = to_utf8(name.filename());
    if (is_library_name(text) && (!best || text.size() < to_utf8(best->filename()).size()))
      best = folder / name.filename();
  }
  return best;
}

// Folders <folder>/<prefix>*, the highest version first.
std::vector<Path> versioned_folders(const Path& folder, std::string_view prefix) {
  std::vector<Path> found;
  if (const auto names = list_folder(folder)) {
    for (const Path& name : *names)
      if (to_utf8(name.filename()).starts_with(prefix)) found.push_back(folder / name.filename());
  }
  const auto numbers = [](const Path& path) {
    std::vector<long> parts;
    const std::string text = to_utf8(path.filename());
    for (std::size_t i = 0; i < text.size();) {
      if (text[i] < '0' || text[i] > '9') {
        ++i;
        continue;
      }
      long part = 0;
      for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i)
        part = std::min(part * 10 + (text[i] - '0'), 1000000l);
      parts.push_back(part);
    }
    return parts;
  };
  std::stable_sort(found.begin(), found.end(), [&](const Path& a, const Path& b) { return numbers(a) > numbers(b); });
  return found;
}

RuntimeCandidate look_in(const Path& folder, std::string_view source) {
  if (auto library = library_in(folder)) return {*library, std::string(source), {}, false};
  std::error_code ignored;
  const bool there = std::filesystem::is_directory(folder, ignored);
  return {folder, std::string(source), there ? "no ONNX Runtime library in this folder" : "no such folder", false};
}

RuntimeCandidate look_at(const Path& named, std::string_view source) {
  std::error_code ignored;
  RuntimeCandidate candidate{named, std::string(source), {}, true};
  if (std::filesystem::is_directory(named, ignored)) {
    candidate = look_in(named, source);
    candidate.named = true;
  } else if (!std::filesystem::exists(named, ignored)) {
    candidate.problem = "no such file or folder";
  }
  return candidate;
}

std::vector<RuntimeCandidate> python_candidates(const Path& environment) {
  std::vector<RuntimeCandidate> found;
  const Path package = Path("site-packages") / "onnxruntime" / "capi";
  for (const Path& version : versioned_folders(environment / "lib", "python"))
    found.push_back(look_in(version / package, "Python environment"));
  if (found.empty()) found.push_back(look_in(environment / "Lib" / package, "Python environment"));
  return found;
}

}  // namespace

RuntimePlaces runtime_places(const std::optional<Path>& option) {
  RuntimePlaces places;
  places.option = option;
  if (const auto value = environment("WINML_ORT_PATH")) places.variable = path_from_utf8(*value);
  places.executable = executable_path().parent_path();
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const auto value = environment(name)) places.environments.push_back(path_from_utf8(*value));
  const auto cache = environment("MODELKIT_CACHE");
  places.cache = cache ? path_from_utf8(*cache) : home_folder() / ".cache" / "modelkit";
  return places;
}

std::vector<RuntimeCandidate> runtime_candidates(const RuntimePlaces& places) {
  if (places.option) return {look_at(*places.option, "--ort")};
  if (places.variable) return {look_at(*places.variable, "WINML_ORT_PATH")};

  std::vector<RuntimeCandidate> found;
  if (places.executable) {
    found.push_back(look_in(*places.executable, "beside the executable"));
    found.push_back(look_in((*places.executable / ".." / "lib").lexically_normal(), "beside the executable"));
  }
  for (const Path& environment : places.environments)
    for (auto& candidate : python_candidates(environment)) found.push_back(std::move(candidate));
  if (places.cache) {
    const auto versions = versioned_folders(*places.cache, "onnxruntime-");
    for (const Path& version : versions) found.push_back(look_in(version / "lib", "cache"));
    if (versions.empty()) found.push_back({*places.cache, "cache", "no onnxruntime-VERSION folder here", false});
  }
  if (places.system) found.push_back({Path(system_name), "system", {}, false});
  return found;
}

}  // namespace mk
