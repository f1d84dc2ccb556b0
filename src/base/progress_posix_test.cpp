#include "base/progress.h"

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <regex>

#include "base/terminal.h"
#include "testing/testing.h"

namespace mk {
namespace {

using Variables = std::map<std::string, std::string>;

// What `scenario` writes to stderr in a process with these variables set and the ones that matter unset otherwise.
std::string shown(bool terminal, const Variables& variables, const std::function<void()>& scenario) {
  int reader = -1, writer = -1;
  winsize size{.ws_row = 24, .ws_col = 40, .ws_xpixel = 0, .ws_ypixel = 0};
  if (terminal) {
    EXPECT_EQ(::openpty(&reader, &writer, nullptr, nullptr, &size), 0);
  } else {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    reader = ends[0];
    writer = ends[1];
  }
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(writer, STDERR_FILENO);
    for (const char* name : {"NO_COLOR", "CI", "TERM", "LC_ALL", "LC_CTYPE", "LANG"}) ::unsetenv(name);
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    scenario();
    ::_exit(0);
  }
  ::close(writer);
  std::string text;
  char block[4096];
  for (ssize_t got; (got = ::read(reader, block, sizeof block)) > 0;) text.append(block, static_cast<std::size_t>(got));
  ::close(reader);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  // Times differ from run to run; a terminal turns line ends into two characters.
  text = std::regex_replace(text, std::regex(R"(\d\d:\d\d:\d\d)"), "TIME");
  text = std::regex_replace(text, std::regex(R"(\d\.\d s)"), "T s");
  return std::regex_replace(text, std::regex("\r\n"), "\n");
}

void everything(const ConsoleOptions& options) {
  const auto progress = make_console_progress(options);
  {
    const auto stage = progress->stage("export");
    stage->update(1, 4);
    progress->warn("beware");
    stage->done("m.onnx");
    stage->skipped("too late");
  }
  progress->stage("quantize")->skipped("not asked for");
  progress->stage("compile");
  progress->note("note");
  progress->info("info");
  progress->debug("debug");
}

TEST(Progress, WritesFinalLinesWhereNobodyLooks) {
  const std::string lines =
      "Warning: beware\ndone export (T s)  m.onnx\nskipped quantize: not asked for\n"
      "failed compile (T s)\nnote\n";
  EXPECT_EQ(shown(false, {{"LANG", "C.UTF-8"}}, [] { everything({}); }), lines);
  EXPECT_EQ(shown(true, {{"TERM", "dumb"}}, [] { everything({}); }), lines);
  EXPECT_EQ(shown(true, {{"TERM", "xterm"}, {"CI", "true"}}, [] { everything({}); }), lines);
}

TEST(Progress, ObeysVerbosity) {
  EXPECT_EQ(shown(false, {}, [] { everything({.verbosity = -1}); }), "");
  EXPECT_EQ(shown(true, {{"TERM", "xterm"}}, [] { everything({.verbosity = -1}); }), "");
  const std::string info = shown(false, {}, [] { everything({.verbosity = 1}); });
  EXPECT_TRUE(info.ends_with("note\n[TIME INFO    winml] info\n")) << info;
  const std::string debug = shown(false, {}, [] { everything({.verbosity = 2}); });
  EXPECT_TRUE(debug.ends_with("[TIME INFO    winml] info\n[TIME DEBUG   winml] debug\n")) << debug;
  EXPECT_EQ(shown(false, {},
                  [] {
                    silent_progress().stage("a")->done();
                    silent_progress().warn("b");
                  }),
            "");
}

TEST(Progress, DrawsOnATerminal) {
  const std::string clear = "\r\x1b[K";
  EXPECT_EQ(shown(true, {{"TERM", "xterm"}, {"LC_ALL", "en_US.UTF-8"}}, [] { everything({}); }),
            clear + "⏳ export" + clear + "⏳ export T s ███░░░░░░░░░  25 %" + clear +
                "\x1b[33mWarning: beware\x1b[0m\n" + "✅ export (T s)  \x1b[2mm.onnx\x1b[0m\n" + clear + "⏳ quantize" +
                clear + "⏸️ quantize: not asked for\n" + clear + "⏳ compile" + clear + "❌ compile (T s)\nnote\n");
}

TEST(Progress, DrawsWithoutColourOrSymbols) {
  const std::string clear = "\r\x1b[K";
  const std::string text = clear + "... export" + clear + "... export T s ###.........  25 %" + clear +
                           "Warning: beware\n" + "done export (T s)  m.onnx\n" + clear + "... quantize" + clear +
                           "skipped quantize: not asked for\n" + clear + "... compile" + clear +
                           "failed compile (T s)\nnote\n";
  EXPECT_EQ(shown(true, {{"TERM", "xterm"}, {"LANG", "C"}, {"NO_COLOR", ""}}, [] { everything({}); }), text);
  EXPECT_EQ(shown(true, {{"TERM", "xterm"}, {"LANG", "C"}}, [] { everything({.color = false}); }), text);
}

TEST(Progress, KeepsLiveLinesToTheWidth) {
  const std::string text = shown(true, {{"TERM", "xterm"}, {"LANG", "C.UTF-8"}}, [] {
    const auto progress = make_console_progress({});
    const auto stage = progress->stage("é" + std::string(100, 'x') + "\ny");
    ::_exit(0);
  });
  EXPECT_EQ(text, "\r\x1b[K⏳ é" + std::string(35, 'x'));
}

TEST(Progress, LimitsFrames) {
  const std::string text = shown(true, {{"TERM", "xterm"}}, [] {
    const auto progress = make_console_progress({});
    const auto stage = progress->stage("a");
    for (int i = 0; i < 100'000; ++i) stage->update(1, 0);
    stage->done();
  });
  EXPECT_LT(text.size(), 500u);
}

}  // namespace
}  // namespace mk
