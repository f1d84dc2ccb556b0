// Rows of a data set: images or texts, as its cells show.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <unordered_map>

#include "base/random.h"
#include "calibration/sources.h"

namespace mk {
namespace {

constexpr std::size_t rows_looked_at = 20;

enum class CellKind { other, image, text };

CellKind kind_of(const Cell& cell) {
  if (cell.get<Cell::Bytes>() || (cell.field("bytes") && !cell.field("bytes")->is_null())) return CellKind::image;
  const Cell* path = cell.field("path");
  if (path && path->get<std::string>()) return CellKind::image;
  return cell.get<std::string>() ? CellKind::text : CellKind::other;
}

bool takes_text(std::span<const Port> inputs) {
  return std::ranges::any_of(inputs, [](const Port& port) { return port.name == "input_ids"; });
}

// Calibration looks at what a model was trained on, where there is a choice.
Result<std::unique_ptr<Dataset>> open_split(const CalibrationData& data) {
  if (data.split) return open_dataset({data.path, {}, data.split});
  for (const char* split : {"train", "validation", "test"}) {
    auto dataset = open_dataset({data.path, {}, split});
    if (dataset) return dataset;
  }
  return open_dataset({data.path, {}, {}});
}

struct Chosen {
  std::string column;
  CellKind kind;
};

std::string names_of(const Dataset& dataset) {
  std::string names;
  for (const std::string& name : dataset.columns()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

// The column that was named, else the first one of the kind that the model takes.
Result<Chosen> choose_column(const Dataset& dataset, const CalibrationData& data, std::span<const Port> inputs) {
  std::vector<std::string> columns = dataset.columns();
  if (data.column) {
    if (std::ranges::find(columns, *data.column) == columns.end())
      return fail(ErrorCode::usage, fmt::format("there is no column '{}'", *data.column), to_utf8(data.path),
                  "There are " + names_of(dataset));
    columns = {*data.column};
  }
  std::vector<std::uint64_t> rows(std::min<std::uint64_t>(dataset.row_count(), rows_looked_at));
  std::iota(rows.begin(), rows.end(), std::uint64_t{0});
  MK_TRY(const auto reader, dataset.read(columns, std::move(rows)));
  const CellKind wanted = takes_text(inputs) ? CellKind::text : CellKind::image;
  Row row;
  for (;;) {
    MK_TRY(const bool more, reader->next(row));
    if (!more) break;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      CellKind kind = kind_of(row.values[i]);
      // A folder of images gives their paths.
      if (wanted == CellKind::image && kind == CellKind::text && data.column) kind = CellKind::image;
      if (kind == wanted) return Chosen{columns[i], kind};
    }
  }
  return fail(ErrorCode::usage, fmt::format("no column has {}", wanted == CellKind::text ? "texts" : "images"),
              to_utf8(data.path), fmt::format("There are {}; --calibration-column names one", names_of(dataset)));
}

}  // namespace

Result<std::unique_ptr<SampleSource>> dataset_samples(const CalibrationData& data, std::span<const Port> inputs) {
  MK_TRY(const auto dataset, open_split(data));
  const auto count = static_cast<std::size_t>(dataset->row_count());
  if (count == 0) return fail(ErrorCode::usage, "the data set has no rows", to_utf8(data.path));
  MK_TRY(const Chosen chosen, choose_column(*dataset, data, inputs));
  const auto wanted = std::min(count, data.most * static_cast<std::size_t>(fixed_batch(inputs)));
  std::vector<std::size_t> order = Random(data.seed).permutation(count);
  order.resize(wanted);
  std::vector<std::uint64_t> ascending(order.begin(), order.end());
  std::ranges::sort(ascending);
  std::unordered_map<std::uint64_t, std::size_t> place;
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;

  std::vector<std::optional<EncodedImage>> images(wanted);
  std::vector<std::string> texts(wanted);
  MK_TRY(const auto reader, dataset->read(std::array{chosen.column}, std::move(ascending)));
  Row row;
  for (;;) {
    MK_TRY(const bool more, reader->next(row));
    if (!more) break;
    const std::size_t i = place.at(row.index);
    if (chosen.kind == CellKind::image) {
      MK_TRY(auto bytes, image_bytes(row.values[0], *dataset, row.where));
      if (bytes) images[i] = EncodedImage{std::move(*bytes), row.where};
    } else if (const auto* text = row.values[0].get<std::string>()) {
      texts[i] = *text;
    }
  }
  const std::string description =
      fmt::format("{}, {} of {} rows of {}", to_utf8(data.path.filename()), wanted, count, dataset->split());
  if (chosen.kind == CellKind::text) {
    std::erase(texts, "");
    if (texts.empty()) return fail(ErrorCode::usage, "the column has no texts", to_utf8(data.path));
    return text_samples(std::move(texts), description, data, inputs);
  }
  std::vector<EncodedImage> found;
  for (auto& image : images)
    if (image) found.push_back(std::move(*image));
  if (found.empty()) return fail(ErrorCode::usage, "the column has no images", to_utf8(data.path));
  return image_samples(std::move(found), description, data, inputs);
}

}  // namespace mk
