#include "eval/labels.h"

#include <charconv>

#include "base/json.h"
#include "base/text.h"

namespace mk {
namespace {

constexpr std::string_view generic_prefix = "LABEL_";

std::optional<std::int64_t> id_of(std::string_view text) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id;
}

Result<LabelMapping> names_to_ids(const JsonView& json) {
  if (!json.is_object()) return tl::make_unexpected(json.expected("an object of label names and ids"));
  LabelMapping mapping;
  for (const auto& [name, ignored] : json.json().items()) {
    MK_TRY(mapping[name], json.at(name).integer());
  }
  return mapping;
}

}  // namespace

Result<LabelMapping> read_label_mapping(const Path& path) {
  MK_TRY(const Json json, read_json(path, ErrorCode::usage));
  return names_to_ids(JsonView(json, to_utf8(path), ErrorCode::usage));
}

Result<ModelLabels> ModelLabels::read(const ModelConfig& config) {
  ModelLabels labels;
  const JsonView id2label = config.view().at("id2label");
  if (id2label.is_object())
    for (const auto& [key, ignored] : id2label.json().items()) {
      const auto id = id_of(key);
      if (!id) return tl::make_unexpected(id2label.error("id2label has a key that is no number: " + key));
      const JsonView name = id2label.at(key);
      if (name.is_number()) {
        MK_TRY(const auto number, name.integer());
        labels.id2label[*id] = std::to_string(number);
      } else {
        MK_TRY(labels.id2label[*id], name.string());
      }
    }
  if (config.has("label2id")) {
    MK_TRY(labels.label2id, names_to_ids(config.view().at("label2id")));
  } else {
    for (const auto& [id, name] : labels.id2label) labels.label2id.emplace(name, id);
  }
  return labels;
}

bool ModelLabels::generic() const {
  for (const auto& [id, name] : id2label)
    if (name != std::string(generic_prefix) + std::to_string(id)) return false;
  return true;
}

LabelAligner::LabelAligner(std::vector<std::string> class_names, const std::optional<LabelMapping>& mapping,
                           ModelLabels model)
    : class_names_(std::move(class_names)), model_(std::move(model)) {
  by_user_ = mapping && !mapping->empty();
  maps_ = by_user_ || !model_.generic();
  for (const auto& [name, id] : by_user_ ? *mapping : model_.label2id) mapping_.emplace(lower_case(name), id);
}

Result<std::optional<std::int64_t>> LabelAligner::by_name(std::string_view name, std::string_view where) const {
  const auto found = mapping_.find(lower_case(name));
  if (found == mapping_.end())
    return fail(ErrorCode::usage, "label " + std::string(name) + " is not in the mapping", std::string(where),
                "give the model's id of every label with --label-mapping FILE.json");
  if (!model_.has(found->second)) return std::nullopt;
  return found->second;
}

Result<std::optional<std::int64_t>> LabelAligner::align(const Cell& label, std::string_view where) const {
  if (label.is_null()) return std::nullopt;
  if (const auto* name = label.get<std::string>()) return by_name(*name, where);
  const auto id = label.integer();
  if (!id) return fail(ErrorCode::malformed, "expected a label, got " + std::string(label.kind()), std::string(where));
  if (*id == -1)
    return fail(ErrorCode::usage, "the row has no label (-1)", std::string(where),
                "test splits often keep theirs back; choose another with --split");
  if (class_names_.empty()) {
    if (by_user_) return by_name(std::to_string(*id), where);
    if (model_.has(*id)) return *id;
    return fail(ErrorCode::usage, "the model has no label " + std::to_string(*id), std::string(where));
  }
  if (*id < 0 || *id >= static_cast<std::int64_t>(class_names_.size()))
    return fail(ErrorCode::malformed,
                "label " + std::to_string(*id) + " is beyond the " + std::to_string(class_names_.size()) +
                    " names of the data set",
                std::string(where));
  if (!maps_) return model_.has(*id) ? std::optional(*id) : std::nullopt;
  return by_name(class_names_[static_cast<std::size_t>(*id)], where);
}

}  // namespace mk
