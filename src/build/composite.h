#pragma once
// Builds of the graphs of one model into one folder, each under its name: encoder_model.onnx, decoder_model.onnx ...,
// and composite_manifest.json, which says what they are (spec: build, composite).

#include <string>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/progress.h"
#include "base/result.h"
#include "build/build.h"

namespace mk {

struct CompositeRequest {
  std::vector<BuildRequest> components;  // submodel and prefix ("encoder_") are set; one folder
  std::vector<std::string> pipeline_tasks;
  bool whole = true;  // false where only some of the graphs are built: then there is no composite_manifest.json
};

struct CompositeReport {
  std::vector<std::pair<std::string, BuildReport>> components;  // by name
  std::vector<std::string> pipeline_tasks;
  Path manifest_path;  // empty where there is none
  double elapsed_seconds = 0;
};

// What cannot be built is refused before anything is written. An error later on leaves the components that are done,
// with a warning that names them.
Result<CompositeReport> build_composite(const CompositeRequest& request, Progress& progress);

Json to_json(const CompositeReport& report);

}  // namespace mk
