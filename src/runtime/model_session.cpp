#include "runtime/model_session.h"

#include "graph/onnx_writer.h"

namespace mk {

Result<Session> open_model(std::shared_ptr<Runtime> runtime, const Model& model, const SessionOptions& options) {
  MK_TRY(const SkeletonModel skeleton, serialize_skeleton(model));
  return Session::open_bytes(std::move(runtime), skeleton.bytes, options, skeleton.beside);
}

}  // namespace mk
