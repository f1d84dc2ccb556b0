// config.json: any text gives a configuration or an error, and every reader of a configuration gives a value or an
// error.

#include <string_view>

#include "base/json.h"
#include "checkpoint/config.h"

namespace {

// Results are thrown away: only that they come matters.
void read_all_ways(const mk::ModelConfig& config, int depth) {
  (void)config.model_type();
  (void)config.architectures();
  (void)config.num_labels();
  if (const auto count = config.num_labels(); count && *count < 10'000) (void)config.labels();
  for (const auto& [key, value] : config.json().items()) {
    (void)config.integer(key, 1);
    (void)config.number(key, 1);
    (void)config.boolean(key, true);
    (void)config.string(key, "");
    (void)config.integers(key, {});
    (void)config.strings(key, {});
    (void)config.pair(key, 1);
    const auto section = config.section(key);
    if (section && depth < 4) read_all_ways(*section, depth + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = mk::ModelConfig::parse(text, "fuzz");
  if (config) read_all_ways(*config, 0);
  return 0;
}
