#pragma once
// Samples as a session takes them.

#include <span>
#include <vector>

#include "base/result.h"
#include "runtime/session.h"

namespace mk {

// The inputs that the session declares, in its types (a model that was converted may take others than the one that the
// sample was made for).
Result<std::vector<HostTensor>> inputs_for(const Session& session, std::span<const HostTensor> inputs);

}  // namespace mk
