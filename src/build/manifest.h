#pragma once
// build_manifest.json (spec: build, manifest): what a build made, from what, and how. It is also what reuse is decided
// by. Keys that we do not know are kept on a round trip.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/path.h"
#include "base/result.h"

namespace mk {

struct StageRecord {
  std::string name;
  bool completed = true;  // else skipped
  std::optional<std::string> filename;
  std::optional<double> elapsed_seconds;
  std::optional<std::string> reason;    // why it was skipped, or what it found
  std::shared_ptr<const Json> details;  // what it did; an object, or null
};

struct ArtifactRecord {
  std::string name;  // relative to the manifest's folder
  std::string role;  // model, data, config, report, side, intermediate
  std::uint64_t bytes = 0;
  std::string sha256;
};

// Everything that decides what a build makes. Two builds with equal inputs make the same artefacts.
struct BuildInputs {
  std::string tool_version;
  std::string config_hash;
  std::string target;                          // "cpu/cpu"
  std::map<std::string, std::string> sources;  // file name -> sha256
  bool operator==(const BuildInputs&) const = default;
};

struct Manifest {
  std::string source;  // "hf" or "onnx"
  std::string final_artifact;
  std::vector<StageRecord> stages;
  std::optional<std::string> model_id;
  std::optional<std::string> revision;  // commit of a Hub snapshot
  std::optional<std::string> task;
  std::optional<std::string> cache_key;
  std::optional<std::string> input_onnx;
  double elapsed_seconds = 0;
  std::string timestamp;
  BuildInputs inputs;
  std::vector<ArtifactRecord> artifacts;
  std::shared_ptr<const Json> extras;  // an object, or null
};

Json to_json(const Manifest& manifest);
// malformed with the JSON pointer.
Result<Manifest> parse_manifest(const Json& json, const std::string& name);

// FOLDER/[PREFIX]build_manifest.json.
Path manifest_path(const Path& folder, std::string_view prefix = {});
// Nothing where there is no manifest; one that cannot be read counts as none, and `problem` says why.
std::optional<Manifest> find_manifest(const Path& folder, std::string_view prefix, std::string& problem);

// Names of artefacts of a role.
std::vector<std::string> artifacts_of(const Manifest& manifest, std::string_view role);

// Why `now` is not what was built before, in words; empty where it is.
std::string difference(const BuildInputs& before, const BuildInputs& now);

}  // namespace mk
