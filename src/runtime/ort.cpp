#include "runtime/ort.h"

#include <array>
#include <utility>

namespace mk::ort {
namespace {

// The enums agree up to int4; then the runtime's has another order.
constexpr std::array<std::pair<ONNXTensorElementDataType, DataType>, 4> late_types{{
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1, DataType::float4e2m1},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2, DataType::uint2},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2, DataType::int2},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0, DataType::float8e8m0},
}};
static_assert(static_cast<int>(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4) == static_cast<int>(DataType::int4));
static_assert(static_cast<int>(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16) == static_cast<int>(DataType::bfloat16));

// "/src/core/graph/graph.cc:1234 void onnxruntime::Graph::Resolve(const X&, int) what" -> "what".
void strip_source_location(std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return;
  const auto end = text.find(".cc:", slash);
  const auto space = text.find(' ', slash);
  if (end == std::string::npos || space == std::string::npos || space < end) return;
  std::size_t depth = 0;
  std::size_t after = std::string::npos;  // past the parameter list of the function named there
  for (std::size_t i = space; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && depth > 0 && --depth == 0) {
      after = i + 1;
      break;
    }
  }
  if (after == std::string::npos) return;
  while (after < text.size() && text[after] == ' ') ++after;
  if (text.compare(after, 6, "const ") == 0) after += 6;
  if (after < text.size()) text.erase(slash, after - slash);
}

}  // namespace

std::string plain_message(std::string message) {
  for (char& c : message)
    if (c == '\n' || c == '\r' || c == '\t') c = ' ';
  strip_source_location(message);
  std::string text;
  for (const char c : message)
    if (c != ' ' || (!text.empty() && text.back() != ' ')) text += c;
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  constexpr std::size_t longest = 600;
  if (text.size() > longest) text = text.substr(0, longest) + " ...";
  return text;
}

Status check(const OrtApi& api, OrtStatus* status, std::string where, ErrorCode otherwise) {
  if (!status) return {};
  const OrtErrorCode code = api.GetErrorCode(status);
  std::string message = plain_message(api.GetErrorMessage(status));
  api.ReleaseStatus(status);
  ErrorCode ours = otherwise;
  if (code == ORT_NO_SUCHFILE) ours = ErrorCode::not_found;
  if (code == ORT_INVALID_PROTOBUF || code == ORT_INVALID_GRAPH) ours = ErrorCode::malformed;
  return fail(ours, std::move(message), std::move(where));
}

DataType from_ort(ONNXTensorElementDataType type) {
  for (const auto& [theirs, ours] : late_types)
    if (theirs == type) return ours;
  return static_cast<DataType>(type);
}

ONNXTensorElementDataType to_ort(DataType type) {
  for (const auto& [theirs, ours] : late_types)
    if (ours == type) return theirs;
  return static_cast<ONNXTensorElementDataType>(type);
}

Result<TensorView> view_value(const OrtApi& api, std::string_view name, const OrtValue* value) {
  TensorView tensor;
  tensor.name = name;
  const std::string where(name);
  int is_tensor = 0;
  if (value) MK_CHECK(check(api, api.IsTensor(value, &is_tensor), where));
  if (!is_tensor) return fail(ErrorCode::unsupported, "output '" + where + "' is no tensor");
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  MK_CHECK(check(api, api.GetTensorTypeAndShape(value, &raw), where));
  const auto info = own(raw, api.ReleaseTensorTypeAndShapeInfo);
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::size_t rank = 0;
  MK_CHECK(check(api, api.GetTensorElementType(raw, &element), where));
  MK_CHECK(check(api, api.GetDimensionsCount(raw, &rank), where));
  tensor.dims.resize(rank);
  MK_CHECK(check(api, api.GetDimensions(raw, tensor.dims.data(), rank), where));
  tensor.type = from_ort(element);
  if (tensor.type == DataType::string) return tensor;
  const auto size = byte_size(tensor.type, tensor.element_count());
  if (!size) return fail(ErrorCode::inference, "output '" + where + "' is too large");
  void* data = nullptr;
  MK_CHECK(check(api, api.GetTensorMutableData(const_cast<OrtValue*>(value), &data), where));
  tensor.data = {static_cast<const std::byte*>(data), static_cast<std::size_t>(*size)};
  return tensor;
}

}  // namespace mk::ort
