// Any text is parsed or refused; what is parsed prints as text that parses to the same.

#include <cstdlib>

#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = mk::parse_json(text, "fuzz");
  if (!json) return 0;
  const std::string printed = mk::dump_json(*json, -1);
  const auto again = mk::parse_json(printed, "fuzz");
  if (!again || mk::dump_json(*again, -1) != printed) std::abort();
  const mk::JsonView view(*json, "fuzz");
  static_cast<void>(view.integers());
  static_cast<void>(view.only_keys({"a", "b"}));
  return 0;
}
