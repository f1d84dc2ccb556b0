#pragma once
// A model opened in ONNX Runtime, and its runs.
//
//   MK_TRY(auto runtime, Runtime::load());
//   MK_TRY(auto session, Session::open(runtime, "model.onnx"));
//   MK_TRY(auto outputs, session.run(inputs));
//
// Sessions may be run from several threads at once. Errors: not_found and malformed for the file, inference otherwise.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/path.h"
#include "base/result.h"
#include "graph/tensor.h"
#include "graph/type.h"
#include "runtime/host_tensor.h"
#include "runtime/library.h"

struct OrtEpDevice;

namespace mk {

namespace ort {
class ValueWatch;
}

enum class GraphOptimization { none, basic, extended, all };

struct SessionOptions {
  int intra_op_threads = 0;  // 0 leaves it to the runtime: one per physical core
  int inter_op_threads = 0;  // more than 1 runs independent branches in parallel
  GraphOptimization optimization = GraphOptimization::all;
  std::vector<std::pair<std::string, std::string>> config;  // entries such as "session.disable_cpu_ep_fallback"
  const OrtEpDevice* device = nullptr;                      // of a plugin EP (ep_devices.h); null runs on the CPU EP
  std::vector<std::pair<std::string, std::string>> ep_options;
  std::shared_ptr<ort::ValueWatch> watch;  // where the model has its nodes (value_watch.h)
};

// An input or output as the model declares it. A tensor without a declared shape has none (runtimes before 1.24 say
// that it is a scalar).
struct Port {
  std::string name;
  Type type;
};

class BoundRun;

class Session {
 public:
  static Result<Session> open(std::shared_ptr<Runtime> runtime, const Path& path, const SessionOptions& options = {});
  // From memory; external data is not found this way.
  static Result<Session> open_bytes(std::shared_ptr<Runtime> runtime, std::string_view bytes,
                                    const SessionOptions& options = {});
  // The same, with the data of initializers that `bytes` names as external data (onnx_writer.h, serialize_skeleton).
  // What is in memory already is used where it is and kept alive; the rest is read once.
  static Result<Session> open_bytes(std::shared_ptr<Runtime> runtime, std::string_view bytes,
                                    const SessionOptions& options, std::span<const Tensor* const> initializers);

  const std::vector<Port>& inputs() const;
  const std::vector<Port>& outputs() const;

  // Inputs are matched by name; those that the model does not declare are left out. A missing one, one of another
  // type, or one whose dims contradict the declared ones is named in the error. Outputs come in the model's order, or
  // only the `wanted` ones in theirs.
  Result<std::vector<HostTensor>> run(std::span<const HostTensor> inputs,
                                      std::span<const std::string> wanted = {}) const;

  // The same inputs for many runs. They are not copied: they must stay where they are while the BoundRun lives. The
  // memory of outputs that are not `wanted` is free again during the run.
  Result<BoundRun> bind(std::span<const HostTensor> inputs, std::span<const std::string> wanted = {}) const;

 private:
  friend class BoundRun;
  struct State;
  explicit Session(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

class BoundRun {
 public:
  BoundRun(BoundRun&&) noexcept;
  BoundRun& operator=(BoundRun&&) noexcept;
  ~BoundRun();

  // One run and nothing else; the outputs are those of the last run. Release them before the next one.
  Status run();
  void release_outputs();
  Result<std::vector<HostTensor>> outputs() const;  // copies
  // Output `index`, where it is until the next release; not of strings.
  Result<TensorView> output(std::size_t index) const;

 private:
  friend class Session;
  struct State;
  explicit BoundRun(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mk
