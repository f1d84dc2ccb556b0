#pragma once
// The ONNX Runtime library, loaded when a session is needed (dlopen and the C API; nothing is linked).
//
// One process has one environment: loading twice gives the same library. Thread-safe once loaded.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/path.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/system.h"
#include "runtime/locate.h"

struct OrtApi;
struct OrtEnv;

namespace mk {

struct RuntimeOptions {
  std::optional<Path> ort;       // --ort: a library file, or a folder that has one
  Progress* progress = nullptr;  // where its own messages go: errors as warnings, others with -v; must outlive it
  int verbosity = 0;             // as in ConsoleOptions
};

// The oldest C API that we call (ONNX Runtime 1.22).
inline constexpr int minimum_ort_api = 22;

class Runtime {
 public:
  // inference, listing every place looked at and what was there, when none can be loaded.
  static Result<std::shared_ptr<Runtime>> load(const RuntimeOptions& options = {});
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const std::string& version() const { return version_; }         // "1.32.0"
  int api_version() const { return api_version_; }                // 32
  const RuntimeCandidate& used() const { return tried_.back(); }  // where it was found, and why there
  const std::vector<RuntimeCandidate>& tried() const { return tried_; }
  std::vector<std::string> providers() const;  // built into the library: "CPUExecutionProvider", ...

  // For the files of this folder.
  const OrtApi& api() const { return *api_; }
  OrtEnv* env() const { return env_; }

 private:
  Runtime(SharedLibrary library, const OrtApi* api) : library_(library), api_(api) {}
  SharedLibrary library_;
  const OrtApi* api_;
  OrtEnv* env_ = nullptr;
  std::string version_;
  int api_version_ = minimum_ort_api;
  std::vector<RuntimeCandidate> tried_;
};

}  // namespace mk
