#pragma once
// A build config read strictly (--strict): what is otherwise ignored with a warning is an error.

#include "base/json_fwd.h"
#include "base/result.h"

namespace mk {

class JsonView;

// usage for the first key that no field has, pointing to it and naming the nearest known one, and how many more there
// are.
Status strict_build_config(const JsonView& document);

}  // namespace mk
