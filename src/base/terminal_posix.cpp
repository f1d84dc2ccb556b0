#include "base/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/system.h"

namespace mk {
namespace {

int handle_of(Stream stream) { return stream == Stream::out ? STDOUT_FILENO : STDERR_FILENO; }

}  // namespace

bool is_terminal(Stream stream) { return ::isatty(handle_of(stream)) == 1; }

int terminal_width(Stream stream) {
  winsize size{};
  if (::ioctl(handle_of(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

bool symbols_welcome() {
  // The first that is set decides (POSIX, locale).
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const auto value = environment(name);
    if (!value) continue;
    for (const char* spelling : {"UTF-8", "utf8", "utf-8", "UTF8"}) {
      if (value->find(spelling) != std::string::npos) return true;
    }
    return false;
  }
  return false;
}

void write_stream(Stream stream, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(handle_of(stream), text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready{handle_of(stream), POLLOUT, 0};
      ::poll(&ready, 1, 1000);
    } else if (errno != EINTR) {
      return;
    }
  }
}

}  // namespace mk
