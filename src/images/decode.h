#pragma once
// Images from the bytes of a file: JPEG, PNG and WebP, as Pillow's
//   ImageOps.exif_transpose(Image.open(file)).convert("RGB")
// delivers them, which is what transformers' load_image does. Alpha and transparency are dropped, palettes looked up,
// 16-bit samples cut to their high byte (16-bit gray is clipped at 255 instead, as Pillow does), CMYK is turned to RGB
// by Pillow's formula, and the orientation of EXIF (or XMP) is applied. No colour management. Of an animation the first
// frame. Bytes are untrusted: broken, truncated or oversized ones are errors. Thread-safe.

#include <cstddef>
#include <span>
#include <string_view>

#include "base/path.h"
#include "base/result.h"
#include "images/image.h"

namespace mk {

// `name` is what errors call the image (a file, a row). malformed for broken data, unsupported for other formats.
Result<Image> decode_image(std::span<const std::byte> bytes, std::string_view name);

Result<Image> read_image(const Path& path);

}  // namespace mk
