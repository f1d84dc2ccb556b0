// The rules that a recipe keeps, beyond being a build config.

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "build/build_config.h"
#include "build/strict.h"
#include "models/registry.h"
#include "recipes/recipe.h"

namespace mk {
namespace {

// What the quant section makes of a model; empty for something else than the four.
std::string precision_of(const std::optional<QuantConfig>& quant) {
  if (!quant) return "fp32";
  if (quant->mode == "fp16") return "fp16";
  if (quant->mode != "static") return quant->mode;
  const auto bits = [](const std::string& type) { return type.ends_with("16") ? 16 : 8; };
  return fmt::format("w{}a{}", bits(quant->weight_type), bits(quant->activation_type));
}

// Whether a component's own task is one that the pipeline's composite has.
bool serves(const BuildConfig& config, const RecipeName& name) {
  if (!config.loader.task) return true;
  if (name.role.empty()) return *config.loader.task == name.task;
  const auto known = composites(config.loader.model_type.value_or(""));
  for (const CompositeChoice& composite : known)
    for (const ComponentChoice& part : composite.components)
      if (part.name == name.role) return part.head.task == *config.loader.task;
  return true;
}

}  // namespace

Result<std::vector<std::string>> check_recipe(const Recipe& recipe) {
  constexpr std::int64_t oldest_opset = 17, newest_opset = 21;
  std::vector<std::string> problems;
  const std::string file = to_utf8(recipe.file);
  auto json = read_config_json(recipe.file);
  if (!json) {
    if (json.error().code == ErrorCode::usage) return std::vector{json.error().message};
    return tl::make_unexpected(std::move(json).error());
  }
  const JsonView view(*json, file, ErrorCode::usage);
  if (const Status strict = strict_build_config(view); !strict) problems.push_back(strict.error().to_string());
  const auto config = parse_build_config(view, silent_progress());
  if (!config) return problems;
  if (const Status valid = validate(*config); !valid) problems.push_back(valid.error().message);

  const std::string precision = precision_of(config->quant);
  if (precision != recipe.name.precision)
    problems.push_back(
        fmt::format("the name says {} and the quant section makes {}", recipe.name.precision, precision));
  if (!serves(*config, recipe.name))
    problems.push_back(fmt::format("the name says {}{}{} and loader.task is {}", recipe.name.task,
                                   recipe.name.role.empty() ? "" : " ", recipe.name.role, *config->loader.task));
  if (config->compile) problems.emplace_back("compile is not null: a recipe leaves the target to the build");
  if (config->exporting) {
    const std::int64_t opset = config->exporting->opset_version;
    if (opset < oldest_opset || opset > newest_opset)
      problems.push_back(fmt::format("opset_version {} is not {} to {}", opset, oldest_opset, newest_opset));
    for (const TensorPatch& input : config->exporting->input_tensors)
      if (input.shape && std::ranges::any_of(*input.shape, [](const Dim& dim) { return !dim.is_known(); }))
        problems.push_back(fmt::format("the input {} has a dynamic shape", input.name));
  }
  if (config->quant && config->quant->model_id && recipe_slug(*config->quant->model_id) != recipe.slug)
    problems.push_back(
        fmt::format("quant.model_id is {}, and the folder is {}", *config->quant->model_id, recipe.slug));
  if (config->eval) {
    const JsonView eval(*config->eval, file, ErrorCode::usage);
    const auto task = eval.at("task").string();
    if (task && *task != recipe.name.task)
      problems.push_back(fmt::format("eval.task is {}, and the name says {}", *task, recipe.name.task));
  }
  return problems;
}

}  // namespace mk
