// What `winml perf`'s loop adds to a bare loop over ONNX Runtime's C API: both run on the same model and inputs, taking
// turns, each with a session of its own.
//
//   perf_overhead [MODEL.onnx ...]     a small model of the tests and, where bootstrap fetched it, a real one if absent

#include <onnxruntime_c_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>

#include "base/system.h"
#include "graph/onnx_reader.h"
#include "perf/benchmark.h"
#include "perf/statistics.h"
#include "runtime/input_shapes.h"
#include "runtime/value_ranges.h"

namespace mk {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int rounds = 40;

double milliseconds(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

void stop_if(const OrtApi& api, OrtStatus* status) {
  if (!status) return;
  std::fprintf(stderr, "%s\n", api.GetErrorMessage(status));
  std::exit(1);
}

template <typename T>
T value_of(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().to_string().c_str());
  std::exit(1);
}

// The loop as anyone would write it with the C API.
class BareLoop {
 public:
  BareLoop(const Runtime& runtime, const Path& model, std::vector<HostTensor>& inputs, const Session& described)
      : api_(runtime.api()) {
    OrtSessionOptions* options = nullptr;
    stop_if(api_, api_.CreateSessionOptions(&options));
    stop_if(api_, api_.CreateSession(runtime.env(), model.c_str(), options, &session_));
    OrtMemoryInfo* memory = nullptr;
    stop_if(api_, api_.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    for (HostTensor& input : inputs) {
      OrtValue* value = nullptr;
      stop_if(api_, api_.CreateTensorWithDataAsOrtValue(memory, input.data.data(), input.data.size(), input.dims.data(),
                                                        input.dims.size(),
                                                        static_cast<ONNXTensorElementDataType>(input.type), &value));
      names_.push_back(input.name.c_str());
      values_.push_back(value);
    }
    for (const Port& port : described.outputs()) output_names_.push_back(port.name.c_str());
    outputs_.resize(output_names_.size());
  }

  void run(int count, std::vector<double>& samples) {
    for (int i = 0; i < count; ++i) {
      std::fill(outputs_.begin(), outputs_.end(), nullptr);
      const auto start = Clock::now();
      OrtStatus* status = api_.Run(session_, nullptr, names_.data(), values_.data(), values_.size(),
                                   output_names_.data(), output_names_.size(), outputs_.data());
      const auto end = Clock::now();
      stop_if(api_, status);
      for (OrtValue* output : outputs_) api_.ReleaseValue(output);
      samples.push_back(milliseconds(end - start));
    }
  }

 private:
  const OrtApi& api_;
  OrtSession* session_ = nullptr;
  std::vector<const char*> names_, output_names_;
  std::vector<const OrtValue*> values_;
  std::vector<OrtValue*> outputs_;
};

void row(const std::string& what, const std::string& value, const char* target) {
  std::printf("  %-62s%16s  %s\n", what.c_str(), value.c_str(), target);
}

std::string text(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return percentile(samples, 50);
}

void compare(const std::shared_ptr<Runtime>& runtime, const Path& path) {
  const auto model = value_of(read_onnx(path));
  const Session session = value_of(Session::open(runtime, path));
  auto chosen = value_of(choose_shapes(session.inputs(), {}, 1));
  apply_ranges(value_ranges(*model), chosen.inputs);
  std::vector<HostTensor> inputs = value_of(random_inputs(chosen.inputs));

  BareLoop bare(*runtime, path, inputs, session);
  BoundRun bound = value_of(session.bind(inputs));
  std::vector<double> theirs, ours, warm;
  bare.run(5, warm);
  value_of(run_loop(bound, {.warmup = 0, .iterations = 5}, silent_progress()));
  const int count = std::clamp(static_cast<int>(200 / median(warm)), 3, 2000);  // at most 0.2 s a turn
  // The loops' own time per iteration, outside the runtime's call, round by round.
  std::vector<double> outside, bare_outside;
  const auto own = [&](Clock::time_point start, std::span<const double> samples) {
    return (milliseconds(Clock::now() - start) - std::accumulate(samples.begin(), samples.end(), 0.0)) / count;
  };

  for (int i = 0; i < rounds; ++i) {
    const std::size_t before = theirs.size();
    auto start = Clock::now();
    bare.run(count, theirs);
    bare_outside.push_back(own(start, std::span(theirs).subspan(before)));
    start = Clock::now();
    const LoopSamples samples = value_of(run_loop(bound, {.warmup = 0, .iterations = count}, silent_progress()));
    outside.push_back(own(start, samples.milliseconds));
    ours.insert(ours.end(), samples.milliseconds.begin(), samples.milliseconds.end());
  }
  const std::string name = to_utf8(path.filename());
  row(name + ", bare loop, median", text("%.4f ms", median(theirs)), "");
  row(name + ", winml perf's loop, median", text("%.4f ms", median(ours)), "");
  row(name + ", difference", text("%+.2f %%", (median(ours) / median(theirs) - 1) * 100), "within 2 %");
  row(name + ", bare loop, own work per iteration", text("%.2f us", median(bare_outside) * 1000), "");
  row(name + ", winml perf's loop, own work per iteration", text("%.2f us", median(outside) * 1000), "under 20 us");
}

}  // namespace
}  // namespace mk

int main(int argc, char** argv) {
  using namespace mk;
  std::vector<Path> models(argv + 1, argv + argc);
  if (models.empty()) {
    models.push_back("tests/data/runtime/tokens.onnx");
    const auto cache = environment("MODELKIT_CACHE");
    const Path real = (cache ? path_from_utf8(*cache) : home_folder() / ".cache" / "modelkit") /
                      "models/rapidocr/PP-OCRv6_rec_small.onnx";
    if (std::filesystem::exists(real)) models.push_back(real);
  }
  const auto runtime = value_of(Runtime::load());
  for (const Path& path : models) compare(runtime, path);
  return 0;
}
