#pragma once
// Random numbers that equal numpy's: PCG64 (XSL-RR 128/64, O'Neill 2014) seeded by numpy's SeedSequence. What
// numpy.random.default_rng(seed) gives, Random(seed) gives, call by call, so that a result can be reproduced in Python.

#include <cstdint>
#include <vector>

namespace mk {

class Random {
 public:
  explicit Random(std::uint64_t seed);

  std::uint64_t next64();
  std::uint32_t next32();  // half of a 64-bit number; the other half is the next call's

  double uniform();  // [0, 1), as random()
  // [low, high), as integers(low, high); low where the range is empty.
  std::int64_t integer(std::int64_t low, std::int64_t high);
  std::vector<std::size_t> permutation(std::size_t count);  // as permutation(count)

 private:
  std::uint64_t below(std::uint64_t limit);   // [0, limit]
  std::uint64_t masked(std::uint64_t limit);  // [0, limit]
  __extension__ using Wide = unsigned __int128;
  Wide state_ = 0;
  Wide increment_ = 0;
  std::uint32_t spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace mk
