// transposed(): the source is read in bands of rows that stay in the processor's cache, and each band is scattered into
// the columns of what was asked for.

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "graph/tensor.h"

namespace mk {
namespace {

constexpr std::uint64_t band_bytes = 256u << 10;
constexpr std::uint64_t tile = 16;  // rows and columns of a block whose lines all fit the first-level cache
// Between two pieces of neighbouring rows, reading fewer bytes than these costs less than another call.
constexpr std::uint64_t largest_gap = 4096;

// A part of the source: rows x columns elements, rows `stride` bytes apart.
struct Band {
  const std::byte* data;
  std::uint64_t rows;
  std::uint64_t columns;
  std::uint64_t stride;
};

// Element (r, c) of the band goes to to + c * to_stride + r * sizeof(Element).
template <typename Element>
void scatter(const Band& band, std::byte* to, std::uint64_t to_stride) {
  for (std::uint64_t c0 = 0; c0 < band.columns; c0 += tile) {
    const std::uint64_t c1 = std::min(band.columns, c0 + tile);
    for (std::uint64_t r0 = 0; r0 < band.rows; r0 += tile) {
      const std::uint64_t r1 = std::min(band.rows, r0 + tile);
      for (std::uint64_t c = c0; c < c1; ++c) {
        const std::byte* from = band.data + c * sizeof(Element);
        std::byte* line = to + c * to_stride;
        for (std::uint64_t r = r0; r < r1; ++r) {
          Element element;
          std::memcpy(&element, from + r * band.stride, sizeof element);
          std::memcpy(line + r * sizeof element, &element, sizeof element);
        }
      }
    }
  }
}

using Element16 = std::array<std::byte, 16>;

struct ScatterRow {
  std::uint64_t width;
  void (*scatter)(const Band&, std::byte*, std::uint64_t);
};
constexpr std::array scatters{
    ScatterRow{1, scatter<std::uint8_t>},  ScatterRow{2, scatter<std::uint16_t>}, ScatterRow{4, scatter<std::uint32_t>},
    ScatterRow{8, scatter<std::uint64_t>}, ScatterRow{16, scatter<Element16>},
};

class TransposedBytes final : public ByteSource {
 public:
  TransposedBytes(Bytes source, std::uint64_t rows, std::uint64_t columns, std::uint64_t width)
      : source_(std::move(source)), rows_(rows), columns_(columns), width_(width) {
    const auto row = std::find_if(scatters.begin(), scatters.end(), [&](const auto& r) { return r.width == width; });
    assert(row != scatters.end());
    scatter_ = row->scatter;
  }

  std::uint64_t size() const override { return source_->size(); }

  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::uint64_t matrix = rows_ * columns_ * width_;
    while (!out.empty()) {
      const std::uint64_t inside = offset % matrix;
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(matrix - inside, out.size()));
      MK_CHECK(read_matrix(offset - inside, inside, out.first(length)));
      out = out.subspan(length);
      offset += length;
    }
    return {};
  }

 private:
  // `out` takes the bytes from `begin` on of the transposed matrix that starts at `start` in the source.
  Status read_matrix(std::uint64_t start, std::uint64_t begin, std::span<std::byte> out) const {
    const std::uint64_t line = rows_ * width_;  // bytes of a source column, a row of the result
    const std::uint64_t end = begin + out.size();
    const std::uint64_t first = begin / line;
    const std::uint64_t last = (end - 1) / line;
    const bool within_one = first == last;
    const std::uint64_t row_begin = within_one ? begin % line / width_ : 0;
    const std::uint64_t row_end = within_one ? ((end - 1) % line) / width_ + 1 : rows_;
    const std::uint64_t full_first = (begin + line - 1) / line;
    const std::uint64_t full_end = end / line;

    const std::uint64_t piece = (last - first + 1) * width_;
    const std::uint64_t stride = columns_ * width_;
    const bool whole_rows = stride - piece <= largest_gap;
    const std::uint64_t row_bytes = whole_rows ? stride : piece;
    const std::uint64_t lead = whole_rows ? first * width_ : 0;  // in a row of the band, before the first column
    const std::uint64_t band_rows = std::min(row_end - row_begin, std::max(tile, band_bytes / row_bytes / tile * tile));

    const auto memory = source_->in_memory();
    std::unique_ptr<std::byte[]> buffer;
    if (!memory) buffer = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(band_rows * row_bytes));
    for (std::uint64_t r = row_begin; r < row_end; r += band_rows) {
      Band band{buffer ? buffer.get() + lead : nullptr, std::min(band_rows, row_end - r), last - first + 1, row_bytes};
      if (memory) {
        band.data = memory->data() + start + r * stride + first * width_;
        band.stride = stride;
      } else if (whole_rows) {
        const auto bytes = static_cast<std::size_t>(band.rows * stride);
        MK_CHECK(source_->read(start + r * stride, {buffer.get(), bytes}));
      } else {
        for (std::uint64_t i = 0; i < band.rows; ++i) {
          const std::uint64_t from = start + (r + i) * stride + first * width_;
          MK_CHECK(source_->read(from, {buffer.get() + i * piece, static_cast<std::size_t>(piece)}));
        }
      }
      if (first < full_first) put_part_of_column(band, 0, first * line + r * width_, begin, out);
      if (full_first < full_end) {
        Band full = band;
        full.data += (full_first - first) * width_;
        full.columns = full_end - full_first;
        scatter_(full, out.data() + (full_first * line - begin) + r * width_, line);
      }
      if (last >= full_end && last >= full_first) {
        put_part_of_column(band, last - first, last * line + r * width_, begin, out);
      }
    }
    return {};
  }

  // A column of the band, whose first element belongs at byte `position` of the matrix, clipped to `out`.
  void put_part_of_column(const Band& band, std::uint64_t column, std::uint64_t position, std::uint64_t begin,
                          std::span<std::byte> out) const {
    for (std::uint64_t r = 0; r < band.rows; ++r) {
      const std::byte* element = band.data + r * band.stride + column * width_;
      const std::uint64_t at = position + r * width_;
      const std::uint64_t from = std::max(at, begin);
      const std::uint64_t to = std::min(at + width_, begin + out.size());
      if (from < to)
        std::memcpy(out.data() + (from - begin), element + (from - at), static_cast<std::size_t>(to - from));
    }
  }

  Bytes source_;
  std::uint64_t rows_;
  std::uint64_t columns_;
  std::uint64_t width_;
  void (*scatter_)(const Band&, std::byte*, std::uint64_t);
};

}  // namespace

Bytes transposed(Bytes source, std::uint64_t batch, std::uint64_t rows, std::uint64_t columns, std::uint64_t width) {
  assert(source->size() == batch * rows * columns * width);
  if (rows <= 1 || columns <= 1 || batch == 0) return source;
  return std::make_shared<TransposedBytes>(std::move(source), rows, columns, width);
}

}  // namespace mk
