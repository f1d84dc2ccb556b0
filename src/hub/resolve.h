#pragma once
// From a model reference to files: done once, at the start of a command, without network.

#include <string>
#include <string_view>

#include "base/path.h"
#include "base/result.h"
#include "hub/hub_cache.h"
#include "hub/model_ref.h"

namespace mk {

// What a command can use. A folder that has both a checkpoint and a built model is taken as what is wanted, as a built
// model where anything will do.
enum class WantedModel { any, checkpoint, onnx };

struct ResolvedModel {
  ModelRef ref;
  Path folder;         // with config.json and what else is beside the model
  Path onnx;           // the graph; empty for a checkpoint
  std::string commit;  // of a Hub snapshot: 40 hex digits; empty for local files

  bool is_onnx() const { return !onnx.empty(); }
  bool is_local() const { return commit.empty(); }
  // Of the Hub with the name asked for, else the path as it was given.
  const std::string& name() const { return ref.raw; }
};

// usage where the command cannot use the kind that is there; not_found where the reference leads nowhere, naming the
// folder looked in. An .onnx path is not opened.
Result<ResolvedModel> resolve_model(const ModelRef& ref, WantedModel wanted, const HubCache& cache);
// The same from a command line's text, in the environment's cache.
Result<ResolvedModel> resolve_model(std::string_view text, WantedModel wanted);

}  // namespace mk
