#pragma once
// The user's samples of a model's inputs: what --calibration-data names.
//
//   .npz, a folder of them        arrays by input name; the leading axis is the samples
//   images, Parquet of images through the preprocessor beside the model, to the one input that takes images
//   .txt, Parquet of texts        a line or a cell each, through the tokenizer beside the model
//
// Only inputs that the model declares are fed, in its types. Rows of data sets are chosen by a seeded permutation (a
// folder of images is sorted by class), lines and archives come in their order. A model with a fixed batch gets that
// many rows in each sample.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/path.h"
#include "base/result.h"
#include "runtime/sample_source.h"
#include "runtime/session.h"

namespace mk {

struct CalibrationData {
  Path path;
  std::optional<std::string> column;  // of a Parquet file: the images or texts
  std::optional<std::string> split;   // of a data set in several files; default: train, else validation, else test
  Path assets;                        // the folder with preprocessor_config.json or the tokenizer
  std::size_t most = 110;             // samples that are of use; more rows are not read
  std::uint64_t seed = 42;
};

// Whether calibration data at a path can have columns and splits: not archives and lines of text.
bool has_columns(const Path& path);

// not_found where there is no such path; usage where it does not fit the model's inputs, saying what does; the errors
// of the files otherwise.
Result<std::unique_ptr<SampleSource>> open_calibration_data(const CalibrationData& data, std::span<const Port> inputs);

}  // namespace mk
