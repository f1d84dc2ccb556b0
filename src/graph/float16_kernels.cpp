#include "graph/float16_kernels.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "graph/float_formats.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define MK_HAS_F16C 1
#include <immintrin.h>
#endif

namespace mk {
namespace {

constexpr float largest = 65504.0f;
constexpr float smallest = 0x1p-24f;

void narrow_each(const std::byte* from, std::byte* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    float value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    const std::uint16_t bits = float16_bits(value);
    std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
  }
}

void widen_each(const std::byte* from, std::byte* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
    const float value = float16_value(bits);
    std::memcpy(to + i * sizeof value, &value, sizeof value);
  }
}

Float16Losses clip_each(const std::byte* from, std::byte* to, std::size_t count, bool keep_infinity) {
  Float16Losses losses;
  for (std::size_t i = 0; i < count; ++i) {
    float value;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    const float magnitude = std::fabs(value);
    if (keep_infinity && std::isinf(value)) {
      // As it is.
    } else if (magnitude > largest) {
      ++(std::isinf(value) ? losses.infinite : losses.clipped);
      value = std::copysign(largest, value);
    } else if (magnitude < smallest && magnitude != 0.0f) {
      ++losses.raised;
      value = std::copysign(smallest, value);
    }
    const std::uint16_t bits = float16_bits(value);
    std::memcpy(to + i * sizeof bits, &bits, sizeof bits);
  }
  return losses;
}

#ifdef MK_HAS_F16C

// Every processor with AVX2 has F16C.
bool has_f16c() {
  static const bool has = __builtin_cpu_supports("avx2");
  return has;
}

constexpr std::size_t lanes = 8;

const float* floats(const std::byte* at) { return reinterpret_cast<const float*>(at); }

// Each gives how many elements it did; the rest is fewer than the lanes.
__attribute__((target("avx2,f16c"))) std::size_t narrow_lanes(const std::byte* from, std::byte* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const __m256 value = _mm256_loadu_ps(floats(from + i * 4));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * 2), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}

__attribute__((target("avx2,f16c"))) std::size_t widen_lanes(const std::byte* from, std::byte* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * 2));
    _mm256_storeu_ps(reinterpret_cast<float*>(to + i * 4), _mm256_cvtph_ps(half));
  }
  return i;
}

__attribute__((target("avx2,f16c"))) std::size_t clip_lanes(const std::byte* from, std::byte* to, std::size_t count,
                                                            bool keep_infinity, Float16Losses& losses) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  const __m256 upper = _mm256_set1_ps(largest);
  const __m256 lower = _mm256_set1_ps(smallest);
  const __m256 zero = _mm256_setzero_ps();
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const __m256 value = _mm256_loadu_ps(floats(from + i * 4));
    const __m256 magnitude = _mm256_andnot_ps(sign, value);
    const __m256 over = _mm256_cmp_ps(magnitude, upper, _CMP_GT_OQ);
    const __m256 below = _mm256_cmp_ps(magnitude, lower, _CMP_LT_OQ);
    const __m256 tiny = _mm256_and_ps(below, _mm256_cmp_ps(magnitude, zero, _CMP_NEQ_OQ));
    if (_mm256_movemask_ps(_mm256_or_ps(over, tiny)) != 0) {
      const Float16Losses here = clip_each(from + i * 4, to + i * 2, lanes, keep_infinity);
      losses.clipped += here.clipped;
      losses.infinite += here.infinite;
      losses.raised += here.raised;
      continue;
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i * 2), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}

#else

bool has_f16c() { return false; }
std::size_t narrow_lanes(const std::byte*, std::byte*, std::size_t) { return 0; }
std::size_t widen_lanes(const std::byte*, std::byte*, std::size_t) { return 0; }
std::size_t clip_lanes(const std::byte*, std::byte*, std::size_t, bool, Float16Losses&) { return 0; }

#endif

}  // namespace

void float32_to_float16(const std::byte* from, std::byte* to, std::size_t count) {
  const std::size_t done = has_f16c() ? narrow_lanes(from, to, count) : 0;
  narrow_each(from + done * 4, to + done * 2, count - done);
}

void float16_to_float32(const std::byte* from, std::byte* to, std::size_t count) {
  const std::size_t done = has_f16c() ? widen_lanes(from, to, count) : 0;
  widen_each(from + done * 2, to + done * 4, count - done);
}

Float16Losses clip_to_float16(const std::byte* from, std::byte* to, std::size_t count, bool keep_infinity) {
  Float16Losses losses;
  const std::size_t done = has_f16c() ? clip_lanes(from, to, count, keep_infinity, losses) : 0;
  const Float16Losses rest = clip_each(from + done * 4, to + done * 2, count - done, keep_infinity);
  losses.clipped += rest.clipped;
  losses.infinite += rest.infinite;
  losses.raised += rest.raised;
  return losses;
}

}  // namespace mk
