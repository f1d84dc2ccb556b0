#include "graph/source_copy.h"

#include <algorithm>

namespace mk {
namespace {

// A transposed matrix is made fastest whole; most fit.
constexpr std::uint64_t largest_block = 24u << 20;

}  // namespace

Status SourceCopier::copy(const ByteSource& source, FileWriter& file) {
  if (const auto range = source.file_range()) return file.copy_from(*range->file, range->offset, range->length);
  if (const auto memory = source.in_memory()) return file.write(*memory);
  const auto block = static_cast<std::size_t>(std::min(source.size(), largest_block));
  if (capacity_ < block) {
    buffer_.reset();
    buffer_ = std::make_unique_for_overwrite<std::byte[]>(block);
    capacity_ = block;
  }
  for (std::uint64_t at = 0; at < source.size(); at += block) {
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(block, source.size() - at));
    const std::span<std::byte> part(buffer_.get(), length);
    MK_CHECK(source.read(at, part));
    MK_CHECK(file.write(part));
  }
  return {};
}

}  // namespace mk
