#include "build/strict.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "build/build_config.h"

namespace mk {
namespace {

class Warnings final : public Progress {
 public:
  std::unique_ptr<Stage> stage(std::string_view name) override { return silent_progress().stage(name); }
  void warn(std::string_view message) override { messages.emplace_back(message); }
  void note(std::string_view) override {}
  void info(std::string_view) override {}
  void debug(std::string_view) override {}
  std::vector<std::string> messages;
};

}  // namespace

Status strict_build_config(const JsonView& document) {
  Warnings warnings;
  MK_TRY(const BuildConfig config, parse_build_config(document, warnings));
  static_cast<void>(config);
  if (warnings.messages.empty()) return {};
  std::string message = warnings.messages.front();
  constexpr std::string_view lenient = " is ignored";
  if (const auto at = message.find(lenient); at != std::string::npos) message.erase(at, lenient.size());
  if (warnings.messages.size() > 1) message += fmt::format(" (and {} more)", warnings.messages.size() - 1);
  return fail(ErrorCode::usage, "--strict: " + message);
}

}  // namespace mk
