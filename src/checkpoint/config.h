#pragma once
// config.json of a transformers model, read by field name. Defaults are those of the config class in transformers;
// attribute_map aliases (hidden_size for dim ...) are the family's business.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fwd.h"
#include "base/path.h"
#include "base/result.h"

namespace mk {

class JsonView;

class ModelConfig {
 public:
  // DIR/config.json, or what the GGUF file there (or the path itself) says. not_found, malformed with the JSON pointer.
  static Result<ModelConfig> read(const Path& folder);
  static Result<ModelConfig> parse(std::string_view text, std::string name);

  std::string model_type() const;                  // empty where the file has none
  std::vector<std::string> architectures() const;  // empty where the file has none
  // The same configuration under a type that was told otherwise (the file says none, or a build asks for a variant).
  ModelConfig with_model_type(std::string_view type) const;
  const Json& json() const;
  // For fields that the readers below do not fit; errors name file and pointer.
  const JsonView& view() const { return *view_; }
  const std::string& name() const { return name_; }  // for errors: the file's path

  bool has(std::string_view key) const;  // there and not null
  // A field, or `otherwise` where it is absent or null; malformed where it has another kind of value.
  Result<std::int64_t> integer(std::string_view key, std::int64_t otherwise) const;
  Result<double> number(std::string_view key, double otherwise) const;
  Result<bool> boolean(std::string_view key, bool otherwise) const;
  Result<std::string> string(std::string_view key, std::string otherwise) const;
  Result<std::vector<std::int64_t>> integers(std::string_view key, std::vector<std::int64_t> otherwise) const;
  Result<std::vector<std::string>> strings(std::string_view key, std::vector<std::string> otherwise) const;
  // A pair that may be written as one number (image_size 224, [224, 224]).
  Result<std::pair<std::int64_t, std::int64_t>> pair(std::string_view key, std::int64_t otherwise) const;
  // A sub-configuration (text_config, backbone_config).
  Result<ModelConfig> section(std::string_view key) const;

  // Number of labels: len(id2label), else num_labels, else 2 (transformers' rule).
  Result<std::int64_t> num_labels() const;
  // One name per label, id2label's where it has one, else LABEL_0 ...
  Result<std::vector<std::string>> labels() const;

 private:
  ModelConfig(std::shared_ptr<const Json> root, std::shared_ptr<const JsonView> view, std::string name);
  std::shared_ptr<const Json> root_;
  std::shared_ptr<const JsonView> view_;  // of the root or of a section of it
  std::string name_;
};

}  // namespace mk
