#pragma once
// The values inside a model while it runs, each read where the runtime has it, at the moment it is there.
//
//   MK_TRY(auto observer, Observer::open(runtime, model, names));
//   MK_CHECK(observer.run(inputs, [&](std::size_t i, const TensorView& value) { ... }));
//
// Nothing is kept of a value once it was seen, so that a run takes the memory of an ordinary one.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "graph/ir.h"
#include "runtime/session.h"

namespace mk {

struct ObserverOptions {
  SessionOptions session{.optimization = GraphOptimization::none};  // so that a value is what the model says it is
  std::uint64_t memory = 256u << 20;                                // bytes of values that collect() holds at a time
};

class Observer {
 public:
  // Values of the model's graph, its inputs too, each once. Errors as open_model().
  static Result<Observer> open(std::shared_ptr<Runtime> runtime, const Model& model, std::vector<std::string> names,
                               const ObserverOptions& options = {});

  const std::vector<std::string>& names() const { return names_; }
  const Session& session() const { return session_; }

  // Shows every value once, `index` being that of its name; a view lives as long as the call. An error of `see` ends
  // the run and is returned. Values that are no tensors, or of strings, are not shown.
  using See = std::function<Status(std::size_t index, const TensorView& value)>;
  Status run(std::span<const HostTensor> inputs, const See& see);

  // For who needs two models' values side by side: the names in groups that fit into the memory for inputs of this
  // shape (inputs of the model are in no group), and copies of a group's values by their index.
  std::vector<std::vector<std::size_t>> groups(std::span<const HostTensor> inputs) const;
  using Collected = std::unordered_map<std::size_t, HostTensor>;
  Result<Collected> collect(std::span<const HostTensor> inputs, const std::vector<std::size_t>& group);

 private:
  explicit Observer(Session session) : session_(std::move(session)) {}
  Session session_;
  std::shared_ptr<ort::ValueWatch> watch_;
  std::vector<std::string> names_;
  std::vector<Type> types_;
  std::vector<std::size_t> inputs_;   // indices of names that are inputs of the model
  std::vector<std::size_t> watched_;  // and of the others that are watched, in topological order
  std::uint64_t memory_ = 0;
};

// The float32 and float16 tensors of the model's graph that nodes compute or that are its inputs, in topological order.
std::vector<std::string> float_values(const Model& model);

}  // namespace mk
