// winml recipes: build configs kept in a folder, by model, task, precision and target.

#include "recipes/recipe.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "winml/command.h"
#include "winml/shared_options.h"

namespace mk::cli {
namespace {

struct RecipesOptions {
  std::string action;
  std::vector<std::string> files;
  Path root = "examples/recipes";
  std::optional<std::string> model, task, precision, ep, device, from, to;
};

// What an action says: rows of a table, a document, or the problems of files.
struct RecipesReport {
  std::vector<Recipe> listed;
  std::optional<std::string> shown;
  struct Checked {
    Path file;
    std::vector<std::string> problems;
  };
  std::vector<Checked> checked;
  std::optional<std::vector<Path>> copied;
};

void describe(RecipesOptions& o, OptionTable& options) {
  options.positional("ACTION", o.action, "list, show, check or copy")
      .required()
      .choices({"list", "show", "check", "copy"});
  options.positional("FILES", o.files, "Recipes to check; all below the folder if absent").accepts(Accepts::file);
  options.value("--recipes", "DIR", o.root, "The folder of recipes")
      .accepts(Accepts::folder)
      .preset("examples/recipes");
  model_option(options, o.model, "The model id whose recipes are meant");
  task_option(options, o.task);
  options.value("-p, --precision", "PRECISION", o.precision, "Only this precision: fp16, fp32, w8a16, w8a8");
  options.value("--ep, --execution-provider", "EP", o.ep,
                "With --device: the recipes for this target, where there are some");
  options.value("-d, --device", "DEVICE", o.device, "With --ep: the device of the target");
  options.value("--from", "EP/DEVICE", o.from, "Of copy: the target whose recipes are copied");
  options.value("--to", "EP/DEVICE", o.to, "Of copy: the target that gets them; what is there stays");
}

Result<RecipeTarget> target_of(const std::optional<std::string>& text, std::string_view option) {
  const auto slash = text ? text->find('/') : std::string::npos;
  if (slash == std::string::npos)
    return fail(ErrorCode::usage, fmt::format("{} needs a target", option), {}, "Such as qnn/npu");
  return RecipeTarget{text->substr(0, slash), text->substr(slash + 1)};
}

bool fits(const Recipe& recipe, const RecipesOptions& o) {
  return (!o.model || recipe.slug == recipe_slug(*o.model)) && (!o.task || recipe.name.task == *o.task) &&
         (!o.precision || equal_ignoring_case(recipe.name.precision, *o.precision));
}

// With a model and a task the search of a build; else everything that fits.
Result<std::vector<Recipe>> find(const RecipesOptions& o) {
  std::vector<Recipe> found;
  if (o.ep.has_value() != o.device.has_value())
    return fail(ErrorCode::usage, "a target is an execution provider and a device", {}, "Give both --ep and --device");
  if (o.model && o.task) {
    MK_TRY(auto variants, find_recipes(o.root, *o.model, *o.task, o.ep, o.device));
    for (RecipeVariant& variant : variants) std::ranges::move(variant.components, std::back_inserter(found));
  } else {
    MK_TRY(found, list_recipes(o.root));
    if (o.ep) {
      const std::string target = fmt::format("{}/{}", recipe_ep(*o.ep), lower_case(*o.device));
      std::erase_if(found, [&](const Recipe& recipe) { return recipe.target != target; });
    }
  }
  std::erase_if(found, [&](const Recipe& recipe) { return !fits(recipe, o); });
  return found;
}

Result<RecipesReport> list(const RecipesOptions& o, Context&) {
  RecipesReport report;
  MK_TRY(report.listed, find(o));
  return report;
}

Result<RecipesReport> show(const RecipesOptions& o, Context& context) {
  if (!o.model)
    return fail(ErrorCode::usage, "no model to show the recipe of", {}, "Give -m MODEL, and -t and -p to choose");
  MK_TRY(const auto found, find(o));
  if (found.empty())
    return fail(ErrorCode::negative, fmt::format("there is no such recipe for {}", *o.model), to_utf8(o.root),
                "`winml recipes list -m MODEL` lists those that there are");
  RecipesReport report;
  if (found.size() > 1) {
    context.progress.note(fmt::format("{} recipes fit; -t, -p, --ep and --device choose one:", found.size()));
    report.listed = found;
    return report;
  }
  context.progress.note(to_utf8(found.front().file));
  MK_TRY(report.shown, read_text(found.front().file));
  return report;
}

// The names above a file say what it is for: ROOT/SLUG/[EP/DEVICE/]FILE.
Recipe recipe_at(const Path& file, const Path& root) {
  Recipe recipe{file, {}, {}, parse_recipe_name(to_utf8(file.stem()))};
  std::error_code ignored;
  const Path below = std::filesystem::relative(file, root, ignored);
  recipe.slug =
      to_utf8(ignored || below.empty() || *below.begin() == ".." ? file.parent_path().filename() : *below.begin());
  return recipe;
}

Result<RecipesReport> check(const RecipesOptions& o, Context&) {
  std::vector<Recipe> recipes;
  for (const std::string& file : o.files) recipes.push_back(recipe_at(path_from_utf8(file), o.root));
  if (o.files.empty()) {
    MK_TRY(recipes, find(o));
  }
  RecipesReport report;
  for (const Recipe& recipe : recipes) {
    MK_TRY(auto problems, check_recipe(recipe));
    if (recipe.name.precision.empty())
      problems.insert(problems.begin(), "the name is not TASK_PRECISION_config.json with fp16, fp32, w8a16 or w8a8");
    report.checked.push_back({recipe.file, std::move(problems)});
  }
  return report;
}

Result<RecipesReport> copy(const RecipesOptions& o, Context&) {
  MK_TRY(const RecipeTarget from, target_of(o.from, "--from"));
  MK_TRY(const RecipeTarget to, target_of(o.to, "--to"));
  RecipesReport report;
  MK_TRY(report.copied, copy_recipes(o.root, from, to, o.model));
  return report;
}

struct Action {
  std::string_view name;
  Result<RecipesReport> (*run)(const RecipesOptions&, Context&);
};
constexpr std::array actions{Action{"list", list}, Action{"show", show}, Action{"check", check}, Action{"copy", copy}};

Result<RecipesReport> run(const RecipesOptions& o, Context& context) {
  const auto action = std::ranges::find(actions, o.action, &Action::name);
  if (!o.files.empty() && action->name != "check")
    return fail(ErrorCode::usage, fmt::format("{} takes no files", action->name), o.files.front());
  return action->run(o, context);
}

bool answer(const RecipesReport& report) {
  return std::ranges::all_of(report.checked, [](const auto& checked) { return checked.problems.empty(); });
}

Json to_json(const RecipesReport& report) {
  if (report.shown) {
    auto json = parse_json(*report.shown, "the recipe");
    return json ? std::move(*json) : Json(*report.shown);
  }
  Json list = Json::array();
  if (report.copied) {
    for (const Path& file : *report.copied) list.push_back(to_utf8(file));
    return list;
  }
  for (const auto& checked : report.checked)
    list.push_back({{"file", to_utf8(checked.file)}, {"problems", checked.problems}});
  for (const Recipe& recipe : report.listed)
    list.push_back({{"file", to_utf8(recipe.file)},
                    {"model", recipe.slug},
                    {"target", recipe.target.empty() ? Json(nullptr) : Json(recipe.target)},
                    {"task", recipe.name.task},
                    {"precision", recipe.name.precision},
                    {"role", recipe.name.role.empty() ? Json(nullptr) : Json(recipe.name.role)}});
  return list;
}

std::string to_text(const RecipesReport& report, const Context& context) {
  if (report.shown) return *report.shown + (report.shown->ends_with('\n') ? "" : "\n");
  std::string text;
  if (report.copied) {
    for (const Path& file : *report.copied) text += to_utf8(file) + "\n";
    return text + fmt::format("{} copied\n", report.copied->size());
  }
  std::size_t wrong = 0;
  for (const auto& checked : report.checked) {
    wrong += !checked.problems.empty();
    for (const std::string& problem : checked.problems) text += fmt::format("{}: {}\n", to_utf8(checked.file), problem);
  }
  if (!report.checked.empty()) {
    const std::string summary =
        fmt::format("{} of {} recipes are right\n", report.checked.size() - wrong, report.checked.size());
    return text + (wrong == 0 ? context.style.green(summary) : summary);
  }
  if (report.listed.empty()) return "No recipe fits.\n";
  std::vector<std::vector<std::string>> rows{{"Model", "Target", "Task", "Precision", "Role"}};
  for (const Recipe& recipe : report.listed)
    rows.push_back({recipe.slug, recipe.target.empty() ? "any" : recipe.target, recipe.name.task, recipe.name.precision,
                    recipe.name.role});
  return columns(rows, "");
}

}  // namespace

Command recipes_command() {
  return define<RecipesOptions, RecipesReport>({
      .name = "recipes",
      .group = "Discover",
      .summary = "List, show, check and copy the build configs kept in a folder",
      .examples = {{"winml recipes list -m microsoft/resnet-50", "Which recipes a model has"},
                   {"winml recipes show -m microsoft/resnet-50 -t image-classification -p fp16",
                    "One of them, to build from"},
                   {"winml recipes check", "Whether all of them are right; exit 1 where not"},
                   {"winml recipes copy --from qnn/npu --to openvino/npu", "The same recipes for another target"}},
      .formats = {"text", "json"},
      .options = describe,
      .run = run,
      .text = to_text,
      .json = to_json,
      .answer = answer,
  });
}

}  // namespace mk::cli
