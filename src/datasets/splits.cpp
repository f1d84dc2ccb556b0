#include "datasets/splits.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "base/text.h"

namespace mk {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> keywords{{{"train", "train"},
                                                                                  {"training", "train"},
                                                                                  {"validation", "validation"},
                                                                                  {"valid", "validation"},
                                                                                  {"val", "validation"},
                                                                                  {"dev", "validation"},
                                                                                  {"test", "test"},
                                                                                  {"testing", "test"},
                                                                                  {"eval", "test"},
                                                                                  {"evaluation", "test"}}};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The first keyword among the runs of letters.
std::optional<std::string> keyword_inside(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    while (at < text.size() && is_letter(text[at])) ++at;
    if (auto split = split_keyword(text.substr(begin, at - begin))) return split;
    if (at == begin) ++at;
  }
  return std::nullopt;
}

// NAME of "NAME-00000-of-00002".
std::optional<std::string> name_of_shard(std::string_view stem) {
  constexpr std::string_view shape = "-ddddd-of-ddddd";
  if (stem.size() <= shape.size()) return std::nullopt;
  const std::string_view tail = stem.substr(stem.size() - shape.size());
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 'd' ? !is_digit(tail[i]) : tail[i] != shape[i]) return std::nullopt;
  return std::string(stem.substr(0, stem.size() - shape.size()));
}

std::string listed(std::span<const std::string> names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

}  // namespace

std::optional<std::string> split_keyword(std::string_view word) {
  for (const auto& [keyword, split] : keywords)
    if (equal_ignoring_case(word, keyword)) return std::string(split);
  return std::nullopt;
}

std::string split_of_file(const Path& relative) {
  const std::string stem = to_utf8(relative.stem());
  if (const auto name = name_of_shard(stem)) return split_keyword(*name).value_or(*name);
  if (auto split = keyword_inside(stem)) return *split;
  for (Path folder = relative.parent_path(); !folder.empty() && folder != folder.parent_path();
       folder = folder.parent_path())
    if (auto split = keyword_inside(to_utf8(folder.filename()))) return *split;
  return "train";
}

Result<std::string> choose_split(std::span<const std::string> available, const std::optional<std::string>& wanted,
                                 std::string_view where) {
  const auto there = [&](std::string_view name) { return std::ranges::find(available, name) != available.end(); };
  if (wanted) {
    if (there(*wanted)) return *wanted;
    if (const auto split = split_keyword(*wanted); split && there(*split)) return *split;
    return fail(ErrorCode::usage,
                "no split " + *wanted + "; there " + (available.size() == 1 ? "is " : "are ") + listed(available),
                std::string(where), "choose one with --split");
  }
  for (const std::string_view name : {"validation", "test"})
    if (there(name)) return std::string(name);
  if (available.size() == 1) return available[0];
  return fail(ErrorCode::usage, "the data set has the splits " + listed(available), std::string(where),
              "choose one with --split");
}

}  // namespace mk
