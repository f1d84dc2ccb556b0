#pragma once
// Progress and messages for people, on stderr. It knows whether it writes to a terminal: live lines there, final lines
// only elsewhere. Quiet shows nothing but errors.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace mk {

struct ConsoleOptions {
  int verbosity = 0;  // -1 quiet, 0 normal, 1 info, 2 debug
  bool color = true;  // allowed; still off when stderr is no terminal, NO_COLOR or CI is set, or TERM is dumb
};

// One line of work: "export  model.onnx  1.2 s". Ends as failed unless done() or skipped() was called.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual void update(std::uint64_t done, std::uint64_t total) = 0;  // any unit; may be called often
  virtual void done(std::string_view detail = {}) = 0;
  virtual void skipped(std::string_view reason) = 0;
};

// It outlives its stages. Safe to call from several threads.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual std::unique_ptr<Stage> stage(std::string_view name) = 0;
  virtual void warn(std::string_view message) = 0;   // "Warning: ..."
  virtual void note(std::string_view message) = 0;   // plain line, not when quiet
  virtual void info(std::string_view message) = 0;   // from -v on
  virtual void debug(std::string_view message) = 0;  // from -vv on
};

std::unique_ptr<Progress> make_console_progress(const ConsoleOptions& options);
// For tests and for library use: swallows everything.
Progress& silent_progress();

}  // namespace mk
