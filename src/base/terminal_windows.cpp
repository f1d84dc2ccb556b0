#include <io.h>
#include <windows.h>
// After windows.h, which it needs.
#include <shellapi.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/system.h"
#include "base/terminal.h"

namespace mk {
namespace {

int descriptor_of(Stream stream) { return stream == Stream::out ? 1 : 2; }

HANDLE handle_of(Stream stream) { return GetStdHandle(stream == Stream::out ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE); }

}  // namespace

void prepare_streams() {
  SetConsoleOutputCP(CP_UTF8);
  for (const Stream stream : {Stream::out, Stream::err}) {
    DWORD mode = 0;
    if (GetConsoleMode(handle_of(stream), &mode)) {
      SetConsoleMode(handle_of(stream), mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
    }
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

bool symbols_allowed() { return GetConsoleOutputCP() == CP_UTF8; }

int terminal_columns(Stream stream) {
  CONSOLE_SCREEN_BUFFER_INFO info;
  if (GetConsoleScreenBufferInfo(handle_of(stream), &info)) return info.srWindow.Right - info.srWindow.Left + 1;
  return std::max(0, std::atoi(environment("COLUMNS").value_or("0").c_str()));
}

Status write_stream(Stream stream, std::string_view text) {
  while (!text.empty()) {
    const unsigned part = static_cast<unsigned>(std::min<std::size_t>(text.size(), 1 << 20));
    const int written = _write(descriptor_of(stream), text.data(), part);
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EPIPE || errno == EINVAL) {
      return {};  // a pipe that its reader has closed
    } else {
      return fail(ErrorCode::failed, "cannot write the output: " + std::generic_category().message(errno),
                  stream == Stream::out ? "stdout" : "stderr");
    }
  }
  return {};
}

}  // namespace mk
