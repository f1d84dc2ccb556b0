#include "models/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "base/spelling.h"
#include "models/families.h"

namespace mk {
namespace {

using models::Chosen;
using models::Family;
using models::Head;

// All families by model type, with their heads as the registry shows them.
struct Entry {
  const Family* family;
  std::vector<std::string> class_names;
  std::vector<HeadInfo> heads;
  std::vector<HeadInfo> offered;  // those that are a task of their own
};

std::vector<Entry> make_entries() {
  std::vector<Entry> entries;
#define MK_ENTRY(name) entries.push_back({&models::name, {}, {}, {}});
  MK_FAMILIES(MK_ENTRY)
#undef MK_ENTRY
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.family->model_type < b.family->model_type; });
  for (Entry& entry : entries) {
    for (const Head& head : entry.family->heads)
      entry.class_names.push_back(fmt::format("{}{}", entry.family->stem, head.suffix));
    for (std::size_t i = 0; i < entry.class_names.size(); ++i)
      entry.heads.push_back({entry.family->heads[i].task, entry.class_names[i]});
    for (std::size_t i = 0; i < entry.heads.size(); ++i)
      if (!entry.family->heads[i].only_in_composite) entry.offered.push_back(entry.heads[i]);
  }
  return entries;
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = make_entries();
  return all;
}

std::string normalized(std::string_view model_type) {
  std::string name(model_type);
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

const Entry* find_entry(std::string_view model_type) {
  const std::string name = normalized(model_type);
  for (const Entry& entry : entries())
    if (normalized(entry.family->model_type) == name) return &entry;
  return nullptr;
}

// Types that are known, and why no graph is made of them.
struct Refused {
  std::string_view model_type;
  std::string_view reason, hint;
};
constexpr std::string_view own_code = "models of type \"{}\" come with code of their own, and remote code is not run";
constexpr std::string_view export_elsewhere =
    "Export it with the library that it was made for; winml build takes the ONNX";
constexpr std::array refused{
    Refused{"mu2", own_code, export_elsewhere},
    Refused{"sam3-tracker", "models of type \"{}\" are used by the ONNX files that are published with them",
            "Give one of them, such as onnx/vision_encoder.onnx or onnx/prompt_encoder_mask_decoder.onnx"},
    Refused{"unlimited-ocr", own_code, export_elsewhere},
};

Result<const Entry*> required_entry(const ModelConfig& config, std::string_view model_type) {
  if (const Entry* entry = find_entry(model_type)) return entry;
  if (model_type.empty())
    return fail(ErrorCode::unsupported, "the configuration has no model_type", config.name(),
                "Say which architecture it is with \"model_type\"");
  for (const Refused& type : refused)
    if (type.model_type == normalized(model_type))
      return fail(ErrorCode::unsupported, fmt::format(fmt::runtime(type.reason), model_type), config.name(),
                  std::string(type.hint));
  std::vector<std::string_view> names;
  for (const Entry& entry : entries()) names.push_back(entry.family->model_type);
  const auto meant = nearest(model_type, names);
  return fail(ErrorCode::unsupported, fmt::format("models of type \"{}\" cannot be exported", model_type),
              config.name(),
              meant ? fmt::format("Did you mean \"{}\"?", *meant)
                    : fmt::format("Those that can are {}", fmt::join(names, ", ")));
}

}  // namespace

bool models::matches(std::string_view pattern, std::string_view name) {
  const std::size_t place = pattern.find("{}");
  if (place == std::string_view::npos) return pattern == name;
  const std::string_view before = pattern.substr(0, place), after = pattern.substr(place + 2);
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) return false;
  const std::string_view number = name.substr(place, name.size() - before.size() - after.size());
  return std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::vector<std::string> models::expand(const std::vector<std::string_view>& patterns, std::int64_t layers) {
  std::vector<std::string> names;
  std::vector<std::string_view> repeated;
  for (const std::string_view pattern : patterns) {
    if (pattern.find("{}") == std::string_view::npos)
      names.emplace_back(pattern);
    else
      repeated.push_back(pattern);
  }
  if (repeated.empty()) return names;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (const std::string_view pattern : repeated) names.push_back(fmt::format(fmt::runtime(pattern), layer));
  return names;
}

Result<Chosen> models::find_head(const ModelConfig& config, const HeadChoice& choice) {
  MK_TRY(const Entry* entry, required_entry(config, choice.model_type));
  for (std::size_t i = 0; i < entry->heads.size(); ++i)
    if (entry->heads[i].task == choice.task && entry->heads[i].class_name == choice.class_name)
      return Chosen{entry->family, &entry->family->heads[i]};
  return fail(ErrorCode::usage, fmt::format("{} does not serve {}", choice.class_name, choice.task), config.name());
}

std::vector<ModelTypeInfo> model_types() {
  std::vector<ModelTypeInfo> types;
  for (const Entry& entry : entries()) types.push_back({entry.family->model_type, entry.offered});
  return types;
}

std::optional<ModelTypeInfo> find_model_type(std::string_view model_type) {
  const Entry* entry = find_entry(model_type);
  if (!entry) return std::nullopt;
  return ModelTypeInfo{entry->family->model_type, entry->offered};
}

Result<HeadChoice> choose_head(const ModelConfig& config, std::string_view task) {
  const std::string model_type = config.model_type();
  MK_TRY(const Entry* entry, required_entry(config, model_type));
  const std::vector<std::string> architectures = config.architectures();
  const auto has = [&](std::string_view name) {
    return std::any_of(entry->offered.begin(), entry->offered.end(),
                       [&](const HeadInfo& head) { return head.task == name; });
  };
  if (task == "feature-extraction" && !has(task) && has("image-feature-extraction")) task = "image-feature-extraction";
  const HeadInfo* first = nullptr;
  std::set<std::string_view> tasks;
  for (const HeadInfo& head : entry->offered) {
    tasks.insert(head.task);
    if (head.task != task) continue;
    if (!architectures.empty() && head.class_name == architectures.front()) {
      first = &head;
      break;
    }
    if (!first) first = &head;
  }
  if (!first)
    return fail(ErrorCode::usage, fmt::format("{} models have no task \"{}\"", entry->family->model_type, task),
                config.name(), fmt::format("They have {}", fmt::join(tasks, ", ")));
  return HeadChoice{std::string(entry->family->model_type), std::string(first->task), std::string(first->class_name)};
}

Result<std::vector<InputSpec>> default_inputs(const ModelConfig& config, const HeadChoice& choice,
                                              const ShapeRequest& shapes, const PreprocessorFacts& preprocessor) {
  MK_TRY(const Chosen found, models::find_head(config, choice));
  models::InputRequest request{*found.family, *found.head, models::ConfigReader(config),
                               choice.task,   shapes,      preprocessor};
  return (found.head->inputs ? found.head->inputs : found.family->default_inputs)(request);
}

std::vector<CompositeChoice> composites(std::string_view model_type) {
  std::vector<CompositeChoice> choices;
  const Entry* entry = find_entry(model_type);
  if (!entry) return choices;
  const Family& family = *entry->family;
  for (const models::Composite& composite : family.composites) {
    CompositeChoice& choice = choices.emplace_back();
    choice.tasks.assign(composite.tasks.begin(), composite.tasks.end());
    for (const models::Component& part : composite.components)
      choice.components.push_back(
          {std::string(part.name),
           {std::string(family.model_type), std::string(part.task), fmt::format("{}{}", family.stem, part.suffix)}});
  }
  return choices;
}

Result<std::vector<std::string_view>> optional_inputs(const ModelConfig& config, const HeadChoice& choice) {
  MK_TRY(const Chosen found, models::find_head(config, choice));
  return found.family->optional;
}

Result<std::vector<std::string>> output_names(const ModelConfig& config, const HeadChoice& choice) {
  MK_TRY(const Chosen found, models::find_head(config, choice));
  models::ConfigReader fields(config);
  const std::int64_t layers = found.family->cached_layers ? found.family->cached_layers(fields) : 0;
  MK_CHECK(fields.status());
  return models::expand(found.head->outputs, layers);
}

}  // namespace mk
