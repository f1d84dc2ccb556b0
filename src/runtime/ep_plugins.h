#pragma once
// Plugin libraries of execution providers, found without loading them. In order: files and folders of WINMLCLI_EP_PATH,
// then packages named onnxruntime* of active Python environments.

#include <optional>
#include <string>
#include <vector>

#include "base/path.h"
#include "runtime/ep_table.h"

namespace mk {

struct EpPlugin {
  const ExecutionProvider* ep = nullptr;  // null for a file named in WINMLCLI_EP_PATH that tells only when it is loaded
  Path library;
  std::string source;  // one of ep_sources
};

struct PluginPlaces {
  std::vector<Path> named;         // files and folders
  std::vector<Path> environments;  // roots of Python environments
};
PluginPlaces plugin_places();

// A library is listed once, where it is found first.
std::vector<EpPlugin> find_plugins(const PluginPlaces& places);

}  // namespace mk
