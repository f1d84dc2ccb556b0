#pragma once
// The equation of Einsum: terms of letters and at most one ellipsis each, "bij, bjk -> bik". Spaces mean nothing, but
// the onnx library's shape function does not end on them.

#include <optional>
#include <string>
#include <string_view>

namespace mk {

// Without spaces; nothing where it is not an equation.
std::optional<std::string> plain_einsum_equation(std::string_view text);

}  // namespace mk
