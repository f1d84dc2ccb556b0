#pragma once
// Models for tests, written in ONNX's text syntax (onnx.ai/onnx/repo-docs/Syntax.html), read by the onnx library.

#include <memory>
#include <string_view>

#include "base/result.h"
#include "graph/ir.h"

namespace mk::testing {

// `text` is a whole model: <ir_version: 8, opset_import: ["" : 17]> g (float[N, 4] x) => (float[N, 4] y) { y = Relu(x)
// }
Result<std::unique_ptr<Model>> model_of_text(std::string_view text);

}  // namespace mk::testing
