#pragma once
// Where the right class stands among a model's scores.

#include <cstddef>
#include <span>

namespace mk {

// How many classes stand before `gold`: those with a higher score, and equal ones with a lower id. A gold score that is
// NaN stands last; other NaNs stand behind it.
std::size_t rank_of(std::span<const double> scores, std::size_t gold);

}  // namespace mk
