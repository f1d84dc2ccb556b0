#pragma once
// Accuracy of an image classifier on a data set of images and labels.
//
// Rows are those that numpy's Generator(PCG64(seed)).permutation chooses first (or the first ones, unshuffled), so that
// figures compare with the Python tool's; they are read in the data set's order. Rows without an image and rows whose
// label the model does not know are left out and counted. An image that cannot be read ends the run: the error names
// its row.

#include <cstdint>
#include <optional>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "datasets/dataset.h"
#include "eval/labels.h"
#include "images/processor.h"
#include "runtime/session.h"

namespace mk {

struct RowChoice {
  std::uint64_t samples = 100;  // 0 is all
  bool shuffle = true;
  std::uint64_t seed = 42;
};
// Ascending.
std::vector<std::uint64_t> choose_rows(std::uint64_t row_count, const RowChoice& choice);

struct ImageClassificationOptions {
  RowChoice rows;
  std::string input_column = "image";
  std::string label_column = "label";
  std::optional<LabelMapping> label_mapping;
};

struct ImageClassificationReport {
  std::uint64_t rows = 0;           // of the split
  std::uint64_t samples = 0;        // judged
  std::uint64_t without_label = 0;  // left out: no label, or one that the model does not have
  std::uint64_t without_image = 0;  // left out
  std::uint64_t not_finite = 0;     // judged wrong: the model gave NaN for the right class
  std::int64_t batch = 1;           // images per run
  std::int64_t classes = 0;         // that the model tells apart
  double accuracy = 0;              // share whose best class is the right one
  std::optional<double> top_5;      // share whose right class is among the best five; of more than five classes
  double total_seconds = 0;         // decoding, preprocessing and inference
};

// usage: columns that are not there, a label that cannot be mapped, nothing left to judge. malformed: a broken image.
// unsupported: a graph that is no image classifier (one image input, a score for each class).
Result<ImageClassificationReport> evaluate_image_classification(const Session& session, const ImageProcessor& processor,
                                                                const ModelLabels& labels, const Dataset& dataset,
                                                                const ImageClassificationOptions& options,
                                                                Progress& progress);

}  // namespace mk
