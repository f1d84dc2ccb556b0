#pragma once
// What models of images have in common: their input, and the rule of its size.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/family.h"

namespace mk::models {

// Floats [batch, channels, height, width].
struct ImageInputs {
  Value pixel_values;

  // usage where there is none, or it has another rank or no fixed number of channels.
  static ImageInputs read(const Scope& root, HeadContext& context);
};

struct ImageLimits {
  std::int64_t channels = 3;
  std::optional<std::array<std::int64_t, 2>> size;  // height and width that the configuration names
  bool fixed = false;                               // no other size can be served
};
// pixel_values in [0, 1] of the size asked for; else, unless it is fixed, the preprocessor's; else the configuration's;
// else 64 x 64. usage where another number of channels, or of a fixed size another one, is asked for.
Result<std::vector<InputSpec>> image_input_specs(const InputRequest& request, const ImageLimits& limits);

// usage where the input is not of that number of channels, nor of that size where one is given. A size that is fixed
// cannot be dynamic.
void expect_image(const Scope& s, Value pixel_values, const ImageLimits& limits);

// Whether height and width are fixed; usage where they are dynamic, naming what of the model needs them ("windows").
bool expect_fixed_size(const Scope& s, Value pixel_values, std::string_view needed_by);

// How many whole patches an image has, down and across. usage where it has none, or its height or width is not fixed.
std::optional<std::array<std::int64_t, 2>> patch_grid(const Scope& s, Value pixel_values,
                                                      std::array<std::int64_t, 2> patch);

}  // namespace mk::models
