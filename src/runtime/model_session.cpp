#include "runtime/model_session.h"

#include "graph/onnx_writer.h"

namespace mk {
namespace {

Result<Session> open(std::shared_ptr<Runtime> runtime, const Model& model, const SessionOptions& options) {
  MK_TRY(const SkeletonModel skeleton, serialize_skeleton(model));
  return Session::open_bytes(std::move(runtime), skeleton.bytes, options, skeleton.beside);
}

}  // namespace

Result<Session> open_model(std::shared_ptr<Runtime> runtime, const Model& model, const SessionOptions& options,
                           std::span<const std::string> extra_outputs) {
  if (extra_outputs.empty()) return open(std::move(runtime), model, options);
  const std::unique_ptr<Model> copy = clone(model);
  for (const std::string& name : extra_outputs) {
    Value* value = copy->graph->find(name);
    if (!value) return fail(ErrorCode::failed, "the graph has no value " + name + " to observe");
    if (!value->is_graph_output()) copy->graph->mark_output(value);
  }
  return open(std::move(runtime), *copy, options);
}

}  // namespace mk
