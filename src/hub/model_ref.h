#pragma once
// What `-m` may be: an ONNX file, a model folder, an id of the Hub (id or id@revision), or an ONNX file of a Hub
// repository (org/repo/path/file.onnx). Told from the text and from what exists locally; no network.

#include <string>
#include <string_view>

#include "base/path.h"
#include "base/result.h"

namespace mk {

enum class ModelRefKind { local_onnx, folder, hub_onnx, hub_id };
// As reports write it: "local_onnx", "build_dir", "hub_onnx", "hf_id".
std::string_view name_of(ModelRefKind kind);

struct ModelRef {
  ModelRefKind kind = ModelRefKind::hub_id;
  std::string raw;       // as it was given
  Path local_path;       // of local_onnx and folder; a GGUF file is a folder that has nothing else
  std::string id;        // of hub_id and hub_onnx: "org/name" or "name"
  std::string revision;  // a branch, a tag or a commit; empty where none was asked for
  std::string file;      // of hub_onnx: the path in the repository, of a graph or of a GGUF file
};

// "name" or "org/name", as the Hub allows them.
bool is_model_id(std::string_view text);

// usage for a text that can be none of these; not_found for a local path that does not exist (a missing .onnx file is
// local_onnx: whoever opens it reports it).
Result<ModelRef> parse_model_ref(std::string_view text);

}  // namespace mk
