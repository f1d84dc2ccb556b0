#pragma once
// SHA-1 of a file, by OpenSSL: ONNX's external data has it as an optional check, git names contents by it. Not for
// anything that must be secure.

#include <string>

#include "base/file.h"
#include "base/result.h"

namespace mk {

Result<std::string> sha1_hex(const File& file);  // 40 lower-case digits
// The name that git gives a file of this content: of "blob SIZE", a zero byte, and the bytes.
Result<std::string> git_blob_hex(const File& file);

}  // namespace mk
