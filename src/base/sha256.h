#pragma once
// SHA-256 (FIPS 180-4), by OpenSSL.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"

namespace mk {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void update(std::span<const std::byte> bytes);
  std::string hex();  // 64 lower-case digits; ends the computation

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::string_view text);
Result<std::string> sha256_hex(const File& file);

}  // namespace mk
