#pragma once
// Conversions between the IR and the messages of the onnx library, for what shape functions ask: types, attributes,
// small tensors. Inline, and for one source only: the generated protobuf header behind it takes seconds to compile.

#include <onnx/onnx_pb.h>

#include <string>
#include <utility>

#include "graph/ir.h"
#include "graph/known_value.h"

namespace mk {

// Tensors with more bytes than this reach the library without data.
constexpr std::uint64_t max_small_tensor = 1024;

inline void to_proto(const Shape& shape, onnx::TensorShapeProto& out) {
  for (const Dim& dim : shape) {
    auto* to = out.add_dim();
    if (dim.is_known()) to->set_dim_value(dim.value);
    if (dim.is_symbolic()) to->set_dim_param(dim.symbol);
    if (!dim.denotation.empty()) to->set_denotation(dim.denotation);
  }
}

// False where the type is not known.
inline bool to_proto(const Type& type, onnx::TypeProto& out) {
  const auto inner = [&](onnx::TypeProto* to) { return type.inner && to_proto(*type.inner, *to); };
  const auto tensor = [&](auto* to) {
    to->set_elem_type(static_cast<std::int32_t>(type.element));
    if (type.shape) to_proto(*type.shape, *to->mutable_shape());
    return true;
  };
  switch (type.kind) {
    case Type::Kind::none:
      return false;
    case Type::Kind::tensor:
      return tensor(out.mutable_tensor_type());
    case Type::Kind::sparse_tensor:
      return tensor(out.mutable_sparse_tensor_type());
    case Type::Kind::sequence:
      return inner(out.mutable_sequence_type()->mutable_elem_type());
    case Type::Kind::optional:
      return inner(out.mutable_optional_type()->mutable_elem_type());
    case Type::Kind::map:
      out.mutable_map_type()->set_key_type(static_cast<std::int32_t>(type.element));
      return inner(out.mutable_map_type()->mutable_value_type());
    case Type::Kind::opaque:
      return out.MergeFromString(type.raw) && out.has_opaque_type();
  }
  return false;
}

inline Dim from_proto(const onnx::TensorShapeProto::Dimension& dim) {
  Dim result;
  if (dim.has_dim_value() && dim.dim_value() >= 0) result.value = dim.dim_value();
  if (dim.has_dim_param()) result.symbol = dim.dim_param();
  if (dim.has_denotation()) result.denotation = dim.denotation();
  return result;
}

inline Type from_proto(const onnx::TypeProto& proto) {
  Type type;
  const auto tensor = [&](Type::Kind kind, const auto& from) {
    type.kind = kind;
    type.element = static_cast<DataType>(from.elem_type());
    if (!from.has_shape()) return;
    type.shape.emplace();
    for (const auto& dim : from.shape().dim()) type.shape->push_back(from_proto(dim));
  };
  const auto container = [&](Type::Kind kind, const onnx::TypeProto& inner) {
    Type content = from_proto(inner);
    type.kind = kind;
    if (content.kind != Type::Kind::none) type.inner = std::make_shared<const Type>(std::move(content));
  };
  switch (proto.value_case()) {
    case onnx::TypeProto::kTensorType:
      tensor(Type::Kind::tensor, proto.tensor_type());
      break;
    case onnx::TypeProto::kSparseTensorType:
      tensor(Type::Kind::sparse_tensor, proto.sparse_tensor_type());
      break;
    case onnx::TypeProto::kSequenceType:
      container(Type::Kind::sequence, proto.sequence_type().elem_type());
      break;
    case onnx::TypeProto::kOptionalType:
      container(Type::Kind::optional, proto.optional_type().elem_type());
      break;
    case onnx::TypeProto::kMapType:
      container(Type::Kind::map, proto.map_type().value_type());
      type.element = static_cast<DataType>(proto.map_type().key_type());
      break;
    case onnx::TypeProto::kOpaqueType:
      type.kind = Type::Kind::opaque;
      proto.SerializeToString(&type.raw);
      break;
    case onnx::TypeProto::VALUE_NOT_SET:
      break;
  }
  return type;
}

// Dims and type, and the data of a small tensor.
inline void to_proto(const Tensor& tensor, onnx::TensorProto& out) {
  out.set_data_type(static_cast<std::int32_t>(tensor.type));
  for (const std::int64_t dim : tensor.dims) out.add_dims(dim);
  for (const std::string& text : tensor.strings) out.add_string_data(text);
  if (!tensor.data || tensor.data->size() > max_small_tensor) return;
  if (const auto bytes = read_all(*tensor.data)) {
    out.set_raw_data(bytes->data(), bytes->size());
  }
}

// A constant in its own type, as far as shape functions read types.
inline bool to_proto(const KnownValue& value, onnx::TensorProto& out) {
  out.set_data_type(static_cast<std::int32_t>(value.type));
  for (const std::int64_t dim : value.dims) out.add_dims(dim);
  for (const std::int64_t element : value.constants()) {
    switch (value.type) {
      case DataType::int64:
        out.add_int64_data(element);
        break;
      case DataType::int32:
      case DataType::boolean:
        out.add_int32_data(static_cast<std::int32_t>(element));
        break;
      case DataType::float32:
        out.add_float_data(static_cast<float>(element));
        break;
      case DataType::float64:
        out.add_double_data(static_cast<double>(element));
        break;
      default:
        return false;
    }
  }
  return true;
}

inline void to_proto(const KnownValue& value, onnx::TensorShapeProto& out) {
  for (const auto& element : value.elements) {
    auto* dim = out.add_dim();
    if (element && element->is_known()) dim->set_dim_value(element->value());
    if (element && !element->is_known()) dim->set_dim_param(element->to_string());
  }
}

inline KnownValue::Element element_from_proto(const onnx::TensorShapeProto::Dimension& dim) {
  if (dim.has_dim_value()) return SymbolicInt(dim.dim_value());
  if (dim.has_dim_param()) return SymbolicInt::of_text(dim.dim_param());
  return std::nullopt;
}

// Inputs and outputs only: the library gets at what is inside by its GraphInferencer.
inline void to_proto(const Graph& graph, onnx::GraphProto& out) {
  const auto add = [](const Value& value, onnx::ValueInfoProto* to) {
    to->set_name(value.name());
    if (value.type.kind != Type::Kind::none) to_proto(value.type, *to->mutable_type());
  };
  out.set_name(graph.name);
  for (const Value* input : graph.inputs()) add(*input, out.add_input());
  for (const Value* output : graph.outputs()) add(*output, out.add_output());
}

inline void to_proto(const Attribute& attribute, onnx::AttributeProto& out) {
  struct Fill {
    onnx::AttributeProto& to;
    void operator()(std::monostate) const {}
    void operator()(float value) const { to.set_f(value); }
    void operator()(std::int64_t value) const { to.set_i(value); }
    void operator()(const std::string& value) const { to.set_s(value); }
    void operator()(const std::shared_ptr<const Tensor>& value) const {
      if (value) to_proto(*value, *to.mutable_t());
    }
    void operator()(const std::unique_ptr<Graph>& value) const {
      if (value) to_proto(*value, *to.mutable_g());
    }
    void operator()(const std::vector<float>& values) const { to.mutable_floats()->Add(values.begin(), values.end()); }
    void operator()(const std::vector<std::int64_t>& values) const {
      to.mutable_ints()->Add(values.begin(), values.end());
    }
    void operator()(const std::vector<std::string>& values) const {
      for (const std::string& value : values) to.add_strings(value);
    }
    void operator()(const std::vector<std::shared_ptr<const Tensor>>& values) const {
      for (const auto& value : values) {
        if (value) to_proto(*value, *to.add_tensors());
      }
    }
    void operator()(const std::vector<std::unique_ptr<Graph>>& values) const {
      for (const auto& value : values) to_proto(*value, *to.add_graphs());
    }
  };
  std::visit(Fill{out}, attribute.value);
  if (!attribute.raw.empty()) out.MergeFromString(attribute.raw);  // sparse tensors and types
  out.set_name(attribute.name);
  out.set_type(static_cast<onnx::AttributeProto::AttributeType>(attribute.kind));
}

}  // namespace mk
