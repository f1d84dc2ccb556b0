#pragma once
// The kinds of data set that open_dataset knows. Internal to datasets.

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "datasets/dataset.h"

namespace mk {

// Folders below the data set's that are looked into.
inline constexpr int max_folder_depth = 8;

inline constexpr std::array<std::string_view, 8> image_extensions{".jpg", ".jpeg", ".png", ".webp",
                                                                  ".bmp", ".gif",  ".tif", ".tiff"};
bool has_extension(const Path& path, std::string_view extension);  // ".png", in any case

// Relative to the folder, sorted by their text; hidden ones are left out.
struct DataFiles {
  std::vector<Path> parquet;
  std::vector<Path> images;
};
Result<DataFiles> list_data_files(const Path& folder);

// `files` are relative to options.path (to its parent where that is the file itself).
Result<std::unique_ptr<Dataset>> open_parquet_dataset(const std::vector<Path>& files, const DatasetOptions& options);
Result<std::unique_ptr<Dataset>> open_image_folder(const std::vector<Path>& files, const DatasetOptions& options);

}  // namespace mk
