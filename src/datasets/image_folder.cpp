// A folder of images: PATH/CLASS/x.png, PATH/SPLIT/CLASS/x.png, or images beside a metadata.jsonl that says more.

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "datasets/kinds.h"
#include "datasets/splits.h"

namespace mk {
namespace {

constexpr std::string_view metadata_name = "metadata.jsonl";

Cell value_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean:
      return Cell(json.get<bool>());
    case Json::value_t::number_integer:
      return Cell(json.get<std::int64_t>());
    case Json::value_t::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      return number > INT64_MAX ? Cell(number) : Cell(static_cast<std::int64_t>(number));
    }
    case Json::value_t::number_float:
      return Cell(json.get<double>());
    case Json::value_t::string:
      return Cell(json.get<std::string>());
    case Json::value_t::array: {
      Cell::List list;
      for (const Json& element : json) list.push_back(value_of(element));
      return Cell(std::move(list));
    }
    case Json::value_t::object: {
      Cell::Struct fields;
      for (const auto& [name, element] : json.items()) {
        fields.names.push_back(name);
        fields.values.push_back(value_of(element));
      }
      return Cell(std::move(fields));
    }
    default:
      return {};
  }
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(std::string split, Path folder, std::vector<std::string> columns, std::vector<std::string> classes)
      : Dataset(std::move(split)),
        folder_(std::move(folder)),
        columns_(std::move(columns)),
        classes_(std::move(classes)) {}

  struct Image {
    Path file;                 // below the folder
    std::vector<Cell> values;  // of the columns after the first
  };
  std::vector<Image> images;

  std::uint64_t row_count() const override { return images.size(); }
  const std::vector<std::string>& columns() const override { return columns_; }
  Path folder() const override { return folder_; }
  std::vector<std::string> class_names(std::string_view column) const override {
    return column == "label" ? classes_ : std::vector<std::string>{};
  }
  Result<std::unique_ptr<RowReader>> read(std::span<const std::string> columns,
                                          std::vector<std::uint64_t> rows) const override;

 private:
  Path folder_;
  std::vector<std::string> columns_;
  std::vector<std::string> classes_;
};

class ImageReader : public RowReader {
 public:
  ImageReader(const ImageFolder& folder, std::vector<std::size_t> columns, std::vector<std::uint64_t> rows)
      : folder_(folder), columns_(std::move(columns)), rows_(std::move(rows)) {}

  Result<bool> next(Row& row) override {
    if (position_ == rows_.size()) return false;
    row.index = rows_[position_++];
    const auto& image = folder_.images[static_cast<std::size_t>(row.index)];
    row.where = to_utf8(image.file);
    row.values.clear();
    for (const std::size_t column : columns_) {
      if (column == 0)
        row.values.push_back(Cell(Cell::Struct{{"bytes", "path"}, {Cell(), Cell(to_utf8(image.file))}}));
      else
        row.values.push_back(image.values[column - 1]);
    }
    return true;
  }

 private:
  const ImageFolder& folder_;
  std::vector<std::size_t> columns_;
  std::vector<std::uint64_t> rows_;
  std::size_t position_ = 0;
};

Result<std::unique_ptr<RowReader>> ImageFolder::read(std::span<const std::string> columns,
                                                     std::vector<std::uint64_t> rows) const {
  std::vector<std::size_t> indices;
  for (const std::string& column : columns) {
    const auto found = std::find(columns_.begin(), columns_.end(), column);
    if (found == columns_.end())
      return fail(ErrorCode::usage, "the data set has no column " + column, to_utf8(folder_));
    indices.push_back(static_cast<std::size_t>(found - columns_.begin()));
  }
  return std::make_unique<ImageReader>(*this, std::move(indices), std::move(rows));
}

// metadata.jsonl: a line per image, {"file_name": ..., other columns}. Rows are in its order.
Result<std::unique_ptr<Dataset>> read_metadata(const Path& folder, std::string split) {
  const Path path = folder / metadata_name;
  MK_TRY(const std::string text, read_text(path, std::uint64_t{1} << 30));
  std::vector<std::pair<std::string, Json>> lines;
  std::vector<std::string> columns{"image"};
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = to_utf8(path) + ", line " + std::to_string(number);
    MK_TRY(Json json, parse_json(line, where));
    MK_TRY(std::string file, JsonView(json, where).at("file_name").string());
    if (!stays_inside(path_from_utf8(file)))
      return fail(ErrorCode::malformed, "file_name leads out of the folder: " + file, where);
    json.erase("file_name");
    for (const auto& [name, ignored] : json.items())
      if (std::find(columns.begin(), columns.end(), name) == columns.end()) columns.push_back(name);
    lines.emplace_back(std::move(file), std::move(json));
  }
  auto dataset = std::make_unique<ImageFolder>(std::move(split), folder, columns, std::vector<std::string>{});
  for (const auto& [file, json] : lines) {
    ImageFolder::Image image{path_from_utf8(file), {}};
    for (auto column = columns.begin() + 1; column != columns.end(); ++column) {
      const auto found = json.find(*column);
      image.values.push_back(found == json.end() ? Cell() : value_of(*found));
    }
    dataset->images.push_back(std::move(image));
  }
  return dataset;
}

// Images of each split, paths below the split's folder.
struct Layout {
  std::map<std::string, std::vector<Path>> splits;
  std::map<std::string, Path> folders;
};

// Top folders named as splits are splits when every image is below one.
Layout lay_out(const std::vector<Path>& files, const Path& root) {
  Layout layout;
  const bool has_splits = std::all_of(files.begin(), files.end(), [](const Path& file) {
    return std::next(file.begin()) != file.end() && split_keyword(to_utf8(*file.begin())).has_value();
  });
  for (const Path& file : files) {
    const Path top = has_splits ? *file.begin() : Path();
    const std::string split = has_splits ? *split_keyword(to_utf8(top)) : "train";
    layout.splits[split].push_back(has_splits ? file.lexically_relative(top) : file);
    layout.folders[split] = has_splits ? root / top : root;
  }
  return layout;
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_image_folder(const std::vector<Path>& files, const DatasetOptions& options) {
  const Layout layout = lay_out(files, options.path);
  std::vector<std::string> names;
  std::set<std::string> classes;
  bool labelled = true;
  for (const auto& [name, images] : layout.splits) {
    names.push_back(name);
    for (const Path& image : images) {
      if (image.has_parent_path())
        classes.insert(to_utf8(image.parent_path().filename()));
      else
        labelled = false;
    }
  }
  MK_TRY(const std::string split, choose_split(names, options.split, to_utf8(options.path)));
  const Path& folder = layout.folders.at(split);
  std::error_code ignored;
  if (std::filesystem::exists(folder / metadata_name, ignored)) return read_metadata(folder, split);

  const std::vector<std::string> sorted(classes.begin(), classes.end());
  auto dataset = std::make_unique<ImageFolder>(
      split, folder, labelled ? std::vector<std::string>{"image", "label"} : std::vector<std::string>{"image"},
      labelled ? sorted : std::vector<std::string>{});
  for (const Path& file : layout.splits.at(split)) {
    ImageFolder::Image image{file, {}};
    if (labelled) {
      const auto found = std::lower_bound(sorted.begin(), sorted.end(), to_utf8(file.parent_path().filename()));
      image.values.push_back(Cell(static_cast<std::int64_t>(found - sorted.begin())));
    }
    dataset->images.push_back(std::move(image));
  }
  return dataset;
}

}  // namespace mk
