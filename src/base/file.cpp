#include "base/file.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/output_file.h"
#include "base/system.h"
#include "base/system_error.h"

namespace mk {

// Up to this a copy goes through the buffer: one write for many small tensors.
constexpr std::uint64_t small_copy = 64 << 10;
constexpr std::uint64_t copy_block = 256 << 10;

Status OutputFile::begin(std::string_view action) {
  if (error_) return tl::make_unexpected(*error_);
  if (interrupted()) return keep({.code = ErrorCode::interrupted, .message = "interrupted"});
  if (handle_ == -1) return fail(ErrorCode::failed, std::string(action) + ": the file is closed", to_utf8(shown_));
  return {};
}

Status OutputFile::keep(Error error) {
  error_ = std::move(error);
  return tl::make_unexpected(*error_);
}

Status OutputFile::flush() {
  const std::size_t bytes = std::exchange(buffered_, 0);
  if (bytes == 0) return {};
  Status status = write_all(std::span(buffer_.get(), bytes));
  return status ? Status{} : keep(std::move(status).error());
}

Result<std::byte*> OutputFile::room_for(std::size_t bytes) {
  if (buffered_ + bytes > buffer_bytes) MK_CHECK(flush());
  if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::byte[]>(buffer_bytes);
  return buffer_.get() + buffered_;
}

Status OutputFile::append(std::span<const std::byte> bytes) {
  MK_CHECK(begin("cannot write"));
  if (bytes.size() >= buffer_bytes) {
    MK_CHECK(flush());
    if (Status status = write_all(bytes); !status) return keep(std::move(status).error());
  } else if (!bytes.empty()) {
    MK_TRY(std::byte* const room, room_for(bytes.size()));
    std::memcpy(room, bytes.data(), bytes.size());
    buffered_ += bytes.size();
  }
  position_ += bytes.size();
  return {};
}

Status OutputFile::append_from(const File& source, std::uint64_t offset, std::uint64_t length) {
  MK_CHECK(begin("cannot write"));
  if (offset > source.size() || length > source.size() - offset) {
    return keep({.code = ErrorCode::malformed,
                 .message = "the file ends at byte " + std::to_string(source.size()) + ", expected " +
                            std::to_string(length) + " bytes at " + std::to_string(offset),
                 .where = to_utf8(source.path()),
                 .hint = "Is it complete?"});
  }
  if (length <= small_copy) {
    MK_TRY(std::byte* const room, room_for(static_cast<std::size_t>(length)));
    const std::span<std::byte> part(room, static_cast<std::size_t>(length));
    if (Status status = source.read(offset, part); !status) return keep(std::move(status).error());
    buffered_ += part.size();
    position_ += part.size();
    return {};
  }
  MK_CHECK(flush());
  position_ += length;
  if (Status status = copy_range(source, offset, length); !status) return keep(std::move(status).error());
  return length == 0 ? Status{} : copy_blocks(source, offset, length);
}

Status OutputFile::copy_blocks(const File& source, std::uint64_t offset, std::uint64_t length) {
  const std::size_t block = static_cast<std::size_t>(std::min(length, copy_block));
  const auto memory = std::make_unique_for_overwrite<std::byte[]>(block);
  while (length > 0) {
    const std::span<std::byte> part(memory.get(), static_cast<std::size_t>(std::min<std::uint64_t>(length, block)));
    Status status = source.read(offset, part);
    if (status) status = write_all(part);
    if (interrupted()) return keep({.code = ErrorCode::interrupted, .message = "interrupted"});
    if (!status) return keep(std::move(status).error());
    offset += part.size();
    length -= part.size();
  }
  return {};
}

Status OutputFile::sync() {
  MK_CHECK(begin("cannot write to disk"));
  Status status = flush();
  if (status) status = sync_handle();
  return status ? Status{} : keep(std::move(status).error());
}

Status OutputFile::close() {
  if (handle_ == -1) return error_ ? Status(tl::make_unexpected(*error_)) : Status{};
  Status status = error_ ? Status(tl::make_unexpected(*error_)) : flush();
  Status closed = close_handle();
  buffer_.reset();
  if (status) status = std::move(closed);
  return status ? Status{} : keep(std::move(status).error());
}

FileWriter::FileWriter(std::shared_ptr<OutputFile> output) : output_(std::move(output)) {}
FileWriter::FileWriter(FileWriter&& other) noexcept = default;

FileWriter& FileWriter::operator=(FileWriter&& other) noexcept {
  if (this != &other && output_) static_cast<void>(output_->close());
  output_ = std::move(other.output_);
  return *this;
}

FileWriter::~FileWriter() {
  if (output_) static_cast<void>(output_->close());
}

const Path& FileWriter::path() const { return output_->path(); }
std::uint64_t FileWriter::position() const { return output_->position(); }
Status FileWriter::write(std::span<const std::byte> bytes) { return output_->append(bytes); }
Status FileWriter::write(std::string_view text) { return output_->append(std::as_bytes(std::span(text))); }

Status FileWriter::pad_to(std::uint64_t alignment) {
  static constexpr std::array<std::byte, 4096> zeros{};
  std::uint64_t missing = alignment == 0 ? 0 : (alignment - position() % alignment) % alignment;
  while (missing > 0) {
    const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(missing, zeros.size()));
    MK_CHECK(write(std::span(zeros).first(part)));
    missing -= part;
  }
  return {};
}

Status FileWriter::copy_from(const File& source, std::uint64_t offset, std::uint64_t length) {
  return output_->append_from(source, offset, length);
}

Status FileWriter::sync() { return output_->sync(); }
Status FileWriter::close() { return output_->close(); }

Result<std::string> read_text(const Path& path, std::uint64_t limit) {
  MK_TRY(const std::shared_ptr<const File> file, File::open(path));
  if (file->size() > limit) {
    return fail(ErrorCode::malformed,
                "the file has " + std::to_string(file->size()) + " bytes, more than the " + std::to_string(limit) +
                    " expected of a file of its kind",
                to_utf8(path));
  }
  std::string text(static_cast<std::size_t>(file->size()), '\0');
  MK_CHECK(file->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

Result<std::vector<Path>> list_folder(const Path& folder) {
  std::error_code code;
  std::vector<Path> names;
  std::filesystem::directory_iterator entry(folder, code);
  while (!code && entry != std::filesystem::directory_iterator()) {
    names.push_back(entry->path().filename());
    entry.increment(code);
  }
  if (code) return tl::make_unexpected(system_error(code, "cannot list the folder", folder));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace mk
