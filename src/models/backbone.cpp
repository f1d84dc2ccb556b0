#include "models/backbone.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace mk::models {

std::vector<std::int64_t> backbone_stages(ConfigReader& fields, std::int64_t stages) {
  std::vector<std::int64_t> found;
  if (fields.has("out_features")) {
    for (const std::string& name : fields.strings("out_features")) {
      std::int64_t stage = 0;
      while (stage <= stages && name != (stage == 0 ? "stem" : fmt::format("stage{}", stage))) ++stage;
      found.push_back(stage);
    }
  } else if (fields.has("out_indices")) {
    for (const double index : fields.numbers("out_indices"))
      found.push_back(static_cast<std::int64_t>(index < 0 ? index + static_cast<double>(stages + 1) : index));
  } else {
    found.push_back(stages);
  }
  if (found.empty()) {
    fields.fail(ErrorCode::malformed, "out_features or out_indices names no stage");
    return {stages};
  }
  for (const std::int64_t stage : found)
    if (stage < 0 || stage > stages) {
      fields.fail(ErrorCode::malformed,
                  fmt::format("out_features or out_indices names a stage that is none of the {} there are", stages));
      return {stages};
    }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace mk::models
