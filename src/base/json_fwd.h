#pragma once
// The JSON value type, keys in insertion order.

#include <nlohmann/json_fwd.hpp>

namespace mk {
using Json = nlohmann::ordered_json;
}
