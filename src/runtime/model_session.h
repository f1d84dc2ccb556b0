#pragma once
// A session straight from the IR: no file is written and the weights are not copied into a serialized model, so graphs
// in memory, lazily transformed tensors and models past 2 GiB open as they are.

#include <memory>

#include "base/result.h"
#include "graph/ir.h"
#include "runtime/session.h"

namespace mk {

// The caller's model stays as it is; it is not needed once the session is open. Errors as Session::open_bytes.
Result<Session> open_model(std::shared_ptr<Runtime> runtime, const Model& model, const SessionOptions& options = {});

}  // namespace mk
