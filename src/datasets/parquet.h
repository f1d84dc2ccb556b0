#pragma once
// Parquet files, read row by row through the bridge (bridge/include/modelkit_bridge/parquet.h).
// Memory stays at a few pages of the columns asked for, whatever the file's size.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/path.h"
#include "base/result.h"
#include "datasets/cell.h"

struct MkbCursor;
struct MkbParquet;

namespace mk {

// Chosen rows of chosen columns, forwards. One thread at a time.
class ParquetCursor {
 public:
  // The next row, a value for each column asked for; false at the end. Errors name the file and the row.
  Result<bool> next(std::vector<Cell>& row);

 private:
  friend class ParquetFile;
  struct Close {
    void operator()(MkbCursor* cursor) const;
  };
  Path path_;
  std::vector<std::uint64_t> rows_;
  std::size_t position_ = 0;
  std::unique_ptr<MkbCursor, Close> cursor_;
};

class ParquetFile {
 public:
  // not_found, or malformed where it is no sound Parquet file.
  static Result<ParquetFile> open(const Path& path);

  const Path& path() const { return path_; }
  std::uint64_t row_count() const { return row_count_; }
  const std::vector<std::string>& columns() const { return columns_; }
  // The file's key-value texts: "huggingface" has the features as JSON.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Columns by index, rows ascending.
  Result<ParquetCursor> read(std::span<const std::uint32_t> columns, std::vector<std::uint64_t> rows) const;

 private:
  struct Close {
    void operator()(MkbParquet* file) const;
  };
  Path path_;
  std::uint64_t row_count_ = 0;
  std::vector<std::string> columns_;
  std::map<std::string, std::string> metadata_;
  std::unique_ptr<MkbParquet, Close> file_;
};

}  // namespace mk
