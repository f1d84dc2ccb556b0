#pragma once
// Fields of a configuration, read one after the other: the first error stays in the reader, and what is read after it
// does not count. So that a family's configuration is a list of fields.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"

namespace mk::models {

class ConfigReader {
 public:
  explicit ConfigReader(const ModelConfig& config) : config_(config), status_(std::make_shared<Status>()) {}

  // The fields of a sub-configuration ("text_config", "backbone_config"); all its defaults where it is absent. Its
  // first error is this reader's too.
  ConfigReader section(std::string_view key);

  std::int64_t integer(std::string_view key, std::int64_t otherwise);
  // A width, a number of heads, a vocabulary: malformed below 1 or above 2^31 - 1.
  std::int64_t size(std::string_view key, std::int64_t otherwise);
  // A number of layers: malformed below 0 or above 10,000.
  std::int64_t count(std::string_view key, std::int64_t otherwise);
  // The id of a token: malformed below 0 or above 2^31 - 1.
  std::int64_t id(std::string_view key, std::int64_t otherwise);
  double number(std::string_view key, double otherwise);
  bool boolean(std::string_view key, bool otherwise);
  std::string string(std::string_view key, const std::string& otherwise);
  // Numbers of layers of one or more stages, each 1 or more, together 10,000 at most.
  std::vector<std::int64_t> depths(std::string_view key, const std::vector<std::int64_t>& otherwise);
  std::vector<std::int64_t> sizes(std::string_view key, const std::vector<std::int64_t>& otherwise);
  // Numbers of layers or of stages, from 0 on; there may be none of them.
  std::vector<std::int64_t> indices(std::string_view key, const std::vector<std::int64_t>& otherwise);
  std::array<std::int64_t, 2> pair(std::string_view key, std::int64_t otherwise);  // height, width; one number is both
  std::vector<double> numbers(std::string_view key);                               // none where it is absent
  std::vector<std::string> strings(std::string_view key);                          // none where it is absent
  // A size that null switches off: 0.
  std::int64_t size_or_none(std::string_view key, std::int64_t otherwise);
  std::int64_t num_labels();
  // pruned_heads: how many of a layer's heads were taken out. malformed where none is left.
  std::map<std::int64_t, std::int64_t> pruned_heads(std::int64_t heads);

  const ModelConfig& config() const { return config_; }
  bool has(std::string_view key) const { return config_.has(key); }
  bool mentions(std::string_view key) const;  // there, be it null
  void fail(ErrorCode code, std::string message, std::string hint = {});
  const Status& status() const { return *status_; }

 private:
  ConfigReader(ModelConfig config, std::shared_ptr<Status> status);
  template <typename T>
  T keep(Result<T> result, T otherwise);
  std::int64_t within(std::string_view key, std::int64_t value, std::int64_t low, std::int64_t high);

  ModelConfig config_;
  std::shared_ptr<Status> status_;  // shared with the sections
};

// The heads of a layer, once pruned_heads has taken its share of them.
std::int64_t heads_of(std::int64_t layer, std::int64_t heads, const std::map<std::int64_t, std::int64_t>& pruned);

}  // namespace mk::models
