#include "graph/external_files.h"

#include <algorithm>

namespace mk {
namespace {

constexpr std::size_t most_open_files = 100;

// A range of a file that is opened for each read.
class ReopenedBytes final : public ByteSource {
 public:
  ReopenedBytes(Path path, std::uint64_t offset, std::uint64_t length)
      : path_(std::move(path)), offset_(offset), length_(length) {}
  std::uint64_t size() const override { return length_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    MK_TRY(const auto file, File::open(path_));
    return file->read(offset_ + offset, out);
  }
  std::optional<FileRange> file_range() const override {
    auto file = File::open(path_);
    if (!file) return std::nullopt;
    return FileRange{std::move(*file), offset_, length_};
  }

 private:
  Path path_;
  std::uint64_t offset_;
  std::uint64_t length_;
};

}  // namespace

Result<const ExternalFiles::Entry*> ExternalFiles::entry(const std::string& location) {
  if (const auto found = entries_.find(location); found != entries_.end()) return &found->second;
  if (std::find(locations.begin(), locations.end(), location) == locations.end()) locations.push_back(location);

  // Written on Windows, a location may have backslashes.
  std::string portable = location;
  std::replace(portable.begin(), portable.end(), '\\', '/');
  const bool has_drive = portable.size() > 1 && portable[1] == ':';
  if (has_drive || !stays_inside(Path(portable))) {
    return fail(ErrorCode::malformed, "the external data location \"" + location + "\" leaves the model's folder", {},
                "Locations are relative and without \"..\": save the model again with its data beside it");
  }
  Entry entry{folder_ / Path(location), 0, nullptr};
  auto file = File::open(entry.path);
  if (!file && portable != location) {
    entry.path = folder_ / Path(portable);
    file = File::open(entry.path);
  }
  if (!file) return tl::make_unexpected(std::move(file).error());
  entry.size = (*file)->size();
  if (entries_.size() < most_open_files) entry.file = std::move(*file);
  return &entries_.emplace(location, std::move(entry)).first->second;
}

Result<Bytes> ExternalFiles::range(const std::string& location, std::uint64_t offset, std::uint64_t length) {
  MK_TRY(const Entry* found, entry(location));
  if (offset > found->size || length > found->size - offset) {
    return fail(ErrorCode::malformed,
                "external data of " + std::to_string(length) + " bytes at " + std::to_string(offset) +
                    " is not in a file of " + std::to_string(found->size),
                to_utf8(found->path), "Is the data file complete, and of this model?");
  }
  if (found->file) return file_bytes({found->file, offset, length});
  return std::make_shared<ReopenedBytes>(found->path, offset, length);
}

}  // namespace mk
