// Any bytes are an image or an error.

#include "images/decode.h"
#include "images/resize.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto image = mk::decode_image(std::as_bytes(std::span(data, size)), "input");
  if (image && image->rgb.size() < (1U << 20)) (void)mk::resize(*image, 17, 23, mk::Resample::bicubic);
  return 0;
}
