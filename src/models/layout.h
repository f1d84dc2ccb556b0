#pragma once
// What LayoutLM and LayoutLMv3 have in common: texts with a box for each token.

#include <vector>

#include "models/bert.h"

namespace mk::models {

struct LayoutInputs {
  TextInputs text;
  Value bbox;          // integers [batch, sequence, 4]: left, top, right, bottom
  Value pixel_values;  // [batch, channels, height, width]; may be absent

  // usage where there is no bbox, or it has another shape.
  static LayoutInputs read(const Scope& root, HeadContext& context);
  Value edge(const Scope& s, int side) const;  // [batch, sequence]
};

// text_input_specs, and a box of numbers from 0 to 1000 for each token.
Result<std::vector<InputSpec>> layout_input_specs(const InputRequest& request, const TextLimits& limits,
                                                  std::int64_t coordinates);

}  // namespace mk::models
