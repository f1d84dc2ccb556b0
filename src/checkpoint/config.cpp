#include "checkpoint/config.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <optional>
#include <system_error>

#include "base/file.h"
#include "base/json.h"
#include "checkpoint/gguf_model.h"

namespace mk {
namespace {

constexpr std::int64_t default_num_labels = 2;
// Beyond any classifier; keeps a broken number from becoming a list of names.
constexpr std::int64_t max_labels = 10'000'000;

// What `read` makes of a field, or `otherwise` where it is absent or null.
template <typename T>
Result<T> read_field(const JsonView& view, std::string_view key, T otherwise, Result<T> (JsonView::*read)() const) {
  if (!view.has(key)) return otherwise;
  return (view.at(key).*read)();
}

std::optional<std::int64_t> label_id(std::string_view text) {
  std::int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size() || id < 0) return std::nullopt;
  return id;
}

}  // namespace

ModelConfig::ModelConfig(std::shared_ptr<const Json> root, std::shared_ptr<const JsonView> view, std::string name)
    : root_(std::move(root)), view_(std::move(view)), name_(std::move(name)) {}

Result<ModelConfig> ModelConfig::read(const Path& folder) {
  const Path path = folder / "config.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    MK_TRY(const Path gguf, gguf_of(folder));
    if (!gguf.empty()) {
      MK_TRY(const GgufFile file, read_gguf(gguf));
      MK_TRY(const Json config, gguf_config(file));
      return parse(dump_json(config), to_utf8(gguf));
    }
  }
  auto text = read_text(path);
  if (!text) {
    Error error = std::move(text).error();
    if (error.code == ErrorCode::not_found)
      error = {error.code, "there is no config.json", to_utf8(folder),
               "A model folder has a config.json beside its weights"};
    return tl::make_unexpected(std::move(error));
  }
  return parse(*text, to_utf8(path));
}

Result<ModelConfig> ModelConfig::parse(std::string_view text, std::string name) {
  MK_TRY(Json json, parse_json(text, name));
  // The configurations of the timm library, which transformers reads as its wrapper's.
  if (json.is_object() && !json.contains("model_type") && json.contains("pretrained_cfg"))
    json["model_type"] = "timm_wrapper";
  const auto root = std::make_shared<const Json>(std::move(json));
  const auto view = std::make_shared<const JsonView>(*root, name);
  if (!view->is_object()) return tl::make_unexpected(view->expected("an object"));
  if (view->has("model_type")) MK_CHECK(view->at("model_type").string());
  if (view->has("architectures")) MK_CHECK(view->at("architectures").strings());
  return ModelConfig(root, view, std::move(name));
}

ModelConfig ModelConfig::with_model_type(std::string_view type) const {
  Json changed = view_->json();
  changed["model_type"] = type;
  const auto root = std::make_shared<const Json>(std::move(changed));
  return ModelConfig(root, std::make_shared<const JsonView>(*root, name_), name_);
}

const Json& ModelConfig::json() const { return view_->json(); }

std::string ModelConfig::model_type() const {
  const auto value = view_->at("model_type").string();
  return value ? *value : std::string();
}

std::vector<std::string> ModelConfig::architectures() const {
  const auto value = view_->at("architectures").strings();
  return value ? *value : std::vector<std::string>();
}

bool ModelConfig::has(std::string_view key) const { return view_->has(key); }

Result<std::int64_t> ModelConfig::integer(std::string_view key, std::int64_t otherwise) const {
  return read_field(*view_, key, otherwise, &JsonView::integer);
}
Result<double> ModelConfig::number(std::string_view key, double otherwise) const {
  return read_field(*view_, key, otherwise, &JsonView::number);
}
Result<bool> ModelConfig::boolean(std::string_view key, bool otherwise) const {
  return read_field(*view_, key, otherwise, &JsonView::boolean);
}
Result<std::string> ModelConfig::string(std::string_view key, std::string otherwise) const {
  return read_field(*view_, key, std::move(otherwise), &JsonView::string);
}
Result<std::vector<std::int64_t>> ModelConfig::integers(std::string_view key,
                                                        std::vector<std::int64_t> otherwise) const {
  return read_field(*view_, key, std::move(otherwise), &JsonView::integers);
}
Result<std::vector<std::string>> ModelConfig::strings(std::string_view key, std::vector<std::string> otherwise) const {
  return read_field(*view_, key, std::move(otherwise), &JsonView::strings);
}

Result<std::pair<std::int64_t, std::int64_t>> ModelConfig::pair(std::string_view key, std::int64_t otherwise) const {
  if (!view_->has(key)) return std::pair(otherwise, otherwise);
  const JsonView value = view_->at(key);
  if (!value.is_array()) {
    MK_TRY(const std::int64_t both, value.integer());
    return std::pair(both, both);
  }
  MK_TRY(const auto values, value.integers());
  if (values.empty() || values.size() > 2) return tl::make_unexpected(value.expected("one or two integers"));
  return std::pair(values.front(), values.back());
}

Result<ModelConfig> ModelConfig::section(std::string_view key) const {
  const JsonView value = view_->at(key);
  if (!value.is_object()) return tl::make_unexpected(value.expected("an object"));
  if (value.has("model_type")) MK_CHECK(value.at("model_type").string());
  if (value.has("architectures")) MK_CHECK(value.at("architectures").strings());
  return ModelConfig(root_, std::make_shared<const JsonView>(value), name_);
}

Result<std::int64_t> ModelConfig::num_labels() const {
  const JsonView names = view_->at("id2label");
  if (!names.is_null() && !names.is_object())
    return tl::make_unexpected(names.expected("an object of label names by id"));
  if (names.is_object() && names.size() > 0) return static_cast<std::int64_t>(names.size());
  MK_TRY(const std::int64_t count, integer("num_labels", default_num_labels));
  if (count < 1 || count > max_labels)
    return tl::make_unexpected(view_->at("num_labels").expected("a number of labels"));
  return count;
}

Result<std::vector<std::string>> ModelConfig::labels() const {
  MK_TRY(const std::int64_t count, num_labels());
  std::vector<std::string> labels;
  labels.reserve(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) labels.push_back(fmt::format("LABEL_{}", i));
  const JsonView names = view_->at("id2label");
  if (!names.is_object()) return labels;
  for (const auto& [key, value] : names.json().items()) {
    const auto id = label_id(key);
    if (!id) return tl::make_unexpected(names.error(fmt::format("the label id '{}' is no number", key)));
    if (*id < count)
      labels[static_cast<std::size_t>(*id)] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return labels;
}

}  // namespace mk
