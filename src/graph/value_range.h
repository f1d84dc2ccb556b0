#pragma once
// The values that an input takes, as winml.io.inputs and the build config record them: [low, high).

namespace mk {

struct ValueRange {
  double low = 0;
  double high = 1;  // of integers: every value is below it
  bool operator==(const ValueRange&) const = default;
};

}  // namespace mk
