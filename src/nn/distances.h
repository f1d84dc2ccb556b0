#pragma once
// What depends on how far apart two positions of a sequence are, and on nothing else. A distance is that of a column
// from its row: column - row.

#include <cstdint>
#include <functional>

#include "nn/builder.h"

namespace mk::nn {

// A row of a table for each distance.
using OfDistance = std::function<std::int64_t(std::int64_t distance)>;

// 0, 1, 2 ... as many as axis 1 of `like` is long; int64.
Value ramp(const Scope& s, Value like);

// Rows of a table [rows, width] for the distances 1 - length ... length - 1: [2 * length - 1, width]. The length is
// that of axis 1 of `like`, at most `longest`. malformed where the table has no such row.
Value rows_by_distance(const Scope& s, Value table, Value like, std::int64_t longest, const OfDistance& row);

// The same for every pair of positions: [length, length, width].
Value pairs_by_distance(const Scope& s, Value table, Value like, std::int64_t longest, const OfDistance& row);

// [batch, heads, length, 2 * length - 1], what each row has for every distance -> [batch, heads, length, length]: for
// every column.
Value columns_by_distance(const Scope& s, Value by_distance);

// How T5 (Raffel et al. 2019) sorts distances: half of the buckets for columns behind the row; of each half, one half
// for a distance each, the other half for distances that grow as powers, up to `farthest`.
std::int64_t two_sided_bucket(std::int64_t distance, std::int64_t buckets, std::int64_t farthest);
// How DeBERTa (He et al. 2020) does: the distance itself up to half of the buckets, beyond it the logarithm; with the
// sign of the distance.
std::int64_t signed_bucket(std::int64_t distance, std::int64_t buckets, std::int64_t farthest);

}  // namespace mk::nn
