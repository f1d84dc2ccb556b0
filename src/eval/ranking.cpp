#include "eval/ranking.h"

#include <cmath>

namespace mk {

std::size_t rank_of(std::span<const double> scores, std::size_t gold) {
  const double own = scores[gold];
  if (std::isnan(own)) return scores.size() - 1;
  std::size_t before = 0;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > own || (scores[i] == own && i < gold)) ++before;
  return before;
}

}  // namespace mk
