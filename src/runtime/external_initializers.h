#pragma once
// Inside this folder only: initializers that a session takes from memory instead of from external data files
// (OrtApi::AddExternalInitializers). Tensors that share their bytes share them there too.

#include <memory>
#include <span>
#include <vector>

#include "graph/tensor.h"
#include "runtime/ort.h"

namespace mk::ort {

// Adds the tensors to the options. The values must live until the session is made. `kept` gets the owners of the bytes
// that the session uses where they are: they must outlive it. With `shared` the runtime makes no copies of its own
// (OrtApi::AddInitializer), which only a session without optimizations may be told.
Result<std::vector<Owner<OrtValue>>> hand_over(const OrtApi& api, OrtSessionOptions& options,
                                               std::span<const Tensor* const> tensors, bool shared,
                                               std::vector<std::shared_ptr<const void>>& kept);

}  // namespace mk::ort
