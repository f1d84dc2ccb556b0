#include "runtime/library.h"

#include <mutex>

#include "runtime/ort.h"

namespace mk {
namespace {

// The environment is one per process and keeps the logger it was made with, so this is one per process too.
struct LogSink {
  std::mutex mutex;
  Progress* progress = nullptr;
  int verbosity = 0;
};

LogSink& log_sink() {
  static LogSink& sink = *new LogSink;  // never destroyed: threads of the runtime may log until the process ends
  return sink;
}

void ORT_API_CALL write_log(void*, OrtLoggingLevel severity, const char*, const char*, const char*,
                            const char* message) noexcept {
  LogSink& sink = log_sink();
  const std::lock_guard lock(sink.mutex);
  if (!sink.progress) return;
  const std::string text = "ONNX Runtime: " + ort::plain_message(message ? message : "");
  // An error that ends a call comes back as its status too; on its own it is for those who ask.
  if (severity >= ORT_LOGGING_LEVEL_WARNING) {
    sink.progress->info(text);
  } else {
    sink.progress->debug(text);
  }
}

// "1.32.0" -> 32; the C API of that version is the library's newest.
int minor_version(const std::string& version) {
  int minor = 0;
  for (std::size_t i = version.find('.') + 1; i < version.size() && version[i] >= '0' && version[i] <= '9'; ++i)
    minor = minor * 10 + (version[i] - '0');
  return minor;
}

struct LoadedLibrary {
  SharedLibrary library;
  const OrtApi* api;
  std::string version;
};

Result<LoadedLibrary> load_library(const Path& path) {
  MK_TRY(auto library, SharedLibrary::load(path));
  using GetBase = const OrtApiBase*(ORT_API_CALL*)();
  const auto get_base = reinterpret_cast<GetBase>(library.symbol("OrtGetApiBase"));
  if (!get_base) return fail(ErrorCode::inference, "not an ONNX Runtime library: it has no OrtGetApiBase");
  const OrtApiBase* base = get_base();
  const std::string version = base->GetVersionString();
  const OrtApi* api = base->GetApi(minimum_ort_api);
  if (!api) return fail(ErrorCode::inference, "version " + version + " is too old; 1.22 or newer is needed");
  return LoadedLibrary{library, api, version};
}

Error none_loaded(const std::vector<RuntimeCandidate>& tried) {
  Error error{ErrorCode::inference, "ONNX Runtime was not found", {}, {}};
  for (const auto& candidate : tried) {
    if (!error.where.empty()) error.where += "; ";
    error.where += candidate.source + " " + to_utf8(candidate.path) + ": " + candidate.problem;
  }
  error.hint =
      "Run tools/bootstrap, or name the library with --ort PATH or WINML_ORT_PATH; 'winml sys' lists the places looked "
      "at";
  return error;
}

}  // namespace

Result<std::shared_ptr<Runtime>> Runtime::load(const RuntimeOptions& options) {
  std::vector<RuntimeCandidate> tried;
  for (RuntimeCandidate& candidate : runtime_candidates(runtime_places(options.ort))) {
    if (!candidate.problem.empty()) {
      tried.push_back(std::move(candidate));
      continue;
    }
    auto loaded = load_library(candidate.path);
    if (!loaded) {
      candidate.problem = loaded.error().message;
      tried.push_back(std::move(candidate));
      continue;
    }
    std::shared_ptr<Runtime> runtime(new Runtime(loaded->library, loaded->api));
    runtime->version_ = loaded->version;
    runtime->api_version_ = minor_version(loaded->version);
    tried.push_back(std::move(candidate));
    runtime->tried_ = std::move(tried);
    {
      LogSink& sink = log_sink();
      const std::lock_guard lock(sink.mutex);
      sink.progress = options.progress;
      sink.verbosity = options.verbosity;
    }
    const OrtLoggingLevel level = options.verbosity >= 2   ? ORT_LOGGING_LEVEL_INFO
                                  : options.verbosity >= 1 ? ORT_LOGGING_LEVEL_WARNING
                                                           : ORT_LOGGING_LEVEL_ERROR;
    MK_CHECK(ort::check(*runtime->api_,
                        runtime->api_->CreateEnvWithCustomLogger(write_log, nullptr, level, "winml", &runtime->env_),
                        to_utf8(runtime->used().path)));
    return runtime;
  }
  return tl::make_unexpected(none_loaded(tried));
}

Runtime::~Runtime() {
  {
    LogSink& sink = log_sink();
    const std::lock_guard lock(sink.mutex);
    sink.progress = nullptr;
  }
  if (env_) api_->ReleaseEnv(env_);
}

std::vector<std::string> Runtime::providers() const {
  char** names = nullptr;
  int count = 0;
  std::vector<std::string> found;
  if (!ort::check(*api_, api_->GetAvailableProviders(&names, &count), {})) return found;
  found.assign(names, names + count);
  static_cast<void>(ort::check(*api_, api_->ReleaseAvailableProviders(names, count), {}));
  return found;
}

}  // namespace mk
