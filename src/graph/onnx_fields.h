#pragma once
// Field numbers of the messages in onnx.proto3 that we read and write.

#include <cstdint>

namespace mk::onnx_field {

namespace model {
enum : std::uint32_t {
  ir_version = 1,
  producer_name = 2,
  producer_version = 3,
  domain = 4,
  model_version = 5,
  doc_string = 6,
  graph = 7,
  opset_import = 8,
  metadata = 14,
  functions = 25,
};
}

namespace opset {
enum : std::uint32_t { domain = 1, version = 2 };
}

namespace entry {  // StringStringEntryProto
enum : std::uint32_t { key = 1, value = 2 };
}

namespace graph {
enum : std::uint32_t {
  node = 1,
  name = 2,
  initializer = 5,
  doc_string = 10,
  input = 11,
  output = 12,
  value_info = 13,
  sparse_initializer = 15,
  metadata = 16,
};
}

namespace node {
enum : std::uint32_t {
  input = 1,
  output = 2,
  name = 3,
  op_type = 4,
  attribute = 5,
  doc_string = 6,
  domain = 7,
  overload = 8,
  metadata = 9,
};
}

namespace attribute {
enum : std::uint32_t {
  name = 1,
  f = 2,
  i = 3,
  s = 4,
  t = 5,
  g = 6,
  floats = 7,
  ints = 8,
  strings = 9,
  tensors = 10,
  graphs = 11,
  doc_string = 13,
  tp = 14,
  type_protos = 15,
  type = 20,
  ref_attr_name = 21,
  sparse_tensor = 22,
  sparse_tensors = 23,
};
}

namespace function {
enum : std::uint32_t {
  name = 1,
  input = 4,
  output = 5,
  attribute = 6,
  node = 7,
  doc_string = 8,
  opset_import = 9,
  domain = 10,
  attribute_proto = 11,
  value_info = 12,
  overload = 13,
  metadata = 14,
};
}

namespace value_info {
enum : std::uint32_t { name = 1, type = 2, doc_string = 3, metadata = 4 };
}

namespace type {
enum : std::uint32_t {
  tensor = 1,
  sequence = 4,
  map = 5,
  denotation = 6,
  opaque = 7,
  sparse_tensor = 8,
  optional = 9,
};
}

namespace tensor_type {
enum : std::uint32_t { elem_type = 1, shape = 2 };
}

namespace sequence_type {  // of optional types too
enum : std::uint32_t { elem_type = 1 };
}

namespace map_type {
enum : std::uint32_t { key_type = 1, value_type = 2 };
}

namespace shape {
enum : std::uint32_t { dim = 1 };
}

namespace dimension {
enum : std::uint32_t { value = 1, symbol = 2, denotation = 3 };
}

namespace tensor {
enum : std::uint32_t {
  dims = 1,
  data_type = 2,
  segment = 3,
  float_data = 4,
  int32_data = 5,
  string_data = 6,
  int64_data = 7,
  name = 8,
  raw_data = 9,
  double_data = 10,
  uint64_data = 11,
  doc_string = 12,
  external_data = 13,
  data_location = 14,
  metadata = 16,
};
}

namespace sparse_tensor {
enum : std::uint32_t { values = 1, indices = 2, dims = 3 };
}

}  // namespace mk::onnx_field
