#pragma once
// The lazy float16 form of float32 bytes, clipped, with a count of what was lost.

#include <cstdint>
#include <memory>
#include <mutex>

#include "graph/float16_kernels.h"
#include "graph/tensor.h"

namespace mk {

// Thread-safe. Losses are counted by the way where the bytes are read in order, from the start.
class Float16Bytes final : public ByteSource {
 public:
  Float16Bytes(Bytes float32, bool keep_infinity);
  std::uint64_t size() const override { return source_->size() / 2; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override;
  std::optional<std::span<const std::byte>> in_memory() const override;

  // Reads what was not read yet.
  Result<Float16Losses> losses() const;

 private:
  Result<Float16Losses> convert(std::uint64_t first, std::uint64_t elements, std::byte* to,
                                std::unique_ptr<std::byte[]>& buffer) const;
  void count(std::uint64_t first, std::uint64_t elements, const Float16Losses& here) const;

  Bytes source_;
  bool keep_infinity_;
  std::vector<std::byte> small_;  // all of them, where they are few and at hand
  mutable std::mutex mutex_;
  mutable std::uint64_t counted_ = 0;  // elements, from the start
  mutable Float16Losses losses_;
};

}  // namespace mk
