#include "eval/image_classification.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/random.h"
#include "base/system.h"
#include "eval/ranking.h"
#include "images/decode.h"
#include "runtime/host_tensor.h"

namespace mk {
namespace {

constexpr std::int64_t preferred_batch = 16;
constexpr std::size_t max_batch_bytes = 256u << 20;

// How an image goes into the graph, and what comes out.
struct Contract {
  const Port* input = nullptr;
  std::string output;
  std::int64_t batch = 1;         // images per run
  std::optional<ImageSize> size;  // of each image; null where it follows the image
};

Result<const Port*> image_input(const Session& session) {
  const Port* found = nullptr;
  for (const Port& port : session.inputs()) {
    const bool image =
        port.type.is_tensor() && port.type.shape && port.type.shape->size() == 4 && is_float(port.type.element);
    if (!image || found != nullptr)
      return fail(ErrorCode::unsupported, "the model's inputs are not one batch of images", port.name,
                  "`winml eval` judges image classifiers with one input [batch, 3, height, width]");
    found = &port;
  }
  if (found == nullptr) return fail(ErrorCode::unsupported, "the model has no input");
  const Dim& channels = (*found->type.shape)[1];
  if (channels.is_known() && channels.value != 3)
    return fail(ErrorCode::unsupported, "the model takes images of " + to_string(channels) + " channels, not 3",
                found->name);
  return found;
}

Result<std::string> score_output(const Session& session) {
  const auto scores = [](const Port& port) {
    return port.type.is_tensor() && is_float(port.type.element) && (!port.type.shape || port.type.shape->size() == 2);
  };
  for (const Port& port : session.outputs())
    if (port.name == "logits" && scores(port)) return port.name;
  for (const Port& port : session.outputs())
    if (scores(port)) return port.name;
  return fail(ErrorCode::unsupported, "the model has no output of a score for each class", {},
              "`winml eval` judges image classifiers with an output [batch, classes]");
}

Result<Contract> read_contract(const Session& session, const ImageProcessor& processor) {
  Contract contract;
  MK_TRY(contract.input, image_input(session));
  MK_TRY(contract.output, score_output(session));
  const Shape& shape = *contract.input->type.shape;
  contract.size = processor.fixed_size();
  if (shape[2].is_known() && shape[3].is_known()) {
    const ImageSize wanted{static_cast<int>(shape[2].value), static_cast<int>(shape[3].value)};
    if (contract.size && *contract.size != wanted)
      return fail(ErrorCode::usage,
                  "the model takes images of " + to_string(shape[2]) + " x " + to_string(shape[3]) +
                      ", but the preprocessor makes " + std::to_string(contract.size->height) + " x " +
                      std::to_string(contract.size->width),
                  processor.name(), "is preprocessor_config.json another model's?");
    contract.size = wanted;
  }
  if (shape[0].is_known()) {
    contract.batch = shape[0].value;
  } else if (contract.size) {
    const auto bytes = static_cast<std::size_t>(contract.size->height) *
                       static_cast<std::size_t>(contract.size->width) * 3 * sizeof(float);
    contract.batch = std::clamp(static_cast<std::int64_t>(max_batch_bytes / bytes), std::int64_t{1}, preferred_batch);
  }
  if (contract.batch <= 0) return fail(ErrorCode::unsupported, "the model's batch is empty", contract.input->name);
  return contract;
}

Status check_columns(const Dataset& dataset, const ImageClassificationOptions& options) {
  std::string missing;
  for (const auto& [key, column] :
       {std::pair("input_column", options.input_column), std::pair("label_column", options.label_column)})
    if (std::ranges::find(dataset.columns(), column) == dataset.columns().end())
      missing += (missing.empty() ? "" : ", ") + std::string(key) + "='" + column + "'";
  if (missing.empty()) return {};
  std::string there;
  for (const std::string& column : dataset.columns()) there += (there.empty() ? "" : ", ") + column;
  return fail(ErrorCode::usage, "missing column(s) " + missing + "; the data set has " + there, {},
              "name them with --column input_column=NAME --column label_column=NAME");
}

struct Sample {
  std::uint64_t row;
  std::size_t label;
};

// The labels alone, which are quick to read: what they rule out need not be decoded.
Result<std::vector<Sample>> label_rows(const Dataset& dataset, const ModelLabels& labels,
                                       const ImageClassificationOptions& options, ImageClassificationReport& report) {
  const LabelAligner aligner(dataset.class_names(options.label_column), options.label_mapping, labels);
  MK_TRY(const auto reader, dataset.read(std::span(&options.label_column, 1), choose_rows(report.rows, options.rows)));
  std::vector<Sample> samples;
  for (Row row;;) {
    MK_TRY(const bool more, reader->next(row));
    if (!more) break;
    MK_TRY(const auto label, aligner.align(row.values[0], row.where));
    if (label)
      samples.push_back({row.index, static_cast<std::size_t>(*label)});
    else
      ++report.without_label;
  }
  if (samples.empty())
    return fail(ErrorCode::usage, "no overlap between the labels of data set and model", {},
                "--label-mapping FILE.json gives the model's id of every label");
  return samples;
}

// Images become batches, batches scores, scores counts.
class AccuracyMeter {
 public:
  AccuracyMeter(const Session& session, const ImageProcessor& processor, Contract contract,
                ImageClassificationReport& report)
      : session_(session), processor_(processor), contract_(std::move(contract)), report_(report) {
    report_.batch = contract_.batch;
  }

  Status add(const Image& image, std::size_t label, std::string_view where) {
    const ImageSize size = processor_.output_size({image.height, image.width});
    const std::size_t values = static_cast<std::size_t>(size.height) * static_cast<std::size_t>(size.width) * 3;
    if (contract_.size && size != *contract_.size)
      return fail(ErrorCode::usage,
                  "the image becomes " + std::to_string(size.height) + " x " + std::to_string(size.width) +
                      ", the model takes " + std::to_string(contract_.size->height) + " x " +
                      std::to_string(contract_.size->width),
                  std::string(where));
    if (labels_.empty()) {
      tensor_ = {contract_.input->name, DataType::float32, {contract_.batch, 3, size.height, size.width}, {}, {}};
      tensor_.data.assign(static_cast<std::size_t>(contract_.batch) * values * sizeof(float), std::byte{0});
    }
    MK_CHECK(processor_.process(image, tensor_.values<float>().subspan(labels_.size() * values, values)));
    labels_.push_back(label);
    return static_cast<std::int64_t>(labels_.size()) == contract_.batch ? flush() : Status();
  }

  // Runs what has gathered. A fixed batch keeps its zeros at the end; a free one is cut.
  Status flush() {
    if (labels_.empty()) return {};
    if (interrupted()) return fail(ErrorCode::interrupted, "interrupted");
    if (!(*contract_.input->type.shape)[0].is_known()) {
      tensor_.data.resize(tensor_.data.size() / static_cast<std::size_t>(tensor_.dims[0]) * labels_.size());
      tensor_.dims[0] = static_cast<std::int64_t>(labels_.size());
    }
    std::vector<HostTensor> inputs;
    if (contract_.input->type.element == DataType::float32) {
      inputs.push_back(std::move(tensor_));
    } else {
      MK_TRY(auto narrow, converted(tensor_, contract_.input->type.element));
      inputs.push_back(std::move(narrow));
    }
    MK_TRY(const auto outputs, session_.run(inputs, std::span(&contract_.output, 1)));
    MK_CHECK(count(outputs.front()));
    labels_.clear();
    return {};
  }

  std::uint64_t first() const { return first_; }
  std::uint64_t in_five() const { return in_five_; }

 private:
  Status count(const HostTensor& scores) {
    if (scores.dims.size() != 2 || scores.dims[0] < static_cast<std::int64_t>(labels_.size()) || scores.dims[1] == 0)
      return fail(ErrorCode::unsupported, "the output has no score for each class of each image", scores.name);
    MK_TRY(const auto values, float64_values(scores));
    report_.classes = scores.dims[1];
    const auto classes = static_cast<std::size_t>(scores.dims[1]);
    for (std::size_t i = 0; i < labels_.size(); ++i) {
      if (labels_[i] >= classes)
        return fail(
            ErrorCode::usage,
            "label " + std::to_string(labels_[i]) + " is beyond the model's " + std::to_string(classes) + " classes",
            scores.name, "map the data set's labels with --label-mapping FILE.json");
      const auto row = std::span(values).subspan(i * classes, classes);
      const std::size_t rank = rank_of(row, labels_[i]);
      const bool finite = row[labels_[i]] == row[labels_[i]];
      report_.not_finite += finite ? 0 : 1;
      first_ += finite && rank < 1 ? 1 : 0;
      in_five_ += finite && rank < 5 ? 1 : 0;
      ++report_.samples;
    }
    return {};
  }

  const Session& session_;
  const ImageProcessor& processor_;
  Contract contract_;
  ImageClassificationReport& report_;
  HostTensor tensor_;
  std::vector<std::size_t> labels_;  // of the images in tensor_
  std::uint64_t first_ = 0;
  std::uint64_t in_five_ = 0;
};

}  // namespace

std::vector<std::uint64_t> choose_rows(std::uint64_t row_count, const RowChoice& choice) {
  const auto wanted = static_cast<std::size_t>(choice.samples == 0 ? row_count : std::min(choice.samples, row_count));
  std::vector<std::uint64_t> rows(wanted);
  if (choice.shuffle && wanted < row_count) {
    const auto order = Random(choice.seed).permutation(static_cast<std::size_t>(row_count));
    std::copy_n(order.begin(), wanted, rows.begin());
    std::ranges::sort(rows);
  } else {
    std::iota(rows.begin(), rows.end(), std::uint64_t{0});
  }
  return rows;
}

Result<ImageClassificationReport> evaluate_image_classification(const Session& session, const ImageProcessor& processor,
                                                                const ModelLabels& labels, const Dataset& dataset,
                                                                const ImageClassificationOptions& options,
                                                                Progress& progress) {
  ImageClassificationReport report;
  report.rows = dataset.row_count();
  MK_CHECK(check_columns(dataset, options));
  MK_TRY(Contract contract, read_contract(session, processor));
  MK_TRY(const std::vector<Sample> samples, label_rows(dataset, labels, options, report));
  AccuracyMeter meter(session, processor, std::move(contract), report);

  const auto stage = progress.stage("evaluate");
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::uint64_t> rows;
  rows.reserve(samples.size());
  for (const Sample& sample : samples) rows.push_back(sample.row);
  MK_TRY(const auto reader, dataset.read(std::span(&options.input_column, 1), std::move(rows)));
  Row row;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    MK_TRY(const bool more, reader->next(row));
    if (!more) return fail(ErrorCode::malformed, "the data set ends early", row.where);
    MK_TRY(const auto bytes, image_bytes(row.values[0], dataset, row.where));
    if (!bytes) {
      ++report.without_image;
      continue;
    }
    MK_TRY(const Image image, decode_image(*bytes, row.where));
    MK_CHECK(meter.add(image, samples[i].label, row.where));
    stage->update(i + 1, samples.size());
  }
  MK_CHECK(meter.flush());
  report.total_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (report.samples == 0) return fail(ErrorCode::usage, "no row has an image", options.input_column);
  stage->done();

  report.accuracy = static_cast<double>(meter.first()) / static_cast<double>(report.samples);
  if (report.classes > 5) report.top_5 = static_cast<double>(meter.in_five()) / static_cast<double>(report.samples);
  return report;
}

}  // namespace mk
