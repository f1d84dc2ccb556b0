#include "models/config_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "base/json.h"

namespace mk::models {
namespace {

constexpr std::int64_t most_layers = 10'000;  // what follows a number of layers is a loop

}  // namespace

template <typename T>
T ConfigReader::keep(Result<T> result, T otherwise) {
  if (result) return std::move(*result);
  if (*status_) *status_ = tl::make_unexpected(std::move(result).error());
  return otherwise;
}

ConfigReader::ConfigReader(ModelConfig config, std::shared_ptr<Status> status)
    : config_(std::move(config)), status_(std::move(status)) {}

ConfigReader ConfigReader::section(std::string_view key) {
  auto part = has(key) ? config_.section(key) : ModelConfig::parse("{}", config_.name());
  if (part) return {std::move(*part), status_};
  if (*status_) *status_ = tl::make_unexpected(std::move(part).error());
  return {config_, status_};
}

void ConfigReader::fail(ErrorCode code, std::string message, std::string hint) {
  if (*status_) *status_ = mk::fail(code, std::move(message), config_.name(), std::move(hint));
}

std::int64_t ConfigReader::within(std::string_view key, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return value;
  fail(ErrorCode::malformed, fmt::format("{} is {}, expected {} to {}", key, value, low, high));
  return low;
}

std::int64_t ConfigReader::integer(std::string_view key, std::int64_t otherwise) {
  return keep(config_.integer(key, otherwise), otherwise);
}

std::int64_t ConfigReader::size(std::string_view key, std::int64_t otherwise) {
  return within(key, integer(key, otherwise), 1, std::numeric_limits<std::int32_t>::max());
}

std::int64_t ConfigReader::count(std::string_view key, std::int64_t otherwise) {
  return within(key, integer(key, otherwise), 0, most_layers);
}

std::int64_t ConfigReader::id(std::string_view key, std::int64_t otherwise) {
  return within(key, integer(key, otherwise), 0, std::numeric_limits<std::int32_t>::max());
}

double ConfigReader::number(std::string_view key, double otherwise) {
  return keep(config_.number(key, otherwise), otherwise);
}

bool ConfigReader::boolean(std::string_view key, bool otherwise) {
  return keep(config_.boolean(key, otherwise), otherwise);
}

std::string ConfigReader::string(std::string_view key, const std::string& otherwise) {
  return keep(config_.string(key, otherwise), otherwise);
}

std::vector<std::int64_t> ConfigReader::sizes(std::string_view key, const std::vector<std::int64_t>& otherwise) {
  std::vector<std::int64_t> values = keep(config_.integers(key, otherwise), otherwise);
  if (values.empty() || values.size() > static_cast<std::size_t>(most_layers))
    fail(ErrorCode::malformed, fmt::format("{} has {} values", key, values.size()));
  for (std::int64_t& value : values) value = within(key, value, 1, std::numeric_limits<std::int32_t>::max());
  return values;
}

std::vector<std::int64_t> ConfigReader::depths(std::string_view key, const std::vector<std::int64_t>& otherwise) {
  std::vector<std::int64_t> values = sizes(key, otherwise);
  const std::int64_t layers = std::accumulate(values.begin(), values.end(), std::int64_t{0});
  if (layers <= most_layers) return values;
  fail(ErrorCode::malformed, fmt::format("{} has {} layers, expected {} at most", key, layers, most_layers));
  return otherwise;
}

std::vector<std::int64_t> ConfigReader::indices(std::string_view key, const std::vector<std::int64_t>& otherwise) {
  std::vector<std::int64_t> values = keep(config_.integers(key, otherwise), otherwise);
  if (values.size() > static_cast<std::size_t>(most_layers))
    fail(ErrorCode::malformed, fmt::format("{} has {} values", key, values.size()));
  for (std::int64_t& value : values) value = within(key, value, 0, most_layers);
  return values;
}

std::array<std::int64_t, 2> ConfigReader::pair(std::string_view key, std::int64_t otherwise) {
  const auto both = keep(config_.pair(key, otherwise), std::pair(otherwise, otherwise));
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  return {within(key, both.first, 1, most), within(key, both.second, 1, most)};
}

std::vector<double> ConfigReader::numbers(std::string_view key) {
  std::vector<double> values;
  if (!has(key)) return values;
  const Json& list = config_.json().at(std::string(key));
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), [](const Json& item) { return item.is_number(); })) {
    fail(ErrorCode::malformed, fmt::format("{} is not a list of numbers", key));
    return values;
  }
  for (const Json& item : list) values.push_back(item.get<double>());
  return values;
}

std::vector<std::string> ConfigReader::strings(std::string_view key) {
  return keep(config_.strings(key, {}), std::vector<std::string>());
}

bool ConfigReader::mentions(std::string_view key) const { return config_.json().contains(std::string(key)); }

std::int64_t ConfigReader::size_or_none(std::string_view key, std::int64_t otherwise) {
  if (!has(key) && (otherwise == 0 || mentions(key))) return 0;
  return size(key, otherwise);
}

std::int64_t ConfigReader::num_labels() {
  return within("num_labels", keep<std::int64_t>(config_.num_labels(), 2), 0, std::numeric_limits<std::int32_t>::max());
}

std::map<std::int64_t, std::int64_t> ConfigReader::pruned_heads(std::int64_t heads) {
  std::map<std::int64_t, std::int64_t> pruned;
  if (!has("pruned_heads")) return pruned;
  const Json& layers = config_.json().at("pruned_heads");
  if (!layers.is_object()) {
    fail(ErrorCode::malformed, "pruned_heads is not an object of layers");
    return pruned;
  }
  for (const auto& [layer, list] : layers.items()) {
    std::int64_t index = 0;
    const auto [end, error] = std::from_chars(layer.data(), layer.data() + layer.size(), index);
    if (error != std::errc() || end != layer.data() + layer.size() || !list.is_array()) {
      fail(ErrorCode::malformed, fmt::format("pruned_heads has \"{}\", expected a layer with a list of heads", layer));
      return pruned;
    }
    const std::set<Json> different(list.begin(), list.end());
    pruned[index] = static_cast<std::int64_t>(different.size());
    if (pruned[index] >= heads) {
      fail(ErrorCode::malformed, fmt::format("pruned_heads leaves layer {} no head of its {}", index, heads));
      pruned[index] = 0;
    }
  }
  return pruned;
}

std::int64_t heads_of(std::int64_t layer, std::int64_t heads, const std::map<std::int64_t, std::int64_t>& pruned) {
  const auto found = pruned.find(layer);
  return heads - (found == pruned.end() ? 0 : found->second);
}

}  // namespace mk::models
