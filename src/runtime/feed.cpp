#include "runtime/feed.h"

#include <algorithm>

namespace mk {

Result<std::vector<HostTensor>> inputs_for(const Session& session, std::span<const HostTensor> inputs) {
  std::vector<HostTensor> result;
  for (const Port& port : session.inputs()) {
    const auto given = std::ranges::find(inputs, port.name, &HostTensor::name);
    if (given == inputs.end()) continue;
    MK_TRY(auto tensor, converted(*given, port.type.element));
    result.push_back(std::move(tensor));
  }
  return result;
}

}  // namespace mk
