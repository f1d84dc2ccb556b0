#pragma once
// Samples of a model's inputs, by number: what a model is calibrated with, judged on, compared by.

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "runtime/host_tensor.h"

namespace mk {

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual std::size_t size() const = 0;
  // Inputs of one run, made when asked for (an image decoded, a text tokenized); the same for the same number.
  // number < size().
  virtual Result<std::vector<HostTensor>> sample(std::size_t number) const = 0;
  // Where they come from, for reports: "images of digits.parquet", "random values in the inputs' ranges".
  virtual std::string description() const = 0;
};

}  // namespace mk
