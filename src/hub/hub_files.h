#pragma once
// Which files of a repository a command needs: configurations first, and of the weights only one form.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/result.h"
#include "hub/hub_repository.h"
#include "hub/model_ref.h"

namespace mk {

// How much a command needs of a checkpoint. Of an ONNX reference it is all, or for `configs` and `side_files` what is
// beside the graph, too.
enum class Fetch {
  configs,     // config.json and its like: small JSON files
  side_files,  // those, tokenizers and vocabularies
  all,         // those and the weights
};

// What a command can use. A folder that has both a checkpoint and a built model is taken as what is wanted, as a built
// model where anything will do.
enum class WantedModel { any, checkpoint, onnx };

// What a checkpoint's weights are in: one file, or the index of its shards. In the order in which they are looked for.
std::span<const std::string_view> weight_file_names();

// The first files to fetch for an id: side files or configs, with the weights (or their index) of a checkpoint, or the
// one graph of a repository without config.json; for org/repo/path/file.onnx that file and what is beside it.
// usage where several graphs could be meant, or the wrong kind is wanted; not_found where there is neither checkpoint
// nor graph, or not that file; unsupported where the weights are of a kind that is not read.
Result<std::vector<std::string>> files_to_fetch(const HubRepositoryInfo& repository, const ModelRef& ref,
                                                WantedModel wanted, Fetch fetch);

// What the fetched files name in turn: the shards of an index, the external data of a graph. malformed where one of
// them is not in the repository (of external data: nothing, the reader of the graph says so).
Result<std::vector<std::string>> files_named_by(const Path& snapshot, const std::vector<std::string>& fetched,
                                                const HubRepositoryInfo& repository);

}  // namespace mk
