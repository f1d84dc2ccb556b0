#pragma once
// From an image to a model's pixel_values, as transformers' (4.57, slow) image processors do it: resize, centre crop,
// rescale, normalise, channels first. Values are within 1e-6 of theirs: rescaling in double rounded to float, then
// (x - mean) / std in float. The Fast classes of the same names take the same path.
// An ImageProcessor is immutable and may be shared by threads.

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/json_fwd.h"
#include "base/path.h"
#include "base/result.h"
#include "images/image.h"
#include "images/resize.h"

namespace mk {

class JsonView;

struct ImageSize {
  int height = 0;
  int width = 0;
  bool operator==(const ImageSize&) const = default;
};

// Height and width of the images that a folder's preprocessor_config.json asks for: what its processor makes of every
// image; of a processor that we do not know, or whose result depends on the image, its crop, else its size (the
// shortest edge as a square). Nothing where there is no such file, or no size in it. malformed.
Result<std::optional<ImageSize>> preprocessed_size(const Path& folder);

class ImageProcessor {
 public:
  // From a preprocessor_config.json. `model_type` (config.json's) decides the class where the file names none.
  // unsupported for a class that is not known (the message lists those that are), malformed for wrong fields.
  static Result<ImageProcessor> parse(const JsonView& config, std::string_view model_type = {});
  // preprocessor_config.json of a folder, with its config.json where there is one. not_found when it is missing.
  static Result<ImageProcessor> load(const Path& folder);

  const std::string& name() const { return name_; }  // "ViTImageProcessor"

  // The size of every output; null when it depends on the image.
  std::optional<ImageSize> fixed_size() const;
  ImageSize output_size(ImageSize image) const;

  // pixel_values of one image: 3 x height x width floats of output_size(), row-major, into `out`.
  Status process(const Image& image, std::span<float> out) const;

 private:
  friend struct ProcessorReader;
  ImageSize resized(ImageSize image) const;

  std::string name_;
  std::optional<ImageSize> exact_;    // resize to this, or
  std::optional<int> shortest_edge_;  // the shorter edge to this; neither: no resizing
  Resample resample_ = Resample::bilinear;
  std::optional<ImageSize> crop_;
  std::array<std::array<float, 256>, 3> values_{};  // of each channel's byte
};

}  // namespace mk
