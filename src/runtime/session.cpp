#include "runtime/session.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/system.h"
#include "runtime/external_initializers.h"
#include "runtime/interrupt_watch.h"
#include "runtime/ort.h"
#include "runtime/value_watch.h"

namespace mk {

using ort::check;
using ort::own;

struct Session::State {
  std::shared_ptr<Runtime> runtime;
  std::string where;                              // the file, for errors
  std::vector<std::shared_ptr<const void>> kept;  // in use by the session, so gone after it
  ort::Owner<OrtSession> session;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<const char*> output_names;
  std::unordered_map<std::string_view, const char*> outputs_by_name;

  const OrtApi& api() const { return runtime->api(); }
  Status open(const OrtApi& api, OrtStatus* created, OrtSession* raw);
};

struct BoundRun::State {
  std::shared_ptr<const Session::State> session;
  std::vector<const char*> input_names;
  std::vector<ort::Owner<OrtValue>> owned_inputs;
  std::vector<const OrtValue*> inputs;
  std::vector<const char*> output_names;
  std::vector<OrtValue*> outputs;

  Status run(const OrtRunOptions* options);
};

namespace {

constexpr std::array<GraphOptimizationLevel, 4> levels{ORT_DISABLE_ALL, ORT_ENABLE_BASIC, ORT_ENABLE_EXTENDED,
                                                       ORT_ENABLE_ALL};

Result<ort::Owner<OrtSessionOptions>> make_options(const Runtime& runtime, const SessionOptions& options) {
  const OrtApi& api = runtime.api();
  OrtSessionOptions* raw = nullptr;
  MK_CHECK(check(api, api.CreateSessionOptions(&raw), {}));
  auto made = own(raw, api.ReleaseSessionOptions);
  MK_CHECK(check(api, api.SetSessionGraphOptimizationLevel(raw, levels[static_cast<std::size_t>(options.optimization)]),
                 {}));
  if (options.intra_op_threads > 0) MK_CHECK(check(api, api.SetIntraOpNumThreads(raw, options.intra_op_threads), {}));
  if (options.inter_op_threads > 0) MK_CHECK(check(api, api.SetInterOpNumThreads(raw, options.inter_op_threads), {}));
  if (options.inter_op_threads > 1) MK_CHECK(check(api, api.SetSessionExecutionMode(raw, ORT_PARALLEL), {}));
  for (const auto& [key, value] : options.config)
    MK_CHECK(check(api, api.AddSessionConfigEntry(raw, key.c_str(), value.c_str()), key, ErrorCode::usage));
  if (!options.device) return made;
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : options.ep_options) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  MK_CHECK(check(api,
                 api.SessionOptionsAppendExecutionProvider_V2(raw, runtime.env(), &options.device, 1, keys.data(),
                                                              values.data(), keys.size()),
                 {}));
  return made;
}

Type tensor_type(const OrtApi& api, bool knows_rank, const OrtTensorTypeAndShapeInfo* info) {
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::size_t rank = 0;
  if (!check(api, api.GetTensorElementType(info, &element), {}) || !check(api, api.GetDimensionsCount(info, &rank), {}))
    return {};
  if (knows_rank && !api.TensorTypeAndShape_HasShape(info)) return Type::tensor(ort::from_ort(element));
  std::vector<std::int64_t> dims(rank);
  std::vector<const char*> symbols(rank, nullptr);
  Shape shape(rank);
  if (check(api, api.GetDimensions(info, dims.data(), rank), {}) &&
      check(api, api.GetSymbolicDimensions(info, symbols.data(), rank), {})) {
    for (std::size_t i = 0; i < rank; ++i)
      shape[i] = dims[i] >= 0 ? Dim::known(dims[i]) : Dim::symbolic(symbols[i] ? symbols[i] : "");
  }
  return Type::tensor(ort::from_ort(element), std::move(shape));
}

Type type_of(const OrtApi& api, bool knows_rank, const OrtTypeInfo* info) {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  if (!check(api, api.GetOnnxTypeFromTypeInfo(info, &kind), {})) return {};
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  if ((kind == ONNX_TYPE_TENSOR || kind == ONNX_TYPE_SPARSETENSOR) &&
      check(api, api.CastTypeInfoToTensorInfo(info, &tensor), {}) && tensor) {
    Type type = tensor_type(api, knows_rank, tensor);
    if (kind == ONNX_TYPE_SPARSETENSOR) type.kind = Type::Kind::sparse_tensor;
    return type;
  }
  Type type;
  type.kind = kind == ONNX_TYPE_SEQUENCE   ? Type::Kind::sequence
              : kind == ONNX_TYPE_MAP      ? Type::Kind::map
              : kind == ONNX_TYPE_OPTIONAL ? Type::Kind::optional
                                           : Type::Kind::opaque;
  return type;
}

using GetCount = OrtStatus*(ORT_API_CALL*)(const OrtSession*, std::size_t*)NO_EXCEPTION;
using GetName = OrtStatus*(ORT_API_CALL*)(const OrtSession*, std::size_t, OrtAllocator*, char**)NO_EXCEPTION;
using GetType = OrtStatus*(ORT_API_CALL*)(const OrtSession*, std::size_t, OrtTypeInfo**)NO_EXCEPTION;

Result<std::vector<Port>> ports(const OrtApi& api, bool knows_rank, const OrtSession* session, GetCount get_count,
                                GetName get_name, GetType get_type) {
  std::size_t count = 0;
  MK_CHECK(check(api, get_count(session, &count), {}));
  OrtAllocator* allocator = nullptr;
  MK_CHECK(check(api, api.GetAllocatorWithDefaultOptions(&allocator), {}));
  std::vector<Port> found;
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    MK_CHECK(check(api, get_name(session, i, allocator, &name), {}));
    Port port{name, {}};
    MK_CHECK(check(api, api.AllocatorFree(allocator, name), {}));
    OrtTypeInfo* raw = nullptr;
    MK_CHECK(check(api, get_type(session, i, &raw), {}));
    const auto info = own(raw, api.ReleaseTypeInfo);
    port.type = type_of(api, knows_rank, raw);
    found.push_back(std::move(port));
  }
  return found;
}

// A call that was stopped failed because of that.
Status unless_interrupted(Status status) {
  if (!status && interrupted()) return fail(ErrorCode::interrupted, "interrupted");
  return status;
}

std::string dims_text(const std::vector<std::int64_t>& dims) { return to_string(static_shape(dims)); }

// What a session says about a wrong input names neither the input nor the file; this does.
Status check_input(const Port& port, const HostTensor& tensor, const std::string& where) {
  if (!port.type.is_tensor())
    return fail(ErrorCode::unsupported, "input '" + port.name + "' is no tensor: it cannot be fed", where);
  if (tensor.type != port.type.element)
    return fail(ErrorCode::inference,
                "input '" + port.name + "' is " + std::string(name_of(tensor.type)) + ", the model takes " +
                    std::string(name_of(port.type.element)),
                where);
  bool fits = !port.type.shape || port.type.shape->size() == tensor.dims.size();
  for (std::size_t i = 0; fits && port.type.shape && i < tensor.dims.size(); ++i) {
    const Dim& dim = (*port.type.shape)[i];
    fits = !dim.is_known() || dim.value == tensor.dims[i];
  }
  if (!fits)
    return fail(ErrorCode::inference,
                "input '" + port.name + "' has shape " + dims_text(tensor.dims) + ", the model takes " +
                    to_string(*port.type.shape),
                where);
  const auto bytes = byte_size(tensor.type, tensor.element_count());
  const bool complete = tensor.type == DataType::string ? tensor.strings.size() == tensor.element_count()
                                                        : bytes && tensor.data.size() == *bytes;
  if (!complete)
    return fail(ErrorCode::inference,
                "input '" + port.name + "' has shape " + dims_text(tensor.dims) + " but not that many values", where);
  return {};
}

Result<ort::Owner<OrtValue>> make_value(const OrtApi& api, const HostTensor& tensor) {
  OrtValue* raw = nullptr;
  if (tensor.type == DataType::string) {
    OrtAllocator* allocator = nullptr;
    MK_CHECK(check(api, api.GetAllocatorWithDefaultOptions(&allocator), tensor.name));
    MK_CHECK(check(api,
                   api.CreateTensorAsOrtValue(allocator, tensor.dims.data(), tensor.dims.size(),
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &raw),
                   tensor.name));
    auto value = own(raw, api.ReleaseValue);
    std::vector<const char*> texts;
    for (const std::string& text : tensor.strings) texts.push_back(text.c_str());
    MK_CHECK(check(api, api.FillStringTensor(raw, texts.data(), texts.size()), tensor.name));
    return value;
  }
  OrtMemoryInfo* memory = nullptr;
  MK_CHECK(check(api, api.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory), tensor.name));
  const auto memory_owner = own(memory, api.ReleaseMemoryInfo);
  static std::byte nothing{};  // a tensor without elements still needs an address
  void* data = tensor.data.empty() ? &nothing : const_cast<std::byte*>(tensor.data.data());
  MK_CHECK(check(api,
                 api.CreateTensorWithDataAsOrtValue(memory, data, tensor.data.size(), tensor.dims.data(),
                                                    tensor.dims.size(), ort::to_ort(tensor.type), &raw),
                 tensor.name));
  return own(raw, api.ReleaseValue);
}

Status copy_strings(const OrtApi& api, const OrtValue* value, HostTensor& tensor) {
  const std::size_t count = tensor.element_count();
  std::size_t length = 0;
  MK_CHECK(check(api, api.GetStringTensorDataLength(value, &length), tensor.name));
  std::string text(length, '\0');
  std::vector<std::size_t> offsets(count);
  if (count > 0)
    MK_CHECK(check(api, api.GetStringTensorContent(value, text.data(), length, offsets.data(), count), tensor.name));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = i + 1 < count ? offsets[i + 1] : length;
    tensor.strings.push_back(text.substr(offsets[i], end - offsets[i]));
  }
  return {};
}

Result<HostTensor> copy_value(const OrtApi& api, std::string_view name, OrtValue* value) {
  MK_TRY(TensorView view, ort::view_value(api, name, value));
  HostTensor tensor{std::string(name), view.type, std::move(view.dims), {view.data.begin(), view.data.end()}, {}};
  if (tensor.type == DataType::string) MK_CHECK(copy_strings(api, value, tensor));
  return tensor;
}

}  // namespace

Status BoundRun::State::run(const OrtRunOptions* options) {
  const OrtApi& api = session->api();
  OrtStatus* status = api.Run(session->session.get(), options, input_names.data(), inputs.data(), inputs.size(),
                              output_names.data(), output_names.size(), outputs.data());
  if (status) return check(api, status, session->where);
  return {};
}

Status Session::State::open(const OrtApi& api, OrtStatus* created, OrtSession* raw) {
  MK_CHECK(check(api, created, where));
  session = own(raw, api.ReleaseSession);
  const bool knows_rank = runtime->api_version() >= 24;
  MK_TRY(inputs,
         ports(api, knows_rank, raw, api.SessionGetInputCount, api.SessionGetInputName, api.SessionGetInputTypeInfo));
  MK_TRY(outputs, ports(api, knows_rank, raw, api.SessionGetOutputCount, api.SessionGetOutputName,
                        api.SessionGetOutputTypeInfo));
  for (const Port& port : outputs) {
    output_names.push_back(port.name.c_str());
    outputs_by_name.emplace(port.name, port.name.c_str());
  }
  return {};
}

Result<Session> Session::open(std::shared_ptr<Runtime> runtime, const Path& path, const SessionOptions& options) {
  auto state = std::make_shared<State>();
  state->runtime = std::move(runtime);
  state->where = to_utf8(path);
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return fail(ErrorCode::not_found, "no such file", state->where);
  const OrtApi& api = state->api();
  MK_TRY(const auto made, make_options(*state->runtime, options));
  OrtSession* raw = nullptr;
  OrtStatus* created = nullptr;
  {
    const InterruptWatch watch(
        [&] { (void)check(api, api.SessionOptionsSetLoadCancellationFlag(made.get(), true), {}); });
    created = api.CreateSession(state->runtime->env(), path.c_str(), made.get(), &raw);
  }
  MK_CHECK(unless_interrupted(state->open(api, created, raw)));
  return Session(std::move(state));
}

Result<Session> Session::open_bytes(std::shared_ptr<Runtime> runtime, std::string_view bytes,
                                    const SessionOptions& options) {
  return open_bytes(std::move(runtime), bytes, options, {});
}

Result<Session> Session::open_bytes(std::shared_ptr<Runtime> runtime, std::string_view bytes,
                                    const SessionOptions& options, std::span<const Tensor* const> initializers) {
  auto state = std::make_shared<State>();
  state->runtime = std::move(runtime);
  state->where = "model in memory";
  const OrtApi& api = state->api();
  MK_TRY(const auto made, make_options(*state->runtime, options));
  // The runtime's optimizations change initializers in place, so only without them can it use ours where they are.
  const bool shared = options.optimization == GraphOptimization::none && !options.device;
  MK_TRY(const auto values, ort::hand_over(api, *made, initializers, shared, state->kept));
  if (options.watch) {
    MK_CHECK(options.watch->add_to(*made));
    state->kept.push_back(options.watch);
  }
  OrtSession* raw = nullptr;
  OrtStatus* created = api.CreateSessionFromArray(state->runtime->env(), bytes.data(), bytes.size(), made.get(), &raw);
  MK_CHECK(state->open(api, created, raw));
  return Session(std::move(state));
}

const std::vector<Port>& Session::inputs() const { return state_->inputs; }
const std::vector<Port>& Session::outputs() const { return state_->outputs; }

Result<BoundRun> Session::bind(std::span<const HostTensor> inputs, std::span<const std::string> wanted) const {
  auto bound = std::make_unique<BoundRun::State>();
  bound->session = state_;
  std::string missing;
  for (const Port& port : state_->inputs) {
    const auto given = std::find_if(inputs.begin(), inputs.end(), [&](const auto& t) { return t.name == port.name; });
    if (given == inputs.end()) {
      missing += (missing.empty() ? "'" : ", '") + port.name + "'";
      continue;
    }
    MK_CHECK(check_input(port, *given, state_->where));
    MK_TRY(auto value, make_value(state_->api(), *given));
    bound->input_names.push_back(port.name.c_str());
    bound->inputs.push_back(value.get());
    bound->owned_inputs.push_back(std::move(value));
  }
  if (!missing.empty()) return fail(ErrorCode::inference, "missing inputs: " + missing, state_->where);
  if (wanted.empty()) bound->output_names = state_->output_names;
  for (const std::string& name : wanted) {
    const auto known = state_->outputs_by_name.find(name);
    if (known == state_->outputs_by_name.end())
      return fail(ErrorCode::inference, "there is no output '" + name + "'", state_->where);
    bound->output_names.push_back(known->second);
  }
  bound->outputs.assign(bound->output_names.size(), nullptr);
  return BoundRun(std::move(bound));
}

Result<std::vector<HostTensor>> Session::run(std::span<const HostTensor> inputs,
                                             std::span<const std::string> wanted) const {
  MK_TRY(auto bound, bind(inputs, wanted));
  const OrtApi& api = state_->api();
  OrtRunOptions* raw = nullptr;
  MK_CHECK(check(api, api.CreateRunOptions(&raw), state_->where));
  const auto options = own(raw, api.ReleaseRunOptions);
  {
    const InterruptWatch watch([&] { (void)check(api, api.RunOptionsSetTerminate(raw), {}); });
    MK_CHECK(unless_interrupted(bound.state_->run(raw)));
  }
  return bound.outputs();
}

BoundRun::BoundRun(std::unique_ptr<State> state) : state_(std::move(state)) {}
BoundRun::BoundRun(BoundRun&&) noexcept = default;
BoundRun& BoundRun::operator=(BoundRun&& other) noexcept {
  if (this != &other) {
    release_outputs();
    state_ = std::move(other.state_);
  }
  return *this;
}
BoundRun::~BoundRun() { release_outputs(); }

Status BoundRun::run() { return state_->run(nullptr); }

void BoundRun::release_outputs() {
  if (!state_) return;
  for (OrtValue*& value : state_->outputs) {
    if (value) state_->session->api().ReleaseValue(value);
    value = nullptr;
  }
}

Result<TensorView> BoundRun::output(std::size_t index) const {
  return ort::view_value(state_->session->api(), state_->output_names[index], state_->outputs[index]);
}

Result<std::vector<HostTensor>> BoundRun::outputs() const {
  std::vector<HostTensor> found;
  found.reserve(state_->outputs.size());
  for (std::size_t i = 0; i < state_->outputs.size(); ++i) {
    MK_TRY(auto tensor, copy_value(state_->session->api(), state_->output_names[i], state_->outputs[i]));
    found.push_back(std::move(tensor));
  }
  return found;
}

}  // namespace mk
