#include "datasets/dataset.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "datasets/kinds.h"

namespace mk {
namespace {

constexpr std::uint64_t max_image_file = std::uint64_t{1} << 30;

bool is_there(const Path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

Result<Cell::Bytes> read_bytes(const Path& path) {
  MK_TRY(const auto file, File::open(path));
  if (file->size() > max_image_file)
    return fail(ErrorCode::malformed, "the file is larger than 1 GiB, too much for an image", to_utf8(path));
  Cell::Bytes bytes(static_cast<std::size_t>(file->size()));
  MK_CHECK(file->read(0, bytes));
  return bytes;
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_dataset(const DatasetOptions& options) {
  const std::string where = to_utf8(options.path);
  if (!is_there(options.path))
    return fail(ErrorCode::not_found, "no such data set", where,
                "name a Parquet file, a folder of Parquet files, or a folder of images");
  if (has_extension(options.path, ".parquet")) return open_parquet_dataset({options.path.filename()}, options);
  std::error_code error;
  if (!std::filesystem::is_directory(options.path, error))
    return fail(ErrorCode::usage, "not a data set that can be read", where,
                "name a Parquet file, a folder of Parquet files, or a folder of images");
  if (is_there(options.path / "dataset_dict.json") || is_there(options.path / "state.json"))
    return fail(ErrorCode::usage, "an Arrow data set of save_to_disk, which is not read", where,
                "write it with dataset.to_parquet");
  MK_TRY(const auto files, list_data_files(options.path));
  if (!files.parquet.empty()) return open_parquet_dataset(files.parquet, options);
  if (!files.images.empty()) return open_image_folder(files.images, options);
  return fail(ErrorCode::usage, "no data files: neither Parquet files nor images", where);
}

bool has_extension(const Path& path, std::string_view extension) {
  return equal_ignoring_case(to_utf8(path.extension()), extension);
}

Result<DataFiles> list_data_files(const Path& folder) {
  DataFiles files;
  std::error_code error;
  auto entry = std::filesystem::recursive_directory_iterator(
      folder, std::filesystem::directory_options::follow_directory_symlink, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    const Path& path = entry->path();
    std::error_code ignored;
    if (to_utf8(path.filename()).starts_with('.') || entry.depth() > max_folder_depth) {
      entry.disable_recursion_pending();
      continue;
    }
    if (!entry->is_regular_file(ignored)) continue;
    if (has_extension(path, ".parquet")) files.parquet.push_back(path.lexically_relative(folder));
    for (const std::string_view extension : image_extensions)
      if (has_extension(path, extension)) files.images.push_back(path.lexically_relative(folder));
  }
  if (error) return fail(ErrorCode::failed, "cannot list the folder: " + error.message(), to_utf8(folder));
  const auto by_text = [](const Path& a, const Path& b) { return to_utf8(a) < to_utf8(b); };
  std::sort(files.parquet.begin(), files.parquet.end(), by_text);
  std::sort(files.images.begin(), files.images.end(), by_text);
  return files;
}

Result<std::optional<Cell::Bytes>> image_bytes(const Cell& cell, const Dataset& dataset, std::string_view where) {
  if (cell.is_null()) return std::nullopt;
  const Cell* bytes = &cell;
  const Cell* path = &cell;
  if (cell.get<Cell::Struct>() != nullptr) {
    bytes = cell.field("bytes");
    path = cell.field("path");
  }
  if (bytes != nullptr)
    if (const auto* data = bytes->get<Cell::Bytes>()) return *data;
  if (path != nullptr)
    if (const auto* name = path->get<std::string>()) {
      const Path relative = path_from_utf8(*name);
      if (!stays_inside(relative))
        return fail(ErrorCode::malformed, "the image's path leads out of the data set: " + *name, std::string(where));
      return read_bytes(dataset.folder() / relative);
    }
  const bool empty_struct = cell.get<Cell::Struct>() != nullptr && (bytes == nullptr || bytes->is_null()) &&
                            (path == nullptr || path->is_null());
  if (empty_struct) return std::nullopt;
  return fail(ErrorCode::malformed, "expected an image (bytes, or a path), got " + std::string(cell.kind()),
              std::string(where));
}

}  // namespace mk
