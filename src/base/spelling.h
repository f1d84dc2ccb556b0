#pragma once
// "Did you mean ...?"

#include <optional>
#include <span>
#include <string_view>

namespace mk {

// The known word nearest to `word` by edits and swaps of neighbours (optimal string alignment, letters in any case), or
// none when the nearest is further away than a third of the word.
std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace mk
