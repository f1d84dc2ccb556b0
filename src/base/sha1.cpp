#include "base/sha1.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>

namespace mk {

Result<std::string> sha1_hex(const File& file) {
  constexpr std::uint64_t block_bytes = 1 << 20;
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr);
  const auto room = static_cast<std::size_t>(std::min(block_bytes, file.size()));
  const auto block = std::make_unique_for_overwrite<std::byte[]>(room);
  for (std::uint64_t at = 0; at < file.size();) {
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(room, file.size() - at));
    MK_CHECK(file.read(at, {block.get(), length}));
    EVP_DigestUpdate(context.get(), block.get(), length);
    at += length;
  }
  std::array<unsigned char, 20> digest{};
  EVP_DigestFinal_ex(context.get(), digest.data(), nullptr);
  std::string text;
  for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace mk
