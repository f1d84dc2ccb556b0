#pragma once
// Paths are std::filesystem::path; text about them is UTF-8 on every system.

#include <filesystem>
#include <string>
#include <string_view>

namespace mk {

using Path = std::filesystem::path;

Path path_from_utf8(std::string_view text);  // "~" and "~/..." are the home folder
std::string to_utf8(const Path& path);

Path home_folder();
// What the tool keeps for later runs: WINML_CACHE_DIR, else ~/.cache/winml.
Path cache_root();

// `path` with `suffix` after its whole name: with_suffix("m.onnx", ".data") is "m.onnx.data".
Path with_suffix(const Path& path, std::string_view suffix);

// True when `relative` has no root and no "..", so that it stays inside the folder it is joined to.
bool stays_inside(const Path& relative);

}  // namespace mk
