#include "datasets/parquet.h"

#include <modelkit_bridge/parquet.h>

#include <array>
#include <cstring>
#include <utility>

#include "base/file.h"

namespace mk {
namespace {

constexpr std::string_view read_elsewhere = "Is it whole? Download it again, or write it anew with pyarrow";

struct Buffer {
  MkbBuffer raw{};
  Buffer() = default;
  ~Buffer() { mkb_buffer_free(&raw); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::string text() const { return {reinterpret_cast<const char*>(raw.data), raw.size}; }
};

// Takes the bridge's bytes apart. They are ours, but a short one must not be read past its end.
class Decoder {
 public:
  explicit Decoder(const MkbBuffer& buffer) : rest_(buffer.data, buffer.size) {}

  Cell value(int depth = 0) {
    if (depth > max_depth) return failed();
    switch (byte()) {
      case 0:
        return {};
      case 1:
        return Cell(false);
      case 2:
        return Cell(true);
      case 3:
        return Cell(static_cast<std::int64_t>(number()));
      case 4:
        return Cell(number());
      case 5: {
        const std::uint64_t bits = number();
        double real = 0;
        std::memcpy(&real, &bits, sizeof real);
        return Cell(real);
      }
      case 6:
        return Cell(text());
      case 7: {
        const auto bytes = std::as_bytes(take(number()));
        return Cell(Cell::Bytes(bytes.begin(), bytes.end()));
      }
      case 8: {
        Cell::List list(count());
        for (Cell& element : list) element = value(depth + 1);
        return Cell(std::move(list));
      }
      case 9: {
        Cell::Struct fields;
        for (std::size_t left = count(); left > 0 && good_; --left) {
          fields.names.push_back(text());
          fields.values.push_back(value(depth + 1));
        }
        return Cell(std::move(fields));
      }
      default:
        return failed();
    }
  }

  // The values of a struct, without its names; false where the bytes are no struct.
  bool row(std::vector<Cell>& out) {
    out.clear();
    if (byte() != 9) return false;
    for (std::size_t left = count(); left > 0 && good_; --left) {
      take(number());
      out.push_back(value(1));
    }
    return good_;
  }

 private:
  static constexpr int max_depth = 128;

  Cell failed() {
    good_ = false;
    rest_ = {};
    return {};
  }
  std::span<const std::uint8_t> take(std::uint64_t size) {
    if (size > rest_.size()) {
      failed();
      return {};
    }
    const auto taken = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }
  std::uint8_t byte() {
    const auto taken = take(1);
    return taken.empty() ? std::uint8_t{0} : taken[0];
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto taken = take(8);
    for (std::size_t i = 0; i < taken.size(); ++i) value |= std::uint64_t{taken[i]} << (8 * i);
    return value;
  }
  // Of elements, each at least a byte.
  std::size_t count() {
    const std::uint64_t n = number();
    if (n <= rest_.size()) return static_cast<std::size_t>(n);
    failed();
    return 0;
  }
  std::string text() {
    const auto bytes = take(number());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::span<const std::uint8_t> rest_;
  bool good_ = true;
};

std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// What a checkout without its large files has in their place.
bool is_lfs_pointer(const File& file) {
  constexpr std::string_view start = "version https://git-lfs";
  std::array<char, start.size()> head;
  return file.size() > start.size() && file.size() < 1024 && file.read(0, std::as_writable_bytes(std::span(head))) &&
         std::string_view(head.data(), head.size()) == start;
}

}  // namespace

void ParquetCursor::Close::operator()(MkbCursor* cursor) const { mkb_cursor_close(cursor); }
void ParquetFile::Close::operator()(MkbParquet* file) const { mkb_parquet_close(file); }

Result<ParquetFile> ParquetFile::open(const Path& path) {
  {
    MK_TRY(const auto file, File::open(path));
    if (is_lfs_pointer(*file))
      return fail(ErrorCode::malformed, "a Git LFS pointer, not the file", to_utf8(path),
                  "fetch it with `git lfs pull`");
  }
  ParquetFile parquet;
  parquet.path_ = path;
  const std::string name = to_utf8(path);
  const auto name_bytes = bytes_of(name);
  MkbParquet* raw = nullptr;
  Buffer error, row;
  if (mkb_parquet_open(name_bytes.data(), name_bytes.size(), &raw, &error.raw) != 0)
    return fail(ErrorCode::malformed, error.text(), name, std::string(read_elsewhere));
  parquet.file_.reset(raw);
  parquet.row_count_ = mkb_parquet_row_count(raw);
  if (mkb_parquet_describe(raw, &row.raw, &error.raw) != 0)
    return fail(ErrorCode::malformed, error.text(), name, std::string(read_elsewhere));
  const Cell about = Decoder(row.raw).value();
  if (const Cell* columns = about.field("columns"); columns != nullptr && columns->get<Cell::List>() != nullptr)
    for (const Cell& column : *columns->get<Cell::List>()) parquet.columns_.push_back(*column.get<std::string>());
  if (const Cell* metadata = about.field("metadata"); metadata != nullptr && metadata->get<Cell::Struct>() != nullptr)
    for (const std::string& name_of_text : metadata->get<Cell::Struct>()->names)
      parquet.metadata_[name_of_text] = *metadata->field(name_of_text)->get<std::string>();
  return parquet;
}

Result<ParquetCursor> ParquetFile::read(std::span<const std::uint32_t> columns, std::vector<std::uint64_t> rows) const {
  ParquetCursor cursor;
  cursor.path_ = path_;
  cursor.rows_ = std::move(rows);
  MkbCursor* raw = nullptr;
  Buffer error;
  if (mkb_parquet_cursor(file_.get(), columns.data(), columns.size(), cursor.rows_.data(), cursor.rows_.size(), &raw,
                         &error.raw) != 0)
    return fail(ErrorCode::malformed, error.text(), to_utf8(path_), std::string(read_elsewhere));
  cursor.cursor_.reset(raw);
  return cursor;
}

Result<bool> ParquetCursor::next(std::vector<Cell>& row) {
  Buffer error, buffer;
  const int found = mkb_cursor_next(cursor_.get(), &buffer.raw, &error.raw);
  if (found == 0) return false;
  const auto where = [&] { return to_utf8(path_) + ", row " + std::to_string(rows_[position_]); };
  if (found < 0) return fail(ErrorCode::malformed, error.text(), where(), std::string(read_elsewhere));
  Decoder decoder(buffer.raw);
  if (!decoder.row(row))
    return fail(ErrorCode::malformed, "the row nests too deep", where(), std::string(read_elsewhere));
  ++position_;
  return true;
}

}  // namespace mk
