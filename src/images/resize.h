#pragma once
// Resizing equal to Pillow's (Image.resize, reducing_gap none) to the bit.
//
// Convolution with the filter stretched by the scale when shrinking; weights in fixed point of 22 bits; two passes with
// rounding to 8 bits between them; a pass whose length does not change is left out. The horizontal pass is first unless
// the height shrinks by more than twice the change in width. NEAREST picks pixel centres by repeated addition.

#include "base/result.h"
#include "images/image.h"

namespace mk {

// The numbers are those of PIL.Image.Resampling, as preprocessor_config.json has them.
enum class Resample { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3, box = 4, hamming = 5 };

// malformed when the size is not positive or has more than max_image_pixels (also between the passes).
Result<Image> resize(const Image& image, int width, int height, Resample filter);

}  // namespace mk
