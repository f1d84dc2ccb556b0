// Samples that numpy saved.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/text.h"
#include "calibration/sources.h"
#include "runtime/npz.h"

namespace mk {
namespace {

bool fits(const HostTensor& array, const Type& type) {
  if (!type.shape) return true;
  if (type.shape->size() != array.dims.size()) return false;
  for (std::size_t i = 0; i < array.dims.size(); ++i)
    if (const Dim& dim = (*type.shape)[i]; dim.is_known() && dim.value != array.dims[i]) return false;
  return true;
}

// Infinities alone may be meant (the mask of an attention); a NaN never is. An array without any number is of no use.
Status check_values(const HostTensor& array, const Path& path) {
  if (!is_float(array.type)) return {};
  std::vector<float> converted;
  const auto values = float32_values(view_of(array), converted);
  if (!values || std::ranges::any_of(*values, [](float v) { return std::isfinite(v); })) return {};
  return fail(ErrorCode::usage, "an array of the archive has no finite value: all are NaN or infinite",
              to_utf8(path) + ": " + array.name, "Save it again from real inputs");
}

// The arrays of one file, cut into samples.
struct Archive {
  Path path;
  std::vector<HostTensor> arrays;  // of declared inputs only, in their types
  std::size_t samples = 0;
  bool whole = false;  // the arrays are one sample as they are

  Result<std::vector<HostTensor>> sample(std::size_t number) const {
    if (whole) return arrays;
    std::vector<HostTensor> parts;
    for (const HostTensor& array : arrays) {
      HostTensor part{array.name, array.type, array.dims, {}, {}};
      part.dims[0] = array.dims[0] / static_cast<std::int64_t>(samples);
      const std::size_t bytes = array.data.size() / samples;
      const auto begin = array.data.begin() + static_cast<std::ptrdiff_t>(bytes * number);
      part.data.assign(begin, begin + static_cast<std::ptrdiff_t>(bytes));
      parts.push_back(std::move(part));
    }
    return parts;
  }
};

// Whether what follows the leading axis is as the input has it.
Status check_rows(const HostTensor& array, const Port& input, const Path& path) {
  if (!input.type.shape) return {};
  const Shape& shape = *input.type.shape;
  bool alike = shape.size() == array.dims.size();
  for (std::size_t i = 1; alike && i < shape.size(); ++i)
    alike = !shape[i].is_known() || shape[i].value == array.dims[i];
  if (alike) return {};
  return fail(ErrorCode::usage,
              fmt::format("an array of the archive has the shape {}, where the input is {}",
                          to_string(static_shape(array.dims)), to_string(shape)),
              to_utf8(path) + ": " + array.name, "The leading axis of every array is the samples");
}

Result<Archive> read_archive(const Path& path, std::span<const Port> inputs) {
  MK_TRY(std::vector<HostTensor> arrays, read_npz(path));
  Archive archive{path, {}, 0, false};
  std::string missing, known;
  for (const Port& port : inputs) {
    known += (known.empty() ? "" : ", ") + port.name;
    const auto found = std::ranges::find(arrays, port.name, &HostTensor::name);
    if (found == arrays.end()) {
      missing += (missing.empty() ? "" : ", ") + port.name;
      continue;
    }
    MK_TRY(HostTensor array, converted(*found, port.type.element));
    archive.arrays.push_back(std::move(array));
  }
  if (!missing.empty())
    return fail(ErrorCode::usage, "the archive has no array for the inputs " + missing, to_utf8(path),
                "The model takes " + known);
  for (const HostTensor& array : archive.arrays) MK_CHECK(check_values(array, path));
  const std::int64_t batch = fixed_batch(inputs);
  std::int64_t rows = -1;
  bool alike = !archive.arrays.empty(), as_they_are = true;
  for (std::size_t i = 0; i < archive.arrays.size(); ++i) {
    const HostTensor& array = archive.arrays[i];
    as_they_are = as_they_are && fits(array, inputs[i].type);
    if (array.element_count() == 0)
      return fail(ErrorCode::usage, "an array of the archive has no elements", to_utf8(path) + ": " + array.name,
                  "The leading axis of every array is the samples");
    if (array.dims.empty() || (rows >= 0 && array.dims[0] != rows)) alike = false;
    if (!array.dims.empty()) rows = array.dims[0];
  }
  if (alike && rows % batch == 0) {
    for (std::size_t i = 0; i < archive.arrays.size(); ++i) MK_CHECK(check_rows(archive.arrays[i], inputs[i], path));
    archive.samples = static_cast<std::size_t>(rows / batch);
    return archive;
  }
  if (!as_they_are)
    return fail(ErrorCode::usage, "the arrays are neither rows of samples nor one sample in the inputs' shapes",
                to_utf8(path), "The leading axis of every array is the samples");
  archive.samples = 1;
  archive.whole = true;
  return archive;
}

class ArchiveSamples final : public SampleSource {
 public:
  ArchiveSamples(std::vector<Path> files, std::vector<std::size_t> ends, Archive first, std::vector<Port> inputs,
                 std::string description)
      : files_(std::move(files)),
        ends_(std::move(ends)),
        inputs_(std::move(inputs)),
        open_(std::move(first)),
        description_(std::move(description)) {}

  std::size_t size() const override { return ends_.back(); }
  Result<std::vector<HostTensor>> sample(std::size_t number) const override {
    const auto file = static_cast<std::size_t>(std::ranges::upper_bound(ends_, number) - ends_.begin());
    if (open_.path != files_[file]) {
      MK_TRY(open_, read_archive(files_[file], inputs_));
    }
    return open_.sample(number - (file == 0 ? 0 : ends_[file - 1]));
  }
  std::string description() const override { return description_; }

 private:
  std::vector<Path> files_;
  std::vector<std::size_t> ends_;  // of each file: the number of samples up to its end
  std::vector<Port> inputs_;
  mutable Archive open_;
  std::string description_;
};

}  // namespace

Result<std::unique_ptr<SampleSource>> archive_samples(const CalibrationData& data, std::span<const Port> inputs) {
  std::vector<Path> files;
  std::error_code error;
  if (std::filesystem::is_directory(data.path, error)) {
    for (const auto& entry : std::filesystem::directory_iterator(data.path, error))
      if (lower_case(to_utf8(entry.path().extension())) == ".npz") files.push_back(entry.path());
    std::ranges::sort(files);
  } else {
    files.push_back(data.path);
  }
  std::vector<std::size_t> ends;
  Archive last;
  for (const Path& file : files) {
    MK_TRY(last, read_archive(file, inputs));
    ends.push_back((ends.empty() ? 0 : ends.back()) + last.samples);
    if (ends.back() >= data.most) break;
  }
  files.resize(ends.size());
  if (ends.empty() || ends.back() == 0) return fail(ErrorCode::usage, "there is no sample", to_utf8(data.path));
  return std::make_unique<ArchiveSamples>(std::move(files), std::move(ends), std::move(last),
                                          std::vector<Port>(inputs.begin(), inputs.end()),
                                          to_utf8(data.path.filename()));
}

}  // namespace mk
