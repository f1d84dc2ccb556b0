#pragma once
// From a model reference to files: done once, at the start of a command. What is not on this machine is fetched.

#include <string>
#include <string_view>

#include "base/path.h"
#include "base/result.h"
#include "hub/hub.h"
#include "hub/model_ref.h"

namespace mk {

struct ResolvedModel {
  ModelRef ref;
  Path folder;         // with config.json and what else is beside the model
  Path onnx;           // the graph; empty for a checkpoint
  std::string commit;  // of a Hub snapshot: 40 hex digits; empty for local files

  bool is_onnx() const { return !onnx.empty(); }
  bool is_local() const { return commit.empty(); }
  // Where what is made of the graph goes by default: beside it, but never into the Hub's cache.
  Path output_folder() const { return is_local() ? onnx.parent_path() : Path(); }
  // Of the Hub with the name asked for, else the path as it was given.
  const std::string& name() const { return ref.raw; }
};

// usage where the command cannot use the kind that is there; not_found where the reference leads nowhere, naming what
// was looked at. An .onnx path is not opened.
Result<ResolvedModel> resolve_model(const ModelRef& ref, WantedModel wanted, Hub& hub, Fetch fetch = Fetch::all);
// The same from a command line's text.
Result<ResolvedModel> resolve_model(std::string_view text, WantedModel wanted, Hub& hub, Fetch fetch = Fetch::all);
// Of what is on this machine: local files, and the cache of the environment.
Result<ResolvedModel> resolve_local_model(std::string_view text, WantedModel wanted);

}  // namespace mk
