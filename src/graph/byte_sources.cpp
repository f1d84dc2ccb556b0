// The plain byte sources: a range of a file, owned bytes, and the transforms that only move or defer bytes.

#include <algorithm>
#include <cassert>
#include <cstring>
#include <mutex>
#include <utility>

#include "graph/tensor.h"

namespace mk {
namespace {

class FileBytes final : public ByteSource {
 public:
  explicit FileBytes(FileRange range) : range_(std::move(range)) {}
  std::uint64_t size() const override { return range_.length; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    return range_.file->read(range_.offset + offset, out);
  }
  std::optional<FileRange> file_range() const override { return range_; }

 private:
  FileRange range_;
};

class OwnedBytes final : public ByteSource {
 public:
  explicit OwnedBytes(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    assert(offset + out.size() <= bytes_.size());
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }
  std::optional<std::span<const std::byte>> in_memory() const override { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class ConcatenatedBytes final : public ByteSource {
 public:
  explicit ConcatenatedBytes(std::vector<Bytes> parts) : parts_(std::move(parts)) {
    starts_.reserve(parts_.size());
    for (const Bytes& part : parts_) {
      starts_.push_back(size_);
      size_ += part->size();
    }
  }
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
    for (auto i = static_cast<std::size_t>(after - starts_.begin()) - 1; !out.empty(); ++i) {
      const std::uint64_t inside = offset - starts_[i];
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(parts_[i]->size() - inside, out.size()));
      MK_CHECK(parts_[i]->read(inside, out.first(length)));
      out = out.subspan(length);
      offset += length;
    }
    return {};
  }

 private:
  std::vector<Bytes> parts_;
  std::vector<std::uint64_t> starts_;
  std::uint64_t size_ = 0;
};

class SideBySideBytes final : public ByteSource {
 public:
  SideBySideBytes(std::vector<Bytes> matrices, std::vector<std::uint64_t> row_bytes)
      : matrices_(std::move(matrices)), row_bytes_(std::move(row_bytes)) {
    for (const Bytes& matrix : matrices_) size_ += matrix->size();
    for (const std::uint64_t bytes : row_bytes_) line_ += bytes;
  }
  std::uint64_t size() const override { return size_; }
  // Rows of each matrix are read in bands and copied to their places.
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t end = offset + out.size();
    const std::uint64_t band = std::max<std::uint64_t>(1, band_bytes / line_);
    std::vector<std::byte> rows;
    for (std::uint64_t first = offset / line_; first * line_ < end; first += band) {
      const std::uint64_t count = std::min(band, (end + line_ - 1) / line_ - first);
      std::uint64_t column = 0;
      for (std::size_t i = 0; i < matrices_.size(); ++i) {
        const std::uint64_t width = row_bytes_[i];
        rows.resize(static_cast<std::size_t>(count * width));
        MK_CHECK(matrices_[i]->read(first * width, rows));
        for (std::uint64_t row = 0; row < count; ++row) {
          const std::uint64_t place = (first + row) * line_ + column;
          const std::uint64_t from = std::max(place, offset), to = std::min(place + width, end);
          if (from >= to) continue;
          std::memcpy(out.data() + (from - offset), rows.data() + row * width + (from - place),
                      static_cast<std::size_t>(to - from));
        }
        column += width;
      }
    }
    return {};
  }

 private:
  static constexpr std::uint64_t band_bytes = 1u << 20;
  std::vector<Bytes> matrices_;
  std::vector<std::uint64_t> row_bytes_;
  std::uint64_t size_ = 0;
  std::uint64_t line_ = 0;
};

class SlicedBytes final : public ByteSource {
 public:
  SlicedBytes(Bytes source, std::uint64_t offset, std::uint64_t length)
      : source_(std::move(source)), offset_(offset), length_(length) {}
  std::uint64_t size() const override { return length_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    return source_->read(offset_ + offset, out);
  }
  std::optional<std::span<const std::byte>> in_memory() const override {
    const auto whole = source_->in_memory();
    if (!whole) return std::nullopt;
    return whole->subspan(static_cast<std::size_t>(offset_), static_cast<std::size_t>(length_));
  }

 private:
  Bytes source_;
  std::uint64_t offset_;
  std::uint64_t length_;
};

class ComputedBytes final : public ByteSource {
 public:
  ComputedBytes(std::uint64_t size, std::function<Status(std::span<std::byte>)> fill)
      : size_(size), fill_(std::move(fill)) {}
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::scoped_lock lock(mutex_);
    if (offset == 0 && out.size() == size_) return fill_(out);
    if (bytes_.empty()) {
      bytes_.resize(static_cast<std::size_t>(size_));
      if (Status filled = fill_(bytes_); !filled) {
        bytes_ = {};
        return filled;
      }
    }
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    if (offset + out.size() == size_) bytes_ = {};
    return {};
  }

 private:
  std::uint64_t size_;
  std::function<Status(std::span<std::byte>)> fill_;
  mutable std::mutex mutex_;
  mutable std::vector<std::byte> bytes_;
};

}  // namespace

Bytes file_bytes(FileRange range) { return std::make_shared<FileBytes>(std::move(range)); }

Bytes owned_bytes(std::vector<std::byte> bytes) { return std::make_shared<OwnedBytes>(std::move(bytes)); }

Bytes concatenated(std::vector<Bytes> parts) {
  std::erase_if(parts, [](const Bytes& part) { return part->size() == 0; });
  if (parts.empty()) return owned_bytes({});
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_shared<ConcatenatedBytes>(std::move(parts));
}

Bytes side_by_side(std::vector<Bytes> matrices, std::vector<std::uint64_t> row_bytes) {
  assert(matrices.size() == row_bytes.size());
  std::uint64_t size = 0;
  for (const Bytes& matrix : matrices) size += matrix->size();
  if (size == 0) return owned_bytes({});
  return std::make_shared<SideBySideBytes>(std::move(matrices), std::move(row_bytes));
}

Bytes sliced(Bytes source, std::uint64_t offset, std::uint64_t length) {
  assert(offset <= source->size() && length <= source->size() - offset);
  if (auto range = source->file_range()) return file_bytes({range->file, range->offset + offset, length});
  return std::make_shared<SlicedBytes>(std::move(source), offset, length);
}

Bytes computed(std::uint64_t size, std::function<Status(std::span<std::byte>)> fill) {
  return std::make_shared<ComputedBytes>(size, std::move(fill));
}

Result<std::vector<std::byte>> read_all(const ByteSource& source) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(source.size()));
  MK_CHECK(source.read(0, bytes));
  return bytes;
}

}  // namespace mk
