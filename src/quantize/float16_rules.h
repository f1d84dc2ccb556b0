#pragma once
// Tables of the float16 conversion: what the schemas of operators do not say.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "graph/data_type.h"
#include "graph/ir.h"

namespace mk {

// An operator of ONNX Runtime's, of which the onnx library has no schema. Bit i stands for input or output i.
struct Float16Contrib {
  std::string_view op_type;
  std::size_t typed_by = 0;           // the input whose type all outputs have but these:
  std::uint32_t float32_inputs = 0;   // stay float32
  std::uint32_t float32_outputs = 0;  // are float32 whatever the inputs are
  std::uint32_t other_outputs = 0;    // are not of a float type
  bool stays = false;                 // it has no float16 form
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
