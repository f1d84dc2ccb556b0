#pragma once
// Rotary position embedding (Su et al. 2021) in the form that transformers has: the halves of a head are the pairs that
// rotate together.

#include <cstdint>
#include <vector>

#include "nn/builder.h"

namespace mk::nn {

// How fast each pair of a head turns. Frequencies that depend on how long the sequence is are computed in the graph.
struct Rope {
  std::int64_t dims = 0;           // of a head that rotate, an even number; the rest stays
  std::vector<float> frequencies;  // one per pair: radians per position
  double amplitude = 1;            // of sine and cosine

  // LongRoPE (Ding et al. 2024): the frequencies once a position is at or beyond `limit`. Empty where there are none.
  std::vector<float> long_frequencies;
  std::int64_t limit = 0;

  // NTK-aware scaling by length: the base grows once a position is at or beyond `limit`. 0 where it does not.
  double ntk_factor = 0, base = 0;

  bool depends_on_length() const { return ntk_factor > 0 || !long_frequencies.empty(); }
};

// [batch, 1, length, dims] in the builder's float type.
struct Angles {
  Value cos, sin;
};
// Of integer positions [batch, length]. `longest` is a bound on positions where one is known, else 0: with it, what
// depends on the length need not be computed.
Angles angles(const Scope& s, const Rope& rope, Value positions, std::int64_t longest = 0);

// x [batch, heads, length, size], turned by the angles; what is beyond their dims stays.
Value rotate(const Scope& s, Value x, const Angles& by);

}  // namespace mk::nn
