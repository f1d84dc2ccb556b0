#pragma once
// winml build: a model becomes a folder of artefacts (spec: build). Reuse is decided by content: what the build is made
// from and how, and what is there. The folder has the old artefacts or the new ones, whatever happens in between.

#include <string>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "base/result.h"
#include "build/pipeline.h"

namespace mk {

struct BuildReport {
  std::string model_id;
  bool reused = false;
  std::string reason;  // why it was reused, or built again; empty for a first build
  Path final_artifact;
  Path config_path;
  Path manifest_path;
  Manifest manifest;
  std::uint64_t bytes = 0;  // of the model and its data
  double elapsed_seconds = 0;
};

// What build_model would refuse before any work: to be asked of all builds that go together.
Status check_build(const BuildRequest& request);
Result<BuildReport> build_model(const BuildRequest& request, Progress& progress);

Json to_json(const BuildReport& report);

}  // namespace mk
