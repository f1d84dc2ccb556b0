#pragma once
// A progress that keeps the warnings it is given, for tests.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.h"

namespace mk::testing {

class Warnings final : public Progress {
 public:
  std::unique_ptr<Stage> stage(std::string_view name) override { return silent_progress().stage(name); }
  void warn(std::string_view message) override { messages.emplace_back(message); }
  void note(std::string_view) override {}
  void info(std::string_view) override {}
  void debug(std::string_view) override {}
  std::vector<std::string> messages;
};

}  // namespace mk::testing
