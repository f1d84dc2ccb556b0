#include "recipes/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/publish.h"
#include "base/text.h"

namespace mk {
namespace {

constexpr std::string_view marker = "_config";
constexpr std::string_view extension = ".json";

// Components that come first, by task; the others follow by name.
struct RoleOrder {
  std::string_view task;
  std::array<std::string_view, 2> roles;
};
constexpr std::array role_orders{
    RoleOrder{"image-to-text", {"encoder", "decoder"}},
    RoleOrder{"zero-shot-image-classification", {"image-encoder", "text-encoder"}},
};

std::size_t role_rank(const RecipeName& name) {
  for (const RoleOrder& order : role_orders) {
    if (order.task != name.task) continue;
    return static_cast<std::size_t>(std::ranges::find(order.roles, name.role) - order.roles.begin());
  }
  return 0;
}

bool is_folder(const Path& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

// The recipes right in a folder, sorted by name.
Result<std::vector<Recipe>> recipes_in(const Path& folder, const std::string& slug, const std::string& target) {
  std::vector<Recipe> recipes;
  MK_TRY(std::vector<Path> names, list_folder(folder));
  std::ranges::sort(names);
  for (const Path& name : names) {
    const std::string text = to_utf8(name);
    if (!text.ends_with(extension) || text.find(marker) == std::string::npos) continue;
    RecipeName parsed = parse_recipe_name(std::string_view(text).substr(0, text.size() - extension.size()));
    if (!parsed.precision.empty()) recipes.push_back({folder / name, slug, target, std::move(parsed)});
  }
  return recipes;
}

// Folders of a folder, by name.
Result<std::vector<Path>> folders_in(const Path& folder) {
  MK_TRY(std::vector<Path> names, list_folder(folder));
  std::erase_if(names, [&](const Path& name) { return !is_folder(folder / name); });
  std::ranges::sort(names);
  return names;
}

Result<std::string> canonical_device(std::string_view name) {
  if (const auto device = device_named(name)) return std::string(name_of(*device));
  return fail(ErrorCode::usage, fmt::format("unknown device '{}'", name), "--device", "There are npu, gpu and cpu");
}

}  // namespace

std::string recipe_slug(std::string_view model_id) {
  std::string slug(model_id);
  if (const auto slash = slug.find('/'); slash != std::string::npos) slug[slash] = '_';
  return slug;
}

std::string recipe_ep(std::string_view name) {
  std::string lower = lower_case(name);
  if (lower == "ov") return "openvino";
  if (lower == "mlas") return "cpu";
  if (const ExecutionProvider* ep = find_ep(lower)) return std::string(ep->short_name());
  return lower;
}

RecipeName parse_recipe_name(std::string_view stem) {
  RecipeName name;
  std::string_view group = stem;
  const std::string after = fmt::format("{}_", marker);
  if (const auto middle = stem.find(after); middle != std::string_view::npos) {
    group = stem.substr(0, middle);
    name.role = stem.substr(middle + after.size());
  } else if (stem.ends_with(marker)) {
    group = stem.substr(0, stem.size() - marker.size());
    std::size_t last = std::string_view::npos, length = 0;
    for (const std::string_view precision : recipe_precisions) {
      const std::string inside = fmt::format("_{}_", precision);
      const auto at = group.rfind(inside);
      if (at == std::string_view::npos || (last != std::string_view::npos && at < last)) continue;
      last = at;
      length = inside.size();
    }
    if (last != std::string_view::npos) {
      name.role = group.substr(last + length);
      group = group.substr(0, last + length - 1);
    }
  }
  for (const std::string_view precision : recipe_precisions) {
    if (group.size() <= precision.size() + 1 || !group.ends_with(precision) ||
        group[group.size() - precision.size() - 1] != '_')
      continue;
    name.task = group.substr(0, group.size() - precision.size() - 1);
    name.precision = precision;
    return name;
  }
  name.task = group;
  return name;
}

Result<std::vector<Recipe>> list_recipes(const Path& root) {
  if (!is_folder(root))
    return fail(ErrorCode::not_found, "there is no such folder of recipes", to_utf8(root),
                "Say where they are with --recipes DIR");
  std::vector<Recipe> all;
  const auto add = [&](const Path& folder, const std::string& slug, const std::string& target) -> Status {
    MK_TRY(auto found, recipes_in(folder, slug, target));
    std::ranges::move(found, std::back_inserter(all));
    return {};
  };
  MK_TRY(const auto slugs, folders_in(root));
  for (const Path& slug : slugs) {
    MK_CHECK(add(root / slug, to_utf8(slug), ""));
    MK_TRY(const auto eps, folders_in(root / slug));
    for (const Path& ep : eps) {
      MK_TRY(const auto devices, folders_in(root / slug / ep));
      for (const Path& device : devices)
        MK_CHECK(add(root / slug / ep / device, to_utf8(slug), fmt::format("{}/{}", to_utf8(ep), to_utf8(device))));
    }
  }
  return all;
}

Result<std::vector<RecipeVariant>> find_recipes(const Path& root, std::string_view model_id, std::string_view task,
                                                const std::optional<std::string>& ep,
                                                const std::optional<std::string>& device) {
  const std::string slug = recipe_slug(model_id);
  Path folder = root / path_from_utf8(slug);
  std::string target;
  if (ep && device) {
    MK_TRY(const std::string device_name, canonical_device(*device));
    const std::string ep_name = recipe_ep(*ep);
    if (const Path own = folder / ep_name / device_name; is_folder(own)) {
      folder = own;
      target = fmt::format("{}/{}", ep_name, device_name);
    }
  }
  std::vector<RecipeVariant> variants;
  if (!is_folder(folder)) return variants;
  MK_TRY(auto recipes, recipes_in(folder, slug, target));
  for (const std::string_view precision : recipe_precisions) {
    RecipeVariant variant{std::string(precision), {}};
    for (Recipe& recipe : recipes)
      if (recipe.name.task == task && recipe.name.precision == precision)
        variant.components.push_back(std::move(recipe));
    if (variant.components.empty()) continue;
    std::ranges::stable_sort(variant.components, {}, [](const Recipe& recipe) {
      return std::pair(role_rank(recipe.name), std::string_view(recipe.name.role));
    });
    variants.push_back(std::move(variant));
  }
  return variants;
}

Result<std::vector<Path>> copy_recipes(const Path& root, const RecipeTarget& from, const RecipeTarget& to,
                                       const std::optional<std::string>& model_id) {
  const auto folder_of = [](const RecipeTarget& target) -> Result<Path> {
    MK_TRY(const ExecutionProvider* ep, ep_named(recipe_ep(target.ep)));
    MK_TRY(const std::string device, canonical_device(target.device));
    if (!ep->supports(*device_named(device)))
      return fail(ErrorCode::usage, fmt::format("{} does not run on {}", ep->name, device), {},
                  fmt::format("It runs on {}", ep->device_list()));
    return Path(recipe_ep(target.ep)) / device;
  };
  MK_TRY(const Path source, folder_of(from));
  MK_TRY(const Path destination, folder_of(to));
  if (source == destination)
    return fail(ErrorCode::usage, "the recipes would be copied onto themselves", to_utf8(source),
                "Name another target with --to");
  if (!is_folder(root)) return fail(ErrorCode::not_found, "there is no such folder of recipes", to_utf8(root));
  std::vector<Path> slugs;
  if (model_id) {
    slugs.push_back(path_from_utf8(recipe_slug(*model_id)));
  } else {
    MK_TRY(slugs, folders_in(root));
  }
  std::vector<Path> made;
  for (const Path& slug : slugs) {
    if (!is_folder(root / slug / source)) continue;
    MK_TRY(const auto recipes, recipes_in(root / slug / source, to_utf8(slug), to_utf8(source)));
    Publication publication;
    std::vector<Path> added;
    for (const Recipe& recipe : recipes) {
      const Path copy = root / slug / destination / recipe.file.filename();
      std::error_code ignored;
      if (std::filesystem::exists(copy, ignored)) continue;
      MK_TRY(const std::string text, read_text(recipe.file));
      MK_CHECK(publication.add_text(copy, text, false));
      added.push_back(copy);
    }
    if (added.empty()) continue;
    MK_CHECK(publication.commit());
    std::ranges::move(added, std::back_inserter(made));
  }
  return made;
}

}  // namespace mk
