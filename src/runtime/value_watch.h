#pragma once
// Inside this folder only: an operator that shows a value to us while the model runs and hands nothing on, so that the
// runtime can free the value as if nobody had looked (graph outputs it keeps until the run ends, wanted or not).

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "graph/ir.h"
#include "runtime/host_tensor.h"
#include "runtime/library.h"
#include "runtime/ort.h"

namespace mk::ort {

class ValueWatch {
 public:
  static Result<std::shared_ptr<ValueWatch>> create(const Runtime& runtime);
  ValueWatch(const ValueWatch&) = delete;
  ValueWatch& operator=(const ValueWatch&) = delete;

  // Watches tensors of the model's graph; the index of each is its place in `values`, which are in topological order.
  static void watch(Model& model, std::span<Value* const> values);

  // Before the session is made; the watch must outlive it.
  Status add_to(OrtSessionOptions& options) const;

  // What a run shows its values to, one run at a time. The first error ends the run; `result` has it.
  using See = std::function<Status(std::size_t index, const TensorView& value)>;
  void start(const See* see);
  Status result();

 private:
  // The operator's table, with the way back from it.
  struct Operator : OrtCustomOp {
    ValueWatch* owner = nullptr;
  };
  struct Kernel {
    ValueWatch* owner;
    std::size_t index;
  };

  explicit ValueWatch(const OrtApi& api);
  static OrtStatusPtr ORT_API_CALL create_kernel(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info,
                                                 void** kernel);
  static OrtStatusPtr ORT_API_CALL compute(void* kernel, OrtKernelContext* context);
  Status show(std::size_t index, OrtKernelContext* context) const;

  const OrtApi& api_;
  Operator operator_{};
  Owner<OrtCustomOpDomain> domain_;
  const See* see_ = nullptr;
  Status result_;
};

}  // namespace mk::ort
