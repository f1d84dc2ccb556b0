#include "calibration/calibration_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "calibration/sources.h"

namespace mk {
namespace {

bool has_archives(const Path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (lower_case(to_utf8(entry.path().extension())) == ".npz") return true;
  return false;
}

Result<std::unique_ptr<SampleSource>> lines_of(const CalibrationData& data, std::span<const Port> inputs) {
  MK_TRY(const std::string text, read_text(data.path));
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size() && lines.size() < data.most * 64;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.find_first_not_of(" \t") != std::string::npos) lines.push_back(std::move(line));
    begin = end + 1;
  }
  if (lines.empty()) return fail(ErrorCode::usage, "the file has no text", to_utf8(data.path), "One text on each line");
  return text_samples(std::move(lines), to_utf8(data.path.filename()), data, inputs);
}

}  // namespace

std::int64_t fixed_batch(std::span<const Port> inputs) {
  for (const Port& port : inputs)
    if (port.type.shape && !port.type.shape->empty() && port.type.shape->front().is_known())
      return std::max<std::int64_t>(1, port.type.shape->front().value);
  return 1;
}

bool has_columns(const Path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return !has_archives(path);
  const std::string extension = lower_case(to_utf8(path.extension()));
  return extension != ".npz" && extension != ".npy" && extension != ".txt";
}

Result<std::unique_ptr<SampleSource>> open_calibration_data(const CalibrationData& data, std::span<const Port> inputs) {
  std::error_code error;
  const auto status = std::filesystem::status(data.path, error);
  if (!std::filesystem::exists(status))
    return fail(ErrorCode::not_found, "no such calibration data", to_utf8(data.path));
  const std::string extension = lower_case(to_utf8(data.path.extension()));
  const bool is_folder = std::filesystem::is_directory(status);
  if (is_folder ? has_archives(data.path) : extension == ".npz" || extension == ".npy")
    return archive_samples(data, inputs);
  if (!is_folder && extension == ".txt") return lines_of(data, inputs);
  if (is_folder || extension == ".parquet") return dataset_samples(data, inputs);
  return fail(ErrorCode::usage, fmt::format("calibration data cannot be read from a '{}' file", extension),
              to_utf8(data.path), "Give .npz, .txt (a text on each line), .parquet, or a folder of such or of images");
}

}  // namespace mk
