#pragma once
// The kinds of calibration data. Internal to calibration.

#include <memory>
#include <string>
#include <vector>

#include "calibration/calibration_data.h"
#include "datasets/dataset.h"

namespace mk {

// The leading dimension that every sample must have; 1 where it is free.
std::int64_t fixed_batch(std::span<const Port> inputs);

Result<std::unique_ptr<SampleSource>> archive_samples(const CalibrationData& data, std::span<const Port> inputs);

// Images as the bytes of their files.
struct EncodedImage {
  Cell::Bytes bytes;
  std::string where;
};
Result<std::unique_ptr<SampleSource>> image_samples(std::vector<EncodedImage> images, std::string description,
                                                    const CalibrationData& data, std::span<const Port> inputs);

Result<std::unique_ptr<SampleSource>> text_samples(std::vector<std::string> texts, std::string description,
                                                   const CalibrationData& data, std::span<const Port> inputs);

// A data set, whose cells decide which of the two it is.
Result<std::unique_ptr<SampleSource>> dataset_samples(const CalibrationData& data, std::span<const Port> inputs);

}  // namespace mk
