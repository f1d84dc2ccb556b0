#include "base/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/system_error.h"

extern char** environ;

namespace mk {
namespace {

using Clock = std::chrono::steady_clock;

class Handle {
 public:
  Handle() = default;
  ~Handle() { close(); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  int get() const { return value_; }
  bool is_open() const { return value_ != -1; }
  void set(int value) { value_ = value; }
  void close() {
    if (value_ != -1) ::close(std::exchange(value_, -1));
  }

 private:
  int value_ = -1;
};

struct Pipe {
  Handle read, write;

  bool open() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
    // Above the standard streams, which may be closed here and are replaced in the child.
    for (int& end : ends) {
      if (end <= 2) {
        const int moved = ::fcntl(end, F_DUPFD_CLOEXEC, 3);
        ::close(end);
        end = moved;
      }
    }
    read.set(ends[0]);
    write.set(ends[1]);
    return ends[0] >= 0 && ends[1] >= 0;
  }
};

void never_block(const Handle& handle) { ::fcntl(handle.get(), F_SETFL, ::fcntl(handle.get(), F_GETFL) | O_NONBLOCK); }

// While it lives, writing to a pipe that nobody reads is an error and no signal.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const timespec at_once{};
    while (!::sigismember(&before_, SIGPIPE) && ::sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& additions) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!additions.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : additions) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

struct Streams {
  Pipe in, out, err;
};

// 0 or an error number.
int spawn(const Path& program, const ProcessOptions& options, const Streams& streams, const sigset_t& mask,
          pid_t& child) {
  Path file = program;
  std::error_code code;
  // The child looks for a relative path in its own folder.
  if (options.working_folder && program.has_parent_path()) file = std::filesystem::absolute(program, code);
  std::vector<std::string> arguments{program.string()};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = merged_environment(options.environment);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, streams.in.read.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, streams.out.write.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, streams.err.write.get(), 2);
  int result = 0;
  if (options.working_folder) {
    result = ::posix_spawn_file_actions_addchdir_np(&actions, options.working_folder->c_str());
  }
  ::posix_spawnattr_setsigmask(&attributes, &mask);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (result == 0) {
    result = ::posix_spawnp(&child, file.c_str(), &actions, &attributes, pointers(arguments).data(),
                            pointers(environment).data());
  }
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return result;
}

// Moves what is ready, up to 1 MiB (more than a pipe holds); closes a stream that has ended.
void drain(Handle& stream, std::string& text) {
  std::array<char, 65536> block;
  for (int blocks = 0; stream.is_open() && blocks < 16; ++blocks) {
    const ssize_t got = ::read(stream.get(), block.data(), block.size());
    if (got > 0) {
      text.append(block.data(), static_cast<std::size_t>(got));
    } else if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
      return;
    } else {
      stream.close();
    }
  }
}

void feed(Handle& stream, std::string_view& text) {
  while (!text.empty()) {
    const ssize_t put = ::write(stream.get(), text.data(), text.size());
    if (put < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (put < 0) break;  // it reads no more
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  stream.close();
}

// Serves the streams until the process has ended. A process that it started in turn may hold the streams open longer:
// those are not waited for.
class Attendant {
 public:
  Attendant(pid_t child, Streams& streams, const ProcessOptions& options)
      : child_(child), streams_(streams), input_(options.input) {
    if (options.timeout) deadline_ = Clock::now() + *options.timeout;
  }

  ProcessOutcome run() {
    while (!ended_) {
      serve(step());
      ended_ = ended_ || has_ended();
      if (!ended_ && deadline_ && Clock::now() >= *deadline_) {
        outcome_.timed_out = true;
        ::kill(child_, SIGKILL);
        deadline_.reset();
      }
    }
    drain(streams_.out.read, outcome_.out);
    drain(streams_.err.read, outcome_.err);
    return std::move(outcome_);
  }

 private:
  // How long to wait for the streams at most. When they are closed, the end of the process is near.
  int step() const {
    std::chrono::milliseconds most(streams_.out.read.is_open() || streams_.err.read.is_open() ? 50 : 1);
    if (deadline_) most = std::min(most, std::chrono::ceil<std::chrono::milliseconds>(*deadline_ - Clock::now()));
    return static_cast<int>(std::max<std::int64_t>(0, most.count()));
  }

  void serve(int milliseconds) {
    std::array<pollfd, 3> waiting{pollfd{streams_.out.read.get(), POLLIN, 0},
                                  pollfd{streams_.err.read.get(), POLLIN, 0},
                                  pollfd{streams_.in.write.get(), POLLOUT, 0}};  // -1 is passed over
    if (::poll(waiting.data(), waiting.size(), milliseconds) <= 0) return;
    if (waiting[0].revents != 0) drain(streams_.out.read, outcome_.out);
    if (waiting[1].revents != 0) drain(streams_.err.read, outcome_.err);
    if (waiting[2].revents != 0) feed(streams_.in.write, input_);
  }

  bool has_ended() {
    int status = 0;
    const pid_t reaped = ::waitpid(child_, &status, WNOHANG);
    if (reaped == 0 || (reaped < 0 && errno == EINTR)) return false;
    if (reaped == child_) outcome_.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  }

  pid_t child_;
  Streams& streams_;
  std::string_view input_;
  std::optional<Clock::time_point> deadline_;
  ProcessOutcome outcome_;
  bool ended_ = false;
};

}  // namespace

Result<ProcessOutcome> run_process(const Path& program, const ProcessOptions& options) {
  const auto not_started = [&](int error) {
    Error what = system_error({error, std::system_category()}, "cannot start the program", program);
    if (error != EMFILE && error != ENFILE) what.code = ErrorCode::not_found;
    return tl::make_unexpected(std::move(what));
  };
  if (program.empty()) return not_started(ENOENT);
  if (std::error_code code; options.working_folder && !std::filesystem::is_directory(*options.working_folder, code)) {
    return fail(ErrorCode::not_found, "no such folder to run in", to_utf8(*options.working_folder));
  }
  const NoPipeSignal no_pipe_signal;
  Streams streams;
  for (Pipe* pipe : {&streams.in, &streams.out, &streams.err}) {
    if (!pipe->open()) return not_started(errno);
  }
  pid_t child = 0;
  if (const int error = spawn(program, options, streams, no_pipe_signal.before(), child)) return not_started(error);
  streams.in.read.close();
  streams.out.write.close();
  streams.err.write.close();
  for (const Handle* handle : {&streams.in.write, &streams.out.read, &streams.err.read}) never_block(*handle);
  return Attendant(child, streams, options).run();
}

}  // namespace mk
