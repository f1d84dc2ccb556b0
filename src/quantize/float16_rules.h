#pragma once
// Tables of the float16 conversion: what the schemas of operators do not say.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "graph/data_type.h"
#include "graph/ir.h"

namespace mk {

// An operator outside ai.onnx (or older than its schema there) that ONNX Runtime has in float16. Bit i stands for the
// input or output i that stays float32.
struct Float16Contrib {
  std::string_view op_type;
  std::uint32_t float32_inputs = 0;
  std::uint32_t float32_outputs = 0;
};
const Float16Contrib* float16_contrib(std::string_view domain, std::string_view op_type);

// Why a node of ai.onnx stays float32 although its schema admits float16; empty where it need not.
std::string_view float16_refusal(const Node& node);

// Whether the input may be of either type and no output follows it: Cast, Shape, Size ...
bool float16_takes_either(const Node& node, std::size_t input);

// The attribute that names the element type of the output; null where the operator has none.
struct TypeAttribute {
  std::string_view op_type;
  std::string_view attribute;
  DataType otherwise;  // undefined: as the input
};
const TypeAttribute* type_attribute(const Node& node);

inline bool is_onnx_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

// What an integer type, or bool, is for the conversion: its values are exact.
inline bool is_whole_type(DataType type) { return is_integer(type) || type == DataType::boolean; }

}  // namespace mk
