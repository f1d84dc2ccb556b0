#pragma once
// A session straight from the IR: no file is written and the weights are not copied into a serialized model, so graphs
// in memory, lazily transformed tensors and models past 2 GiB open as they are.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "graph/ir.h"
#include "runtime/session.h"

namespace mk {

// `extra_outputs`: values of the model's graph (not of sub-graphs) that runs return after the model's own outputs, in
// this order; those that are outputs already are not listed twice. The caller's model stays as it is; it is not needed
// once the session is open.
// failed, naming it, for a name that the graph does not have; otherwise as Session::open_bytes.
Result<Session> open_model(std::shared_ptr<Runtime> runtime, const Model& model, const SessionOptions& options = {},
                           std::span<const std::string> extra_outputs = {});

}  // namespace mk
