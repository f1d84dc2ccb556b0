#pragma once
// Recipes: build configs kept in a folder, one file per model, task, precision and component (spec: recipes).
//
//   ROOT/SLUG/FILE.json                 for any target
//   ROOT/SLUG/EP/DEVICE/FILE.json       for one target; where it exists it hides the ones above
//
// FILE is TASK_PRECISION_config.json, with a component's role after or before "_config".

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/result.h"
#include "runtime/ep_table.h"

namespace mk {

// A model's folder: its id with only the first "/" as an underscore.
std::string recipe_slug(std::string_view model_id);

// "openvino" of any of its names, also "ov"; "cpu" of "mlas"; as it is, in lower case, where no EP has that name.
std::string recipe_ep(std::string_view name);

struct RecipeName {
  std::string task;       // of the pipeline
  std::string precision;  // one of recipe_precisions; empty where the name has none of them: no recipe
  std::string role;       // of a component; empty for a single graph
  bool operator==(const RecipeName&) const = default;
};
// From a file's name without ".json".
RecipeName parse_recipe_name(std::string_view stem);

inline constexpr std::array<std::string_view, 4> recipe_precisions{"fp16", "fp32", "w8a16", "w8a8"};

struct Recipe {
  Path file;
  std::string slug;
  std::string target;  // "qnn/npu"; empty for any
  RecipeName name;
};

// Every recipe below a root, sorted by file. not_found where there is no such folder.
Result<std::vector<Recipe>> list_recipes(const Path& root);

// The recipes of one precision: one, or the components of a pipeline in the order in which they are run.
struct RecipeVariant {
  std::string precision;
  std::vector<Recipe> components;
  bool is_composite() const { return !components.front().name.role.empty(); }
};
// In the order of recipe_precisions. A target's folder is looked at only where both are given, and hides the others.
Result<std::vector<RecipeVariant>> find_recipes(const Path& root, std::string_view model_id, std::string_view task,
                                                const std::optional<std::string>& ep,
                                                const std::optional<std::string>& device);

// What is wrong with a recipe; none where it is right (spec: recipes, usage flow).
Result<std::vector<std::string>> check_recipe(const Recipe& recipe);

// Copies the recipes of one target to another, for every model or one; what is there already stays. The new files.
struct RecipeTarget {
  std::string ep, device;
};
Result<std::vector<Path>> copy_recipes(const Path& root, const RecipeTarget& from, const RecipeTarget& to,
                                       const std::optional<std::string>& model_id);

}  // namespace mk
