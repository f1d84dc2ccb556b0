// Against what pyarrow and datasets read: tests/data/datasets (made by make_metrics.py of the golden values).

#include "datasets/dataset.h"

#include <cmath>
#include <numeric>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "datasets/splits.h"
#include "testing/testing.h"

namespace mk {
namespace {

std::string base64(const Cell::Bytes& bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? std::to_integer<std::uint32_t>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) text += i + k > bytes.size() ? '=' : digits[group >> (18 - 6 * k) & 63];
  }
  return text;
}

// In the form of cases.json.
Json json_of(const Cell& value) {
  if (const auto* v = value.get<bool>()) return *v;
  if (const auto* v = value.get<std::int64_t>()) return *v;
  if (const auto* v = value.get<std::uint64_t>()) return *v;
  if (const auto* v = value.get<std::string>()) return *v;
  if (const auto* v = value.get<double>()) {
    if (std::isnan(*v)) return "nan";
    if (std::isinf(*v)) return *v > 0 ? "inf" : "-inf";
    return *v;
  }
  if (const auto* v = value.get<Cell::Bytes>()) return {{"base64", base64(*v)}};
  if (const auto* v = value.get<Cell::List>()) {
    Json list = Json::array();
    for (const Cell& element : *v) list.push_back(json_of(element));
    return list;
  }
  if (const auto* v = value.get<Cell::Struct>()) {
    Json fields = Json::object();
    for (std::size_t i = 0; i < v->names.size(); ++i) fields[v->names[i]] = json_of(v->values[i]);
    return fields;
  }
  return nullptr;
}

// Images in the expected rows stand as a hash; put the same in ours.
void expect_equal(const Json& expected, const Cell& value, const std::string& where) {
  if (expected.is_object() && expected.contains("png_sha256")) {
    const auto* bytes = value.get<Cell::Bytes>();
    ASSERT_NE(bytes, nullptr) << where;
    EXPECT_EQ(sha256_hex({reinterpret_cast<const char*>(bytes->data()), bytes->size()}), expected["png_sha256"])
        << where;
  } else if (expected.is_object() && value.get<Cell::Struct>() != nullptr) {
    for (const auto& [name, field] : expected.items()) {
      const Cell* ours = value.field(name);
      ASSERT_NE(ours, nullptr) << where << "." << name;
      expect_equal(field, *ours, where + "." + name);
    }
  } else {
    EXPECT_EQ(expected, json_of(value)) << where;
  }
}

Result<std::vector<Row>> read_all(const Dataset& dataset, const std::vector<std::string>& columns) {
  std::vector<std::uint64_t> rows(dataset.row_count());
  std::iota(rows.begin(), rows.end(), 0);
  MK_TRY(const auto reader, dataset.read(columns, rows));
  std::vector<Row> all;
  for (Row row;;) {
    MK_TRY(const bool more, reader->next(row));
    if (!more) return all;
    all.push_back(row);
  }
}

const Json& cases() {
  static const Json json = *read_json(testing::repository("tests/data/datasets/cases.json"));
  return json["cases"];
}

DatasetOptions options_of(const Json& item) {
  DatasetOptions options;
  options.path = testing::repository("tests/data/datasets") / item["path"].get<std::string>();
  if (item.contains("split")) options.split = item["split"].get<std::string>();
  return options;
}

const Json& rows_of(const Json& item) {
  if (!item.contains("same_as")) return item["rows"];
  for (const Json& other : cases())
    if (other["name"] == item["same_as"]) return other["rows"];
  return item["rows"];
}

void run_parquet(const Json& item) {
  ASSERT_OK_AND(const auto dataset, open_dataset(options_of(item)));
  const Json& expected = rows_of(item);
  ASSERT_EQ(dataset->row_count(), expected.size());
  if (item.contains("columns")) {
    EXPECT_EQ(Json(dataset->columns()), item["columns"]);
  }
  ASSERT_OK_AND(const auto rows, read_all(*dataset, dataset->columns()));
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t c = 0; c < dataset->columns().size(); ++c) {
      const std::string& column = dataset->columns()[c];
      ASSERT_TRUE(expected[i].contains(column)) << column;
      expect_equal(expected[i][column], rows[i].values[c], rows[i].where + " " + column);
    }
  if (item.contains("features"))
    for (const auto& [column, feature] : item["features"].items())
      if (feature.contains("names")) {
        EXPECT_EQ(Json(dataset->class_names(column)), feature["names"]);
      }
}

void run_images(const Json& item) {
  ASSERT_OK_AND(const auto dataset, open_dataset(options_of(item)));
  ASSERT_OK_AND(const auto rows, read_all(*dataset, dataset->columns()));
  ASSERT_EQ(rows.size(), item["rows"].size());
  const std::string split_folder = item.contains("split") ? item["split"].get<std::string>() + "/" : "";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& expected = item["rows"][i];
    for (std::size_t c = 1; c < dataset->columns().size(); ++c)
      EXPECT_EQ(expected[dataset->columns()[c]], json_of(rows[i].values[c]));
    EXPECT_EQ(split_folder + rows[i].where, expected["file"]);
    ASSERT_OK_AND(const auto bytes, image_bytes(rows[i].values[0], *dataset, rows[i].where));
    const auto file = read_text(testing::repository("tests/data/datasets") / item["path"].get<std::string>() /
                                expected["file"].get<std::string>());
    ASSERT_TRUE(bytes.has_value());
    EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size()), *file);
  }
  if (item.contains("features")) {
    EXPECT_EQ(Json(dataset->class_names("label")), item["features"]["label"]["names"]);
  }
}

TEST(Dataset, ReadsWhatTheReferenceReads) {
  int run = 0;
  for (const Json& item : cases()) {
    const std::string kind = item["kind"];
    SCOPED_TRACE(item["name"].get<std::string>());
    if (item.contains("error")) continue;
    if (kind == "parquet" || kind == "repository") {
      run_parquet(item);
    } else if (kind == "imagefolder") {
      run_images(item);
    } else {
      continue;
    }
    ++run;
  }
  EXPECT_GE(run, 24);
}

std::string error_of(std::string_view name) {
  for (const Json& item : cases())
    if (item["name"] == name) {
      const auto dataset = open_dataset(options_of(item));
      return dataset ? "no error" : dataset.error().message;
    }
  return "no such case";
}

TEST(Dataset, NamesWhatIsWrong) {
  EXPECT_NE(error_of("truncated").find("no Parquet footer"), std::string::npos) << error_of("truncated");
  EXPECT_EQ(error_of("lfs_pointer"), "a Git LFS pointer, not the file");
  EXPECT_EQ(error_of("hub_repo_missing_split"), "no split test; there are train, validation");
  EXPECT_EQ(error_of("not_a_data_set"), "no data files: neither Parquet files nor images");
  const auto missing = open_dataset({"/nowhere", {}, {}});
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
}

TEST(Dataset, ReadsChosenRowsOfChosenColumns) {
  ASSERT_OK_AND(const auto dataset,
                open_dataset({testing::repository("tests/data/datasets/hub_repo"), std::nullopt, "train"}));
  const std::vector<std::string> columns{"label", "text"};
  ASSERT_OK_AND(const auto reader, dataset->read(columns, {0, 2}));
  Row row;
  ASSERT_TRUE(*reader->next(row));
  EXPECT_EQ(row.values[0].integer(), 1);
  ASSERT_TRUE(*reader->next(row));
  EXPECT_EQ(row.index, 2U);
  EXPECT_EQ(json_of(row.values[1]), "fine");
  EXPECT_EQ(row.where, "train-00001-of-00002.parquet, row 0");
  EXPECT_FALSE(*reader->next(row));
}

TEST(Dataset, ImagesMayBePaths) {
  ASSERT_OK_AND(const auto dataset,
                open_dataset({testing::repository("tests/data/datasets/parquet/image_by_path.parquet"), {}, {}}));
  ASSERT_OK_AND(const auto rows, read_all(*dataset, {"image"}));
  ASSERT_OK_AND(const auto by_path, image_bytes(rows[0].values[0], *dataset, "row 0"));
  ASSERT_OK_AND(const auto by_bytes, image_bytes(rows[1].values[0], *dataset, "row 1"));
  EXPECT_EQ(by_path, by_bytes);
  EXPECT_FALSE(image_bytes(Cell(std::string("../secret.png")), *dataset, "row").has_value());
  EXPECT_FALSE(image_bytes(Cell(std::string("/etc/passwd")), *dataset, "row").has_value());
  EXPECT_FALSE(image_bytes(Cell(std::int64_t{3}), *dataset, "row").has_value());
  ASSERT_OK_AND(const auto none, image_bytes(Cell(), *dataset, "row"));
  EXPECT_FALSE(none.has_value());
}

// A flipped byte anywhere is an error or other rows, never a crash.
TEST(Dataset, SurvivesBrokenParquet) {
  for (const char* name : {"types.parquet", "encoding_page_v2.parquet", "compression_zstd.parquet"}) {
    const auto whole = *read_text(testing::repository("tests/data/datasets/parquet") / name);
    const testing::TemporaryFolder folder;
    for (std::size_t at = 0; at < whole.size(); at += 5) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
      const auto dataset = open_dataset({folder.write(std::to_string(at) + ".parquet", flipped), {}, {}});
      if (dataset && (*dataset)->row_count() < 1000) (void)read_all(**dataset, (*dataset)->columns());
    }
  }
}

TEST(Splits, FollowTheHubsNames) {
  EXPECT_EQ(split_of_file("data/train-00000-of-00002.parquet"), "train");
  EXPECT_EQ(split_of_file("data/validation_matched-00000-of-00001.parquet"), "validation_matched");
  EXPECT_EQ(split_of_file("my_dev_set.parquet"), "validation");
  EXPECT_EQ(split_of_file("test/0000.parquet"), "test");
  EXPECT_EQ(split_of_file("a/val/x/0000.parquet"), "validation");
  EXPECT_EQ(split_of_file("contest.parquet"), "train");
  EXPECT_EQ(split_of_file("TEST.parquet"), "test");
}

TEST(Splits, ChooseByRule) {
  const std::vector<std::string> all{"test", "train", "validation"}, two{"test", "train"}, odd{"a", "b"}, one{"odd"};
  EXPECT_EQ(*choose_split(all, std::nullopt, "d"), "validation");
  EXPECT_EQ(*choose_split(two, std::nullopt, "d"), "test");
  EXPECT_EQ(*choose_split(one, std::nullopt, "d"), "odd");
  EXPECT_EQ(*choose_split(all, "val", "d"), "validation");
  const auto none = choose_split(odd, std::nullopt, "d");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace mk
