#include "base/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace mk {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() { EVP_DigestInit_ex(context, EVP_sha256(), nullptr); }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {}
Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) { EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()); }

std::string Sha256::hex() {
  constexpr std::string_view digits = "0123456789abcdef";
  std::array<unsigned char, 32> digest{};
  EVP_DigestFinal_ex(state_->context, digest.data(), nullptr);
  std::string text;
  for (const unsigned char byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view text) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(text)));
  return hash.hex();
}

Result<std::string> sha256_hex(const File& file) {
  constexpr std::uint64_t block_bytes = 1 << 20;
  const std::size_t room = static_cast<std::size_t>(std::min(block_bytes, file.size()));
  const auto block = std::make_unique_for_overwrite<std::byte[]>(room);
  Sha256 hash;
  for (std::uint64_t at = 0; at < file.size();) {
    const std::span<std::byte> part(block.get(),
                                    static_cast<std::size_t>(std::min<std::uint64_t>(room, file.size() - at)));
    MK_CHECK(file.read(at, part));
    hash.update(part);
    at += part.size();
  }
  return hash.hex();
}

}  // namespace mk
