#include "base/sha1.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>

namespace mk {
namespace {

Result<std::string> hash_of(std::string_view prefix, const File& file) {
  constexpr std::uint64_t block_bytes = 1 << 20;
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  EVP_DigestInit_ex(context.get(), EVP_sha1(), nullptr);
  EVP_DigestUpdate(context.get(), prefix.data(), prefix.size());
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

}  // namespace

Result<std::string> sha1_hex(const File& file) { return hash_of({}, file); }

Result<std::string> git_blob_hex(const File& file) {
  std::string prefix = fmt::format("blob {}", file.size());
  prefix += '\0';
  return hash_of(prefix, file);
}

}  // namespace mk
