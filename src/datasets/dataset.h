#pragma once
// Data sets on disk: a Parquet file, a folder of Parquet files named by split (as in the Hub's repositories, with data/
// or a folder per configuration), or a folder of images (a folder per class, optionally below a folder per split, or
// with a metadata.jsonl). Rows are read forwards and on demand: memory does not grow with the data set.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/path.h"
#include "base/result.h"
#include "datasets/cell.h"

namespace mk {

struct Row {
  std::uint64_t index = 0;   // in the split
  std::vector<Cell> values;  // of the columns asked for
  std::string where;         // "FILE, row 7": for messages
};

class RowReader {
 public:
  virtual ~RowReader() = default;
  // False at the end. Errors name the file and the row.
  virtual Result<bool> next(Row& row) = 0;
};

// One split.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::uint64_t row_count() const = 0;
  virtual const std::vector<std::string>& columns() const = 0;
  // The names behind a column of class ids; empty where the data set does not say.
  virtual std::vector<std::string> class_names(std::string_view column) const = 0;
  // Where relative paths in cells start.
  virtual Path folder() const = 0;
  // Columns by name (usage where one is not there), rows ascending.
  virtual Result<std::unique_ptr<RowReader>> read(std::span<const std::string> columns,
                                                  std::vector<std::uint64_t> rows) const = 0;

  const std::string& split() const { return split_; }

 protected:
  explicit Dataset(std::string split) : split_(std::move(split)) {}

 private:
  std::string split_;
};

struct DatasetOptions {
  Path path;
  std::optional<std::string> name;   // configuration: the sub-folder that holds it
  std::optional<std::string> split;  // see choose_split
};

// not_found where there is no such path, usage where it holds no data set, or several and none was chosen.
Result<std::unique_ptr<Dataset>> open_dataset(const DatasetOptions& options);

// An image's bytes, from a cell as the Hub's data sets have them: {bytes, path}, or bytes alone, or a path. A path is
// read below the data set's folder. Nothing for a null cell; malformed for another kind of cell.
Result<std::optional<Cell::Bytes>> image_bytes(const Cell& cell, const Dataset& dataset, std::string_view where);

}  // namespace mk
