#pragma once
// SHA-1 of a file, by OpenSSL: ONNX's external data has it as an optional check. Not for anything that must be secure.

#include <string>

#include "base/file.h"
#include "base/result.h"

namespace mk {

Result<std::string> sha1_hex(const File& file);  // 40 lower-case digits

}  // namespace mk
