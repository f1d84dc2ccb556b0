#include "winml/command.h"

#include "base/json.h"

namespace mk::cli {

std::string json_text(const Json& json) { return dump_json(json) + "\n"; }

}  // namespace mk::cli
