// TypeProto and ValueInfoProto.

#include "graph/onnx_fields.h"
#include "graph/onnx_reader_parts.h"

namespace mk {
namespace {

Dim read_dim(WireReader& in, const WireField& field) {
  namespace f = onnx_field::dimension;
  Dim dim;
  in.message(field, [&](const WireField& part) {
    switch (part.number) {
      case f::value:
        // A negative number is how some tools write a dimension that is not known.
        dim.value = std::max<std::int64_t>(in.integer(part), -1);
        dim.symbol.clear();
        return;
      case f::symbol:
        dim.symbol = in.text(part);
        dim.value = -1;
        return;
      case f::denotation:
        dim.denotation = in.text(part);
        return;
      default:
        return in.drop(part, "a dimension");
    }
  });
  return dim;
}

Shape read_shape(WireReader& in, const WireField& field) {
  Shape shape;
  in.message(field, [&](const WireField& part) {
    if (part.number == onnx_field::shape::dim) {
      shape.push_back(read_dim(in, part));
    } else {
      in.drop(part, "a shape");
    }
  });
  return shape;
}

// What is left over of the message in field `number`: a second such field, which a parser merges into the first.
void keep_remainder(std::uint32_t number, const std::string& unknown, std::string& into) {
  if (!unknown.empty()) append_bytes(into, number, unknown);
}

void read_tensor_type(WireReader& in, const WireField& field, Type& type) {
  namespace f = onnx_field::tensor_type;
  std::string unknown;
  in.message(field, [&](const WireField& part) {
    switch (part.number) {
      case f::elem_type:
        type.element = static_cast<DataType>(in.varint(part));
        return;
      case f::shape:
        type.shape = read_shape(in, part);
        return;
      default:
        return in.keep(part, unknown);
    }
  });
  keep_remainder(field.number, unknown, type.raw);
}

void read_inner_type(WireReader& in, const WireField& field, Type& type) {
  std::string unknown;
  in.message(field, [&](const WireField& part) {
    if (part.number == onnx_field::sequence_type::elem_type) {
      type.inner = std::make_shared<const Type>(read_type(in, part));
    } else {
      in.keep(part, unknown);
    }
  });
  keep_remainder(field.number, unknown, type.raw);
}

void read_map_type(WireReader& in, const WireField& field, Type& type) {
  namespace f = onnx_field::map_type;
  std::string unknown;
  in.message(field, [&](const WireField& part) {
    switch (part.number) {
      case f::key_type:
        type.element = static_cast<DataType>(in.varint(part));
        return;
      case f::value_type:
        type.inner = std::make_shared<const Type>(read_type(in, part));
        return;
      default:
        return in.keep(part, unknown);
    }
  });
  keep_remainder(field.number, unknown, type.raw);
}

}  // namespace

Type read_type(WireReader& in, const WireField& field) {
  namespace f = onnx_field::type;
  Type type;
  // The alternatives exclude each other: the last one wins, and the same one again is merged.
  const auto become = [&](Type::Kind kind) {
    if (type.kind == kind) return;
    Type fresh;
    fresh.kind = kind;
    fresh.denotation = std::move(type.denotation);
    type = std::move(fresh);
  };
  in.message(field, [&](const WireField& part) {
    switch (part.number) {
      case f::tensor:
        become(Type::Kind::tensor);
        return read_tensor_type(in, part, type);
      case f::sparse_tensor:
        become(Type::Kind::sparse_tensor);
        return read_tensor_type(in, part, type);
      case f::sequence:
        become(Type::Kind::sequence);
        return read_inner_type(in, part, type);
      case f::optional:
        become(Type::Kind::optional);
        return read_inner_type(in, part, type);
      case f::map:
        become(Type::Kind::map);
        return read_map_type(in, part, type);
      case f::opaque:
        become(Type::Kind::opaque);
        return in.keep(part, type.raw);
      case f::denotation:
        type.denotation = in.text(part);
        return;
      default:
        return in.keep(part, type.raw);
    }
  });
  return type;
}

ValueDraft read_value(WireReader& in, const WireField& field) {
  namespace f = onnx_field::value_info;
  ValueDraft value;
  in.message(field, [&](const WireField& part) {
    switch (part.number) {
      case f::name:
        value.name = in.text(part);
        return;
      case f::type:
        value.type = read_type(in, part);
        return;
      case f::doc_string:
        value.doc_string = in.text(part);
        return;
      case f::metadata:
        return read_entry(in, part, value.metadata);
      default:
        return in.keep(part, value.unknown_fields);
    }
  });
  return value;
}

}  // namespace mk
