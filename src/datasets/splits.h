#pragma once
// The splits of a data set, as the Hub's conventions name them.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/path.h"
#include "base/result.h"

namespace mk {

// train, validation or test for those words and their usual variants (val, dev, eval, ...), in any case; else nothing.
std::optional<std::string> split_keyword(std::string_view word);

// The split that a file belongs to, from its path inside the data set: NAME in "NAME-00000-of-00002.parquet", else a
// keyword in the file's name ("my_test.parquet"), else in the folders above it, the nearest first, else "train".
std::string split_of_file(const Path& relative);

// The split to read out of those there are: the one asked for, else validation, else test, else the only one.
// usage, with a list, where there is no such choice. `where` names the data set.
Result<std::string> choose_split(std::span<const std::string> available, const std::optional<std::string>& wanted,
                                 std::string_view where);

}  // namespace mk
