#pragma once
// Activation functions by the names that configurations give them (transformers' ACT2FN).

#include <string_view>

#include "nn/builder.h"

namespace mk::nn {

// As the child module `name` of `parent`, with the class that transformers gives it (a torch.nn layer for relu, tanh
// and the like). malformed for an unknown kind, naming those there are.
Value activation(const Scope& parent, std::string_view name, std::string_view kind, Value x);
// The function alone, as part of module `s`.
Value activate(const Scope& s, std::string_view kind, Value x);

}  // namespace mk::nn
