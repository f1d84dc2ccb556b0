#include "testing/onnx_text.h"

#include <onnx/defs/parser.h>

#include <string>

#include "graph/onnx_reader.h"

namespace mk::testing {

Result<std::unique_ptr<Model>> model_of_text(std::string_view text) {
  onnx::ModelProto proto;
  const std::string source(text);
  onnx::OnnxParser parser(source.c_str());
  const auto status = parser.Parse(proto);
  if (!status.IsOK()) return fail(ErrorCode::malformed, status.ErrorMessage());
  std::string bytes;
  proto.SerializeToString(&bytes);
  return read_onnx(std::as_bytes(std::span(bytes)), {});
}

}  // namespace mk::testing
