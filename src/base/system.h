#pragma once
// Facts about this process and this machine.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/path.h"
#include "base/result.h"

namespace mk {

std::optional<std::string> environment(std::string_view name);  // unset and empty are the same
bool environment_flag(std::string_view name);                   // 1, true, yes, on in any case

Path executable_path();  // of this process

struct MachineInfo {
  std::string system;   // "Linux", "Windows"
  std::string release;  // kernel release
  std::string machine;  // "x86_64", "ARM64": the native machine
  std::string cpu_name;
  std::string cpu_vendor;  // "GenuineIntel", "AuthenticAMD", ...
  int cores = 0;           // physical; 0 where unknown
  int threads = 0;
  std::optional<std::uint64_t> memory_bytes;
};
MachineInfo machine_info();

// Resident memory of this process, now and at its highest; null where the system does not tell.
std::optional<std::uint64_t> resident_bytes();
std::optional<std::uint64_t> peak_resident_bytes();
// Gives memory that was freed back to the system, where it can: what comes next shows in resident_bytes().
void release_freed_memory();

std::string utc_timestamp();      // 2026-11-30T19:50:52.123456+00:00
std::string local_timestamp();    // 20261130-195052, for file names
std::string local_time_of_day();  // 19:50:52, for log lines

// A shared library loaded at run time. Never unloaded: runtimes keep threads.
class SharedLibrary {
 public:
  static Result<SharedLibrary> load(const Path& path);
  // By its file name, from the system's folders only: a file of that name in the working folder is not it.
  static Result<SharedLibrary> load_installed(const char* name);
  void* symbol(const char* name) const;  // null where there is none
 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  void* handle_;
};

// Sets a flag on SIGINT, SIGTERM and SIGHUP instead of ending the process (a SIGHUP that the parent had ignored, as
// nohup does, stays so); a second one, 0.3 s later or more, ends it at once (130). Long loops ask interrupted().
void catch_interrupts();
bool interrupted();

}  // namespace mk
