#include "base/random.h"

#include <array>
#include <bit>
#include <cstddef>
#include <numeric>
#include <utility>

namespace mk {
namespace {

// numpy's SeedSequence: the words of the seed hashed into a pool of four, and the pool hashed into a state.
class SeedPool {
 public:
  explicit SeedPool(std::uint64_t seed) {
    const std::array<std::uint32_t, 4> words{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
    for (std::size_t i = 0; i < 4; ++i) pool_[i] = hashed(words[i]);
    for (std::size_t source = 0; source < 4; ++source)
      for (std::size_t target = 0; target < 4; ++target)
        if (source != target) pool_[target] = mixed(pool_[target], hashed(pool_[source]));
  }

  std::array<std::uint64_t, 4> state() const {
    std::array<std::uint64_t, 4> made{};
    std::uint32_t constant = 0x8b51f9dd;
    for (std::size_t i = 0; i < 8; ++i) {
      std::uint32_t word = pool_[i % 4] ^ constant;
      constant *= 0x58f38ded;
      word *= constant;
      word ^= word >> 16;
      made[i / 2] |= static_cast<std::uint64_t>(word) << (32 * (i % 2));
    }
    return made;
  }

 private:
  std::uint32_t hashed(std::uint32_t word) {
    word ^= constant_;
    constant_ *= 0x931e8875;
    word *= constant_;
    return word ^ (word >> 16);
  }
  static std::uint32_t mixed(std::uint32_t x, std::uint32_t y) {
    const std::uint32_t word = 0xca01f9dd * x - 0x4973f715 * y;
    return word ^ (word >> 16);
  }
  std::array<std::uint32_t, 4> pool_{};
  std::uint32_t constant_ = 0x43b0d7e5;
};

}  // namespace

Random::Random(std::uint64_t seed) {
  const auto seeds = SeedPool(seed).state();
  const auto wide = [](std::uint64_t high, std::uint64_t low) { return (static_cast<Wide>(high) << 64) | low; };
  increment_ = (wide(seeds[2], seeds[3]) << 1) | 1;
  next64();
  state_ += wide(seeds[0], seeds[1]);
  next64();
}

std::uint64_t Random::next64() {
  const Wide multiplier = (static_cast<Wide>(0x2360ed051fc65da4) << 64) | 0x4385df649fccf645;
  state_ = state_ * multiplier + increment_;
  const auto high = static_cast<std::uint64_t>(state_ >> 64);
  return std::rotr(high ^ static_cast<std::uint64_t>(state_), static_cast<int>(high >> 58));
}

std::uint32_t Random::next32() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const std::uint64_t both = next64();
  spare_ = static_cast<std::uint32_t>(both >> 32);
  has_spare_ = true;
  return static_cast<std::uint32_t>(both);
}

double Random::uniform() { return static_cast<double>(next64() >> 11) * 0x1p-53; }

// Lemire's method ("Fast random integer generation in an interval", 2019), in 32 bits where the range fits.
std::uint64_t Random::below(std::uint64_t limit) {
  if (limit == 0) return 0;
  if (limit == ~std::uint64_t{0}) return next64();
  if (limit == 0xffffffff) return next32();
  const std::uint64_t count = limit + 1;
  if (limit < 0xffffffff) {
    std::uint64_t product = next32() * count;
    const auto least = static_cast<std::uint32_t>((0xffffffff - limit) % count);
    while (static_cast<std::uint32_t>(product) < least) product = next32() * count;
    return product >> 32;
  }
  Wide product = static_cast<Wide>(next64()) * count;
  const std::uint64_t least = (~std::uint64_t{0} - limit) % count;
  while (static_cast<std::uint64_t>(product) < least) product = static_cast<Wide>(next64()) * count;
  return static_cast<std::uint64_t>(product >> 64);
}

// numpy shuffles with another method than integers() has: random bits under a mask, until they are small enough.
std::uint64_t Random::masked(std::uint64_t limit) {
  const std::uint64_t mask = std::bit_ceil(limit + 1) - 1;
  for (;;) {
    const std::uint64_t value = (limit <= 0xffffffff ? next32() : next64()) & mask;
    if (value <= limit) return value;
  }
}

std::int64_t Random::integer(std::int64_t low, std::int64_t high) {
  if (high <= low) return low;
  const std::uint64_t limit = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) - 1;
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + below(limit));
}

std::vector<std::size_t> Random::permutation(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = count; i-- > 1;) std::swap(order[i], order[masked(i)]);
  return order;
}

}  // namespace mk
