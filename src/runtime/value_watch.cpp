#include "runtime/value_watch.h"

#include <utility>

namespace mk::ort {
namespace {

constexpr const char* domain = "winml.runtime";
constexpr const char* op_type = "Watch";
constexpr const char* index_key = "index";

const char* ORT_API_CALL name(const OrtCustomOp*) { return op_type; }
const char* ORT_API_CALL provider(const OrtCustomOp*) { return nullptr; }
std::size_t ORT_API_CALL one(const OrtCustomOp*) { return 1; }
ONNXTensorElementDataType ORT_API_CALL any_type(const OrtCustomOp*, std::size_t) {
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}
ONNXTensorElementDataType ORT_API_CALL nothing_type(const OrtCustomOp*, std::size_t) {
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
}
OrtCustomOpInputOutputCharacteristic ORT_API_CALL required(const OrtCustomOp*, std::size_t) {
  return INPUT_OUTPUT_REQUIRED;
}
OrtCustomOpInputOutputCharacteristic ORT_API_CALL optional(const OrtCustomOp*, std::size_t) {
  return INPUT_OUTPUT_OPTIONAL;
}
OrtMemType ORT_API_CALL on_the_host(const OrtCustomOp*, std::size_t) { return OrtMemTypeCPUInput; }
int ORT_API_CALL first_version(const OrtCustomOp*) { return 1; }
int ORT_API_CALL last_version(const OrtCustomOp*) { return 1; }

}  // namespace

ValueWatch::ValueWatch(const OrtApi& api) : api_(api), domain_(own<OrtCustomOpDomain>(nullptr, nullptr)) {
  operator_.version = minimum_ort_api;
  operator_.owner = this;
  operator_.GetName = name;
  operator_.GetExecutionProviderType = provider;
  operator_.GetInputType = any_type;
  operator_.GetInputTypeCount = one;
  operator_.GetOutputType = nothing_type;
  operator_.GetOutputTypeCount = one;
  operator_.GetInputCharacteristic = required;
  operator_.GetOutputCharacteristic = optional;
  operator_.GetInputMemoryType = on_the_host;
  operator_.CreateKernelV2 = create_kernel;
  operator_.KernelComputeV2 = compute;
  operator_.KernelDestroy = [](void* kernel) { delete static_cast<Kernel*>(kernel); };
  operator_.GetStartVersion = first_version;
  operator_.GetEndVersion = last_version;
}

Result<std::shared_ptr<ValueWatch>> ValueWatch::create(const Runtime& runtime) {
  const std::shared_ptr<ValueWatch> made(new ValueWatch(runtime.api()));
  OrtCustomOpDomain* raw = nullptr;
  MK_CHECK(check(made->api_, made->api_.CreateCustomOpDomain(domain, &raw), domain));
  made->domain_ = own(raw, made->api_.ReleaseCustomOpDomain);
  MK_CHECK(check(made->api_, made->api_.CustomOpDomain_Add(raw, &made->operator_), domain));
  return made;
}

void ValueWatch::watch(Model& model, std::span<Value* const> values) {
  model.set_opset(domain, 1);
  // The runtime orders nodes depth first from the last one that nothing follows: with the first value's last, each
  // value is shown as soon as it is there.
  for (std::size_t i = values.size(); i-- > 0;) {
    Node* node = model.graph->add_node(op_type, {values[i]}, {});
    node->domain = domain;
    node->set_attribute(Attribute(index_key, static_cast<std::int64_t>(i)));
  }
}

Status ValueWatch::add_to(OrtSessionOptions& options) const {
  return check(api_, api_.AddCustomOpDomain(&options, domain_.get()), domain);
}

void ValueWatch::start(const See* see) {
  see_ = see;
  result_ = {};
}

Status ValueWatch::result() {
  see_ = nullptr;
  return std::exchange(result_, {});
}

OrtStatusPtr ORT_API_CALL ValueWatch::create_kernel(const OrtCustomOp* op, const OrtApi* api, const OrtKernelInfo* info,
                                                    void** kernel) {
  std::int64_t index = 0;
  if (OrtStatusPtr status = api->KernelInfoGetAttribute_int64(info, index_key, &index)) return status;
  *kernel = new Kernel{static_cast<const Operator*>(op)->owner, static_cast<std::size_t>(index)};
  return nullptr;
}

Status ValueWatch::show(std::size_t index, OrtKernelContext* context) const {
  const OrtValue* value = nullptr;
  MK_CHECK(check(api_, api_.KernelContext_GetInput(context, 0, &value), op_type));
  MK_TRY(const TensorView view, view_value(api_, {}, value));
  return (*see_)(index, view);
}

OrtStatusPtr ORT_API_CALL ValueWatch::compute(void* kernel, OrtKernelContext* context) {
  const Kernel& k = *static_cast<const Kernel*>(kernel);
  ValueWatch& owner = *k.owner;
  if (!owner.see_) return nullptr;
  owner.result_ = owner.show(k.index, context);
  if (owner.result_) return nullptr;
  return owner.api_.CreateStatus(ORT_FAIL, owner.result_.error().message.c_str());
}

}  // namespace mk::ort
