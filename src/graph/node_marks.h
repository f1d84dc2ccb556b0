#pragma once
// Metadata of nodes that several rooms read.

#include <string_view>

namespace mk {

// The module that a node comes from: "/BertModel/BertEncoder".
inline constexpr std::string_view hierarchy_tag_key = "winml.hierarchy.tag";
// Of a node whose values are scaled against those of the model that it was quantized from (its readers take the scale
// back), so that the two are not to be compared.
inline constexpr std::string_view smoothed_key = "winml.quantize.smoothed";

}  // namespace mk
