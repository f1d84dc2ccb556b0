#pragma once
// pytorch_model.bin: a zip file that torch.save wrote (since PyTorch 1.6), with the object as a pickle and each
// storage as an entry of its own. The pickle is read as data (checkpoint/pickle.h) in which only what makes tensors and
// plain containers may occur.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "checkpoint/pickle.h"
#include "graph/tensor.h"

namespace mk {

using TensorMap = std::map<std::string, Tensor, std::less<>>;

// The file's state dict: the saved object itself, or what it has under "state_dict", "model_state_dict" or "model".
Result<TensorMap> read_pytorch(const std::shared_ptr<const File>& file);

// Whether a pickle may name it: tensors' constructors, storages and element types, OrderedDict.
bool allowed_in_weights(std::string_view global);
// The bytes of a storage, by its key in the archive.
using StorageLookup = std::function<Result<FileRange>(std::string_view key)>;
Result<TensorMap> state_dict_tensors(const Pickle& pickle, const StorageLookup& storage, const std::string& where);

}  // namespace mk
