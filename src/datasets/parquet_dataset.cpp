// A split as the shards of Parquet files, in the order of their names.

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/json.h"
#include "datasets/kinds.h"
#include "datasets/parquet.h"
#include "datasets/splits.h"

namespace mk {
namespace {

struct Shard {
  ParquetFile file;
  std::uint64_t first;  // row of the split
};

// Walks the shards that have rows asked for, one open at a time.
class ShardReader : public RowReader {
 public:
  ShardReader(const std::vector<Shard>& shards, std::vector<std::string> columns, std::vector<std::uint64_t> rows)
      : shards_(shards), columns_(std::move(columns)), rows_(std::move(rows)) {}

  Result<bool> next(Row& row) override {
    if (position_ == rows_.size()) return false;
    row.index = rows_[position_];
    if (!cursor_ || row.index >= end_) {
      MK_CHECK(open_shard(row.index));
    }
    row.where = to_utf8(shard_->file.path().filename()) + ", row " + std::to_string(row.index - shard_->first);
    MK_TRY(const bool found, cursor_->next(row.values));
    ++position_;
    return found;
  }

 private:
  Status open_shard(std::uint64_t row) {
    const auto after = std::upper_bound(shards_.begin(), shards_.end(), row,
                                        [](std::uint64_t r, const Shard& shard) { return r < shard.first; });
    shard_ = &*std::prev(after);
    const ParquetFile& file = shard_->file;
    end_ = shard_->first + file.row_count();
    std::vector<std::uint32_t> indices;
    for (const std::string& column : columns_) {
      const auto found = std::find(file.columns().begin(), file.columns().end(), column);
      if (found == file.columns().end())
        return fail(ErrorCode::malformed, "the shards differ: column " + column + " is missing", to_utf8(file.path()));
      indices.push_back(static_cast<std::uint32_t>(found - file.columns().begin()));
    }
    std::vector<std::uint64_t> local;
    for (std::size_t i = position_; i < rows_.size() && rows_[i] < end_; ++i) local.push_back(rows_[i] - shard_->first);
    MK_TRY(cursor_, file.read(indices, std::move(local)));
    return {};
  }

  const std::vector<Shard>& shards_;
  std::vector<std::string> columns_;
  std::vector<std::uint64_t> rows_;
  std::size_t position_ = 0;
  const Shard* shard_ = nullptr;
  std::uint64_t end_ = 0;
  std::optional<ParquetCursor> cursor_;
};

class ParquetDataset : public Dataset {
 public:
  ParquetDataset(std::string split, Path folder) : Dataset(std::move(split)), folder_(std::move(folder)) {}

  Status add(const Path& path) {
    MK_TRY(auto file, ParquetFile::open(path));
    shards_.push_back({std::move(file), rows_});
    rows_ += shards_.back().file.row_count();
    return {};
  }

  std::uint64_t row_count() const override { return rows_; }
  const std::vector<std::string>& columns() const override { return shards_.front().file.columns(); }
  Path folder() const override { return folder_; }

  // {"info": {"features": {COLUMN: {"_type": "ClassLabel", "names": [...]}}}} in the file's own metadata.
  std::vector<std::string> class_names(std::string_view column) const override {
    const auto& metadata = shards_.front().file.metadata();
    const auto text = metadata.find("huggingface");
    if (text == metadata.end()) return {};
    const auto json = parse_json(text->second, "huggingface");
    if (!json) return {};
    const auto names = JsonView(*json, "huggingface").at("info").at("features").at(column).at("names").strings();
    return names ? *names : std::vector<std::string>{};
  }

  Result<std::unique_ptr<RowReader>> read(std::span<const std::string> columns,
                                          std::vector<std::uint64_t> rows) const override {
    return std::make_unique<ShardReader>(shards_, std::vector(columns.begin(), columns.end()), std::move(rows));
  }

 private:
  Path folder_;
  std::vector<Shard> shards_;
  std::uint64_t rows_ = 0;
};

// The configuration that a file belongs to: its first folder, unless that is data/ or a split's.
std::string configuration_of(const Path& file) {
  const auto first = file.begin();
  if (std::next(first) == file.end()) return {};
  const std::string name = to_utf8(*first);
  return name == "data" || split_keyword(name) ? std::string() : name;
}

// The files of the configuration asked for, or of the only one.
Result<std::vector<Path>> files_of_configuration(const std::vector<Path>& files, const DatasetOptions& options) {
  std::map<std::string, std::vector<Path>> configurations;
  for (const Path& file : files) configurations[configuration_of(file)].push_back(file);
  std::string names;
  for (const auto& [name, ignored] : configurations)
    if (!name.empty()) names += (names.empty() ? "" : ", ") + name;
  if (options.name) {
    const auto found = configurations.find(*options.name);
    if (found != configurations.end() && !options.name->empty()) return found->second;
    return fail(ErrorCode::usage, "no configuration " + *options.name + (names.empty() ? "" : "; there are " + names),
                to_utf8(options.path), "choose one with --dataset-name");
  }
  if (const auto plain = configurations.find(""); plain != configurations.end()) return plain->second;
  if (configurations.size() == 1) return configurations.begin()->second;
  return fail(ErrorCode::usage, "the data set has the configurations " + names, to_utf8(options.path),
              "choose one with --dataset-name");
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_parquet_dataset(const std::vector<Path>& files, const DatasetOptions& options) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(options.path, ignored);
  const Path root = folder ? options.path : options.path.parent_path();
  std::vector<Path> chosen = files;
  if (folder) {
    MK_TRY(chosen, files_of_configuration(files, options));
  }
  std::map<std::string, std::vector<Path>> splits;
  for (const Path& file : chosen) splits[split_of_file(file)].push_back(file);
  std::vector<std::string> names;
  names.reserve(splits.size());
  for (const auto& [name, shards] : splits) names.push_back(name);
  MK_TRY(const std::string split, choose_split(names, options.split, to_utf8(options.path)));
  const std::vector<Path>& shards = splits.at(split);
  auto dataset = std::make_unique<ParquetDataset>(split, root / shards.front().parent_path());
  for (const Path& shard : shards) {
    MK_CHECK(dataset->add(root / shard));
  }
  return dataset;
}

}  // namespace mk
