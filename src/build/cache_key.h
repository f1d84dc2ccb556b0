#pragma once
// Names and keys of cached artefacts (spec: config, cache).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/path.h"
#include "build/build_config.h"
#include "hub/model_ref.h"

namespace mk {

// First 16 hex digits of the SHA-256 of the config as canonical JSON (keys sorted, `auto` left out, printed as Python's
// json.dumps does).
std::string config_hash(const BuildConfig& config);

// "image-classification" -> "imgcls"; a task without an abbreviation gives its first eight characters.
std::string task_abbreviation(std::string_view task);

// What a build was told beyond its config.
struct BuildControls {
  std::optional<std::string> dtype;  // --dtype
};
// "imgcls_0123456789abcdef", and "_" with eight more digits where controls deviate.
std::string cache_key(std::string_view task, const BuildConfig& config, const BuildControls& controls = {});

// cache_root()/artifacts/SLUG, no two models' the same. A Hub id is itself with its slash as an underscore
// ("microsoft_resnet-50"), and eight digits of its hash behind it where another id would read the same; a local model
// is its last name, and eight digits of its absolute path's hash.
Path artifact_folder(const ModelRef& model);

}  // namespace mk
