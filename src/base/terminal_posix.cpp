#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/system.h"
#include "base/terminal.h"
#include "base/text.h"

namespace mk {
namespace {

int handle_of(Stream stream) { return stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO; }

}  // namespace

void prepare_streams() { ::signal(SIGPIPE, SIG_IGN); }

std::vector<std::string> command_line(int argc, char** argv) { return {argv + (argc > 0 ? 1 : 0), argv + argc}; }

bool is_terminal(Stream stream) { return ::isatty(handle_of(stream)) == 1; }

bool symbols_allowed() {
  // The first that is set decides (POSIX.1, 8.2).
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const auto locale = environment(name)) {
      const std::string lower = lower_case(*locale);
      return lower.find("utf-8") != lower.npos || lower.find("utf8") != lower.npos;
    }
  }
  return false;
}

int terminal_columns(Stream stream) {
  winsize size{};
  if (::ioctl(handle_of(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return std::max(0, std::atoi(environment("COLUMNS").value_or("0").c_str()));
}

Status write_stream(Stream stream, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(handle_of(stream), text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready{handle_of(stream), POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno == EPIPE) {
      return {};
    } else if (errno != EINTR) {
      return fail(ErrorCode::failed, "cannot write the output: " + std::generic_category().message(errno),
                  stream == Stream::out ? "stdout" : "stderr");
    }
  }
  return {};
}

}  // namespace mk
