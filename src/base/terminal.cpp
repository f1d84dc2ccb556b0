#include "base/terminal.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#ifdef _WIN32
#include <io.h>
#include <shellapi.h>
#include <windows.h>
#else
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#endif

namespace mk {
namespace {

int descriptor_of(Stream stream) { return stream == Stream::out ? 1 : 2; }

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool runs_in_ci() {
  return is_set("CI") && std::strcmp(std::getenv("CI"), "0") != 0 && std::strcmp(std::getenv("CI"), "false") != 0;
}

}  // namespace

#ifdef _WIN32

void prepare_streams() {
  SetConsoleOutputCP(CP_UTF8);
  for (const DWORD id : {STD_OUTPUT_HANDLE, STD_ERROR_HANDLE}) {
    const HANDLE handle = GetStdHandle(id);
    DWORD mode = 0;
    if (GetConsoleMode(handle, &mode)) SetConsoleMode(handle, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  }
}

std::vector<std::string> command_line(int, char**) {
  int count = 0;
  wchar_t** wide = CommandLineToArgvW(GetCommandLineW(), &count);
  std::vector<std::string> arguments;
  for (int i = 1; i < count; ++i) {
    std::string text(
        static_cast<std::size_t>(WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, nullptr, 0, nullptr, nullptr)), '\0');
    WideCharToMultiByte(CP_UTF8, 0, wide[i], -1, text.data(), static_cast<int>(text.size()), nullptr, nullptr);
    text.pop_back();
    arguments.push_back(std::move(text));
  }
  LocalFree(wide);
  return arguments;
}

bool is_terminal(Stream stream) { return _isatty(descriptor_of(stream)) != 0; }

static int console_columns(Stream stream) {
  CONSOLE_SCREEN_BUFFER_INFO info;
  const HANDLE handle = GetStdHandle(stream == Stream::out ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE);
  return GetConsoleScreenBufferInfo(handle, &info) ? info.srWindow.Right - info.srWindow.Left + 1 : 0;
}

static long write_some(int descriptor, const char* data, std::size_t size) {
  return _write(descriptor, data, static_cast<unsigned>(size));
}

#else

void prepare_streams() { std::signal(SIGPIPE, SIG_IGN); }

std::vector<std::string> command_line(int argc, char** argv) { return {argv + (argc > 0 ? 1 : 0), argv + argc}; }

bool is_terminal(Stream stream) { return ::isatty(descriptor_of(stream)) == 1; }

static int console_columns(Stream stream) {
  winsize size{};
  return ::ioctl(descriptor_of(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

static long write_some(int descriptor, const char* data, std::size_t size) { return ::write(descriptor, data, size); }

#endif

bool color_allowed(Stream stream) {
  if (is_set("NO_COLOR") || runs_in_ci()) return false;
  const char* terminal = std::getenv("TERM");
  return (terminal == nullptr || std::strcmp(terminal, "dumb") != 0) && is_terminal(stream);
}

int terminal_columns(Stream stream) {
  if (const int columns = is_terminal(stream) ? console_columns(stream) : 0; columns > 0) return columns;
  const char* columns = std::getenv("COLUMNS");
  return columns == nullptr ? 0 : std::max(0, std::atoi(columns));
}

Status write_stream(Stream stream, std::string_view text) {
  while (!text.empty()) {
    const long written = write_some(descriptor_of(stream), text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno == EINTR) {
      continue;
    } else if (written < 0 && errno == EPIPE) {
      return {};
    } else {
      return fail(ErrorCode::failed, std::string("cannot write the output: ") + std::strerror(errno),
                  stream == Stream::out ? "stdout" : "stderr");
    }
  }
  return {};
}

}  // namespace mk
