#pragma once
// config.json of a transformers model, read by field name. Defaults are those of the config class in transformers;
// attribute_map aliases (hidden_size for dim ...) are the family's business.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fwd.h"
#include "base/path.h"
#include "base/result.h"

namespace mk {

class ModelConfig {
 public:
  // DIR/config.json. not_found, or malformed with the JSON pointer.
  static Result<ModelConfig> read(const Path& folder);
  static Result<ModelConfig> parse(std::string_view text, std::string name);

  std::string model_type() const;                  // empty where the file has none
  std::vector<std::string> architectures() const;  // empty where the file has none
  const Json& json() const { return *json_; }
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
  // id2label in order of id; LABEL_0 ... where the file has none.
  Result<std::vector<std::string>> labels() const;

 private:
  ModelConfig(std::shared_ptr<const Json> root, const Json* json, std::string name, std::string pointer);
  std::shared_ptr<const Json> root_;
  const Json* json_;
  std::string name_;
  std::string pointer_;
};

}  // namespace mk
