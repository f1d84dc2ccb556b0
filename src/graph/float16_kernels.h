#pragma once
// Arrays between float32 and float16 at the speed of memory: by the processor's own instructions where it has them.
// Elements are packed and need no alignment; the arrays must not overlap.

#include <cstddef>
#include <cstdint>

namespace mk {

// Round to nearest even, past the largest finite value is infinity.
void float32_to_float16(const std::byte* from, std::byte* to, std::size_t count);
void float16_to_float32(const std::byte* from, std::byte* to, std::size_t count);

struct Float16Losses {
  std::uint64_t clipped = 0;   // finite, past +-65504
  std::uint64_t infinite = 0;  // became +-65504 as well
  std::uint64_t raised = 0;    // not zero, nearer to it than 2^-24, became +-2^-24

  bool any() const { return clipped + infinite + raised > 0; }
  bool operator==(const Float16Losses&) const = default;
};

// Round to nearest even into what float16 holds: see Float16Losses. NaN stays NaN; infinity does where it is asked for.
Float16Losses clip_to_float16(const std::byte* from, std::byte* to, std::size_t count, bool keep_infinity = false);

}  // namespace mk
