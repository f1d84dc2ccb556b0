#include <dlfcn.h>
#include <fcntl.h>
#ifdef __linux__
#include <malloc.h>
#endif
#include <pwd.h>
#include <signal.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <ctime>
#include <set>

#include "base/path.h"
#include "base/system.h"

namespace mk {
namespace {

// Files of /proc say a size of 0, so that read_text cannot read them.
std::string read_proc(const char* path) {
  std::string text;
  const int handle = ::open(path, O_RDONLY | O_CLOEXEC);
  if (handle < 0) return text;
  char block[8192];
  for (ssize_t got; (got = ::read(handle, block, sizeof block)) > 0;) text.append(block, static_cast<std::size_t>(got));
  ::close(handle);
  return text;
}

// Calls `visit` with each "key : value" of a text.
template <typename Visit>
void each_field(std::string_view text, Visit visit) {
  constexpr std::string_view blanks = " \t";
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::string_view key = line.substr(0, line.find_last_not_of(blanks, colon == 0 ? 0 : colon - 1) + 1);
    const std::size_t start = line.find_first_not_of(blanks, colon + 1);
    visit(key, start == line.npos ? std::string_view() : line.substr(start));
  }
}

std::optional<std::uint64_t> leading_number(std::string_view text) {
  std::uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

void read_cpu(MachineInfo& info) {
  std::set<std::pair<std::string, std::string>> cores;
  std::string package;
  each_field(read_proc("/proc/cpuinfo"), [&](std::string_view key, std::string_view value) {
    if (key == "model name" && info.cpu_name.empty()) info.cpu_name = value;
    if (key == "vendor_id" && info.cpu_vendor.empty()) info.cpu_vendor = value;
    if (key == "CPU implementer" && info.cpu_vendor.empty()) {
      info.cpu_vendor = value == "0x41" ? "ARM" : value == "0x51" ? "Qualcomm" : value == "0x61" ? "Apple" : value;
    }
    if (key == "physical id") package = value;
    if (key == "core id") cores.emplace(package, value);
  });
  info.cores = static_cast<int>(cores.size());
}

std::string local_time(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

std::atomic<bool> interrupt_seen{false};
std::atomic<std::int64_t> interrupt_time{0};  // milliseconds
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

// Supervisors signal a process and its group in one go (coreutils' timeout does): that is one request.
constexpr std::int64_t same_request = 300;  // milliseconds

void on_interrupt(int) {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t now = static_cast<std::int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1'000'000;
  if (!interrupt_seen.exchange(true)) {
    interrupt_time.store(now);
  } else if (now - interrupt_time.load() > same_request) {
    ::_exit(130);
  }
}

}  // namespace

Path home_folder() {
  if (const auto home = environment("HOME")) return *home;
  if (const passwd* user = ::getpwuid(::getuid()); user != nullptr && user->pw_dir != nullptr) return user->pw_dir;
  return "/";
}

Path executable_path() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored);
}

MachineInfo machine_info() {
  MachineInfo info;
  utsname names{};
  if (::uname(&names) == 0) {
    info.system = names.sysname;
    info.release = names.release;
    info.machine = names.machine;
  }
  read_cpu(info);
  info.threads = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  each_field(read_proc("/proc/meminfo"), [&](std::string_view key, std::string_view value) {
    if (key != "MemTotal") return;
    if (const auto kib = leading_number(value); kib && *kib > 0) info.memory_bytes = *kib * 1024;
  });
  return info;
}

std::optional<std::uint64_t> resident_bytes() {
  const std::string text = read_proc("/proc/self/statm");
  const std::size_t blank = text.find(' ');
  if (blank == text.npos) return std::nullopt;
  const auto pages = leading_number(std::string_view(text).substr(blank + 1));
  if (!pages) return std::nullopt;
  return *pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void release_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

std::optional<std::uint64_t> peak_resident_bytes() {
  std::optional<std::uint64_t> bytes;
  each_field(read_proc("/proc/self/status"), [&](std::string_view key, std::string_view value) {
    if (key != "VmHWM") return;
    if (const auto kib = leading_number(value)) bytes = *kib * 1024;
  });
  return bytes;
}

std::string local_timestamp() { return local_time("%Y%m%d-%H%M%S"); }
std::string local_time_of_day() { return local_time("%H:%M:%S"); }

Result<SharedLibrary> SharedLibrary::load(const Path& path) {
  std::error_code ignored;
  // A bare name would be looked for in the system's folders, though a file of that name is here.
  const Path file = std::filesystem::exists(path, ignored) ? std::filesystem::absolute(path, ignored) : path;
  // NODELETE: also when the library itself asks to be closed.
  if (void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return SharedLibrary(handle);
  const char* reason = ::dlerror();
  const bool missing = path.has_parent_path() && !std::filesystem::exists(path, ignored);
  return fail(missing ? ErrorCode::not_found : ErrorCode::failed,
              "cannot load the library: " + std::string(missing  ? "no such file"
                                                        : reason ? reason
                                                                 : "unknown error"),
              to_utf8(path));
}

Result<SharedLibrary> SharedLibrary::load_installed(const char* name) {
  if (void* handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return SharedLibrary(handle);
  const char* reason = ::dlerror();
  return fail(ErrorCode::not_found, "cannot load the library: " + std::string(reason ? reason : "unknown error"), name);
}

void* SharedLibrary::symbol(const char* name) const { return ::dlsym(handle_, name); }

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup {};
  if (::sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
}

bool interrupted() { return interrupt_seen.load(std::memory_order_relaxed); }

}  // namespace mk
