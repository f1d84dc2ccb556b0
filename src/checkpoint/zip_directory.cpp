#include "checkpoint/zip_directory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace mk {
namespace {

constexpr std::uint32_t local_header_mark = 0x04034b50;
constexpr std::uint32_t entry_mark = 0x02014b50;
constexpr std::uint32_t end_mark = 0x06054b50;
constexpr std::uint32_t end64_mark = 0x06064b50;
constexpr std::uint32_t end64_locator_mark = 0x07064b50;
constexpr std::uint64_t local_header_size = 30, entry_size = 46, end_size = 22, end64_size = 56, locator_size = 20;
constexpr std::uint64_t max_comment = 0xffff;
constexpr std::uint16_t zip64_extra = 1;
// Of the directory alone: a million entries with long names.
constexpr std::uint64_t max_directory_bytes = 256u << 20;

std::uint64_t little_endian(std::span<const std::byte> bytes, std::uint64_t offset, int width) {
  std::uint64_t value = 0;
  for (int i = width; i-- > 0;)
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[offset + static_cast<std::uint64_t>(i)]);
  return value;
}
std::uint16_t u16(std::span<const std::byte> b, std::uint64_t at) {
  return static_cast<std::uint16_t>(little_endian(b, at, 2));
}
std::uint32_t u32(std::span<const std::byte> b, std::uint64_t at) {
  return static_cast<std::uint32_t>(little_endian(b, at, 4));
}
std::uint64_t u64(std::span<const std::byte> b, std::uint64_t at) { return little_endian(b, at, 8); }

struct Directory {
  std::uint64_t offset = 0, size = 0, count = 0;
};

auto malformed(const File& file, std::string message) {
  return fail(ErrorCode::malformed, std::move(message), to_utf8(file.path()));
}

Result<Directory> locate(const File& file) {
  const std::uint64_t tail_size = std::min(file.size(), end_size + max_comment + locator_size);
  const std::uint64_t tail_begin = file.size() - tail_size;
  std::vector<std::byte> tail(tail_size);
  MK_CHECK(file.read(tail_begin, tail));

  for (std::uint64_t at = tail_size >= end_size ? tail_size - end_size + 1 : 0; at-- > 0;) {
    if (u32(tail, at) != end_mark || at + end_size + u16(tail, at + 20) != tail_size) continue;
    Directory directory{u32(tail, at + 16), u32(tail, at + 12), u16(tail, at + 10)};
    const bool is_zip64 = at >= locator_size && u32(tail, at - locator_size) == end64_locator_mark;
    if (!is_zip64) return directory;
    const std::uint64_t end64 = u64(tail, at - locator_size + 8);
    if (file.size() < end64_size || end64 > file.size() - end64_size)
      return malformed(file, fmt::format("the zip64 directory's end is said to be at byte {}, beyond the file", end64));
    std::array<std::byte, end64_size> record;
    MK_CHECK(file.read(end64, record));
    if (u32(record, 0) != end64_mark) return malformed(file, fmt::format("no zip64 directory end at byte {}", end64));
    return Directory{u64(record, 48), u64(record, 40), u64(record, 32)};
  }
  return fail(ErrorCode::malformed, "the file begins as a zip file but its directory is missing: it is cut off",
              to_utf8(file.path()), "Download or copy it again");
}

// Sizes and offset that do not fit 32 bits stand in the extra field, in this order, each only where it is needed.
bool widen(std::span<const std::byte> extra, ZipEntry& entry) {
  std::array<std::uint64_t*, 3> fields{&entry.size, &entry.stored_size, &entry.header};
  std::uint64_t at = 0;
  while (at + 4 <= extra.size()) {
    const std::uint16_t id = u16(extra, at), size = u16(extra, at + 2);
    at += 4;
    if (size > extra.size() - at) return false;
    if (id == zip64_extra) {
      std::uint64_t position = at;
      for (auto* field : fields) {
        if (*field != 0xffffffff) continue;
        if (position + 8 > at + size) return false;
        *field = u64(extra, position);
        position += 8;
      }
      return true;
    }
    at += size;
  }
  return std::none_of(fields.begin(), fields.end(), [](const auto* field) { return *field == 0xffffffff; });
}

}  // namespace

Result<ZipDirectory> ZipDirectory::read(std::shared_ptr<const File> file) {
  MK_TRY(const Directory place, locate(*file));
  if (place.size > max_directory_bytes || place.offset > file->size() || place.size > file->size() - place.offset)
    return malformed(*file,
                     fmt::format("the zip directory is said to have {} bytes at byte {}", place.size, place.offset));
  std::vector<std::byte> bytes(place.size);
  MK_CHECK(file->read(place.offset, bytes));

  ZipDirectory directory;
  std::uint64_t at = 0;
  for (std::uint64_t i = 0; i < place.count; ++i) {
    const std::uint64_t offset = place.offset + at;
    if (bytes.size() - at < entry_size || u32(bytes, at) != entry_mark)
      return malformed(*file, fmt::format("zip entry {} of {} is missing at byte {}", i + 1, place.count, offset));
    const auto view = std::span<const std::byte>(bytes).subspan(at);
    const std::uint64_t name_size = u16(view, 28), extra_size = u16(view, 30), comment_size = u16(view, 32);
    if (view.size() - entry_size < name_size + extra_size + comment_size)
      return malformed(*file, fmt::format("zip entry {} at byte {} reaches beyond the directory", i + 1, offset));
    ZipEntry entry;
    entry.encrypted = (u16(view, 8) & 1) != 0;
    entry.method = u16(view, 10);
    entry.stored_size = u32(view, 20);
    entry.size = u32(view, 24);
    entry.header = u32(view, 42);
    if (!widen(view.subspan(entry_size + name_size, extra_size), entry))
      return malformed(*file, fmt::format("zip entry {} at byte {} has a broken zip64 field", i + 1, offset));
    const auto* name = reinterpret_cast<const char*>(view.data() + entry_size);
    const auto [position, is_new] = directory.entries_.emplace(std::string(name, name_size), entry);
    if (!is_new) return malformed(*file, fmt::format("zip entry '{}' is there twice", position->first));
    at += entry_size + name_size + extra_size + comment_size;
  }
  directory.file_ = std::move(file);
  return directory;
}

const ZipEntry* ZipDirectory::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

Result<FileRange> ZipDirectory::range(std::string_view name) const {
  const ZipEntry* entry = find(name);
  if (!entry) return malformed(*file_, fmt::format("the zip file has no entry '{}'", name));
  if (entry->method != 0 || entry->encrypted)
    return fail(ErrorCode::unsupported,
                fmt::format("zip entry '{}' is {}", name, entry->encrypted ? "encrypted" : "compressed"),
                to_utf8(file_->path()), "torch.save stores entries as they are: unpack and save the checkpoint again");
  const std::uint64_t size = file_->size();
  if (entry->header > size || size - entry->header < local_header_size)
    return malformed(*file_,
                     fmt::format("zip entry '{}' is said to begin at byte {}, beyond the file", name, entry->header));
  std::array<std::byte, local_header_size> header;
  MK_CHECK(file_->read(entry->header, header));
  if (u32(header, 0) != local_header_mark)
    return malformed(*file_, fmt::format("zip entry '{}' has no header at byte {}", name, entry->header));
  const std::uint64_t offset = entry->header + local_header_size + u16(header, 26) + u16(header, 28);
  if (entry->size != entry->stored_size || offset > size || entry->size > size - offset)
    return malformed(*file_, fmt::format("zip entry '{}' of {} bytes at byte {} reaches beyond the file", name,
                                         entry->size, offset));
  return FileRange{file_, offset, entry->size};
}

}  // namespace mk
