#pragma once
// Where libonnxruntime is looked for, in order: --ort PATH, WINML_ORT_PATH, beside the executable and in ../lib, the
// active Python environment's onnxruntime package, the cache that set-up fills, the system's loader.

#include <optional>
#include <string>
#include <vector>

#include "base/path.h"

namespace mk {

struct RuntimeCandidate {
  Path path;            // the library; where there is none, the folder looked in. A bare name is the system's loader.
  std::string source;   // "--ort", "WINML_ORT_PATH", "beside the executable", "Python environment", "cache", "system"
  std::string problem;  // why it was not taken: "no libonnxruntime here", the loader's message; empty for the one used
  bool named = false;   // the user named it: what is wrong with it is an error, and nothing else is tried
};

// The folders that the order above speaks of; the tests fill in their own.
struct RuntimePlaces {
  std::optional<Path> option;      // --ort
  std::optional<Path> variable;    // WINML_ORT_PATH
  std::optional<Path> executable;  // the folder of the running executable
  std::vector<Path> environments;  // roots of active Python environments: VIRTUAL_ENV, CONDA_PREFIX
  std::optional<Path> cache;       // MODELKIT_CACHE or ~/.cache/modelkit
  bool system = true;
};
RuntimePlaces runtime_places(const std::optional<Path>& option);

// Candidates in order. Those with an empty `problem` are files to try to load.
std::vector<RuntimeCandidate> runtime_candidates(const RuntimePlaces& places);

}  // namespace mk
