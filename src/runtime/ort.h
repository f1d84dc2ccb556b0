#pragma once
// Inside this folder only: the C API's objects as owners, its status as our Status, its element types as ours.

#include <onnxruntime_c_api.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "graph/data_type.h"
#include "runtime/host_tensor.h"

namespace mk::ort {

// An owner of an object of the C API, released by a function pointer of its table.
template <typename T>
struct Releaser {
  void (*release)(T*) = nullptr;
  void operator()(T* object) const { release(object); }
};
template <typename T>
using Owner = std::unique_ptr<T, Releaser<T>>;

template <typename T>
Owner<T> own(T* object, void (*release)(T*)) {
  return Owner<T>(object, Releaser<T>{release});
}

// The error of a status, which it releases. The code is `otherwise` unless the runtime says that the model is broken.
Status check(const OrtApi& api, OrtStatus* status, std::string where, ErrorCode otherwise = ErrorCode::inference);

// What a message of the runtime says, on one line and without its source locations.
std::string plain_message(std::string message);

DataType from_ort(ONNXTensorElementDataType type);
ONNXTensorElementDataType to_ort(DataType type);

// A tensor where the runtime has it; without data where it is one of strings. unsupported where it is no tensor.
Result<TensorView> view_value(const OrtApi& api, std::string_view name, const OrtValue* value);

}  // namespace mk::ort
