#include "base/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/system.h"
#include "base/terminal.h"
#include "base/utf8.h"

namespace mk {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto frame_time = std::chrono::milliseconds(1000 / 15);

struct Marks {
  std::string_view running, done, skipped, failed;
  std::string_view full, empty;  // of a bar
};
constexpr Marks symbols{"⏳", "✅", "⏸️", "❌", "█", "░"};
constexpr Marks words{"...", "done", "skipped", "failed", "#", "."};
constexpr int bar_width = 12;

constexpr std::string_view yellow = "\x1b[33m", dim = "\x1b[2m", plain = "\x1b[0m";
constexpr std::string_view clear_line = "\r\x1b[K";

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// One line and no more, so that a carriage return goes back over all of it.
std::string fitted(std::string_view text, int width) {
  std::string line;
  int characters = 0;
  for (std::size_t at = 0; at < text.size() && characters < width - 2; ++characters) {
    const std::size_t length = std::max<std::size_t>(1, utf8_length(text, at));
    line += text[at] == '\n' ? std::string_view(" ") : text.substr(at, length);
    at += length;
  }
  return line;
}

// What the console shows. Stages may be updated from several threads.
class Console {
 public:
  explicit Console(const ConsoleOptions& options)
      : verbosity_(options.verbosity),
        color_(options.color && color_allowed(Stream::err)),
        live_(options.verbosity >= 0 && redrawing_allowed(Stream::err)),
        marks_(live_ && symbols_allowed() ? symbols : words) {}
  ~Console() {
    const std::lock_guard lock(mutex_);
    if (drawn_) put(clear_line);
  }
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  bool shows(int verbosity) const { return verbosity_ >= verbosity; }
  const Marks& marks() const { return marks_; }
  std::string painted(std::string_view text, std::string_view color) const {
    return color_ ? std::string(color) + std::string(text) + std::string(plain) : std::string(text);
  }

  void line(std::string_view text) {
    const std::lock_guard lock(mutex_);
    std::string all(drawn_ ? clear_line : std::string_view());
    all += text;
    all += '\n';
    put(all);
    drawn_ = false;
  }

  void draw(std::string_view text) {
    if (!live_) return;
    const std::lock_guard lock(mutex_);
    const int columns = terminal_columns(Stream::err);
    put(std::string(clear_line) + fitted(text, columns > 0 ? columns : 80));
    drawn_ = true;
  }

 private:
  // Where stderr is closed there is nobody to tell.
  static void put(std::string_view text) { static_cast<void>(write_stream(Stream::err, text)); }

  const int verbosity_;
  const bool color_;
  const bool live_;
  const Marks& marks_;
  std::mutex mutex_;
  bool drawn_ = false;
};

class ConsoleStage final : public Stage {
 public:
  ConsoleStage(Console& console, std::string_view name) : console_(console), name_(name) {
    console_.draw(fmt::format("{} {}", console_.marks().running, name_));
  }
  ~ConsoleStage() override {
    if (!ended_) end(fmt::format("{} {} ({:.1f} s)", console_.marks().failed, name_, seconds_since(start_)));
  }

  void update(std::uint64_t done, std::uint64_t total) override {
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (ended_ || now - drawn_ < frame_time) return;
    drawn_ = now;
    std::string text = fmt::format("{} {} {:.1f} s", console_.marks().running, name_, seconds_since(start_));
    if (total > 0) text += bar(std::min(1.0, static_cast<double>(done) / static_cast<double>(total)));
    console_.draw(text);
  }

  void done(std::string_view detail) override {
    std::string text = fmt::format("{} {} ({:.1f} s)", console_.marks().done, name_, seconds_since(start_));
    if (!detail.empty()) text += "  " + console_.painted(detail, dim);
    end(text);
  }

  void skipped(std::string_view reason) override {
    end(fmt::format("{} {}: {}", console_.marks().skipped, name_, reason));
  }

 private:
  // " ████░░░░░░░░  33 %"
  std::string bar(double share) const {
    const int filled = static_cast<int>(share * bar_width);
    std::string text = " ";
    for (int i = 0; i < bar_width; ++i) text += i < filled ? console_.marks().full : console_.marks().empty;
    return text + fmt::format(" {:3.0f} %", 100 * share);
  }

  void end(std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(ended_, true)) return;
    if (console_.shows(0)) console_.line(text);
  }

  Console& console_;
  const std::string name_;
  const Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  Clock::time_point drawn_{};
  bool ended_ = false;
};

class ConsoleProgress final : public Progress {
 public:
  explicit ConsoleProgress(const ConsoleOptions& options) : console_(options) {}

  std::unique_ptr<Stage> stage(std::string_view name) override {
    return std::make_unique<ConsoleStage>(console_, name);
  }
  void warn(std::string_view message) override {
    if (console_.shows(0)) console_.line(console_.painted("Warning: " + std::string(message), yellow));
  }
  void note(std::string_view message) override {
    if (console_.shows(0)) console_.line(message);
  }
  void info(std::string_view message) override { log(1, "INFO", message); }
  void debug(std::string_view message) override { log(2, "DEBUG", message); }

 private:
  void log(int verbosity, std::string_view level, std::string_view message) {
    if (!console_.shows(verbosity)) return;
    console_.line(console_.painted(fmt::format("[{} {:<7} winml] {}", local_time_of_day(), level, message), dim));
  }

  Console console_;
};

class SilentStage final : public Stage {
 public:
  void update(std::uint64_t, std::uint64_t) override {}
  void done(std::string_view) override {}
  void skipped(std::string_view) override {}
};

class SilentProgress final : public Progress {
 public:
  std::unique_ptr<Stage> stage(std::string_view) override { return std::make_unique<SilentStage>(); }
  void warn(std::string_view) override {}
  void note(std::string_view) override {}
  void info(std::string_view) override {}
  void debug(std::string_view) override {}
};

}  // namespace

std::unique_ptr<Progress> make_console_progress(const ConsoleOptions& options) {
  return std::make_unique<ConsoleProgress>(options);
}

Progress& silent_progress() {
  static SilentProgress silent;
  return silent;
}

}  // namespace mk
