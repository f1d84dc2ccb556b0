#include "images/decode.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "images/codecs.h"

namespace mk {
namespace codecs {

std::string size_problem(std::int64_t width, std::int64_t height) {
  if (width > 0 && height > 0 && width <= max_side && height <= max_side && width * height <= max_image_pixels)
    return {};
  return "an image of " + std::to_string(width) + " x " + std::to_string(height) + " pixels is over the limit of " +
         std::to_string(max_image_pixels);
}

}  // namespace codecs
namespace {

using codecs::Bytes;

struct Signature {
  std::string_view bytes;
  std::size_t at;
  std::string_view format;
  codecs::Outcome (*decode)(Bytes);  // null: known, not supported
};

using namespace std::string_view_literals;
constexpr std::array signatures{
    Signature{"\xff\xd8\xff"sv, 0, "JPEG", codecs::decode_jpeg},
    Signature{"\x89PNG\r\n\x1a\n"sv, 0, "PNG", codecs::decode_png},
    Signature{"WEBP"sv, 8, "WebP", codecs::decode_webp},
    Signature{"GIF8"sv, 0, "GIF", nullptr},
    Signature{"II*\0"sv, 0, "TIFF", nullptr},
    Signature{"MM\0*"sv, 0, "TIFF", nullptr},
    Signature{"ftypavif"sv, 4, "AVIF", nullptr},
    Signature{"ftyphei"sv, 4, "HEIF", nullptr},
    Signature{"\0\0\0\x0cjP  "sv, 0, "JPEG 2000", nullptr},
    Signature{"BM"sv, 0, "BMP", nullptr},
};

bool matches(const Signature& signature, Bytes bytes) {
  return bytes.size() >= signature.at + signature.bytes.size() &&
         std::memcmp(bytes.data() + signature.at, signature.bytes.data(), signature.bytes.size()) == 0;
}

}  // namespace

Result<Image> decode_image(std::span<const std::byte> bytes, std::string_view name) {
  const auto* signature =
      std::find_if(signatures.begin(), signatures.end(), [&](const Signature& s) { return matches(s, bytes); });
  if (signature == signatures.end())
    return fail(ErrorCode::malformed, bytes.empty() ? "the image is empty" : "the bytes are no image",
                std::string(name), "JPEG, PNG and WebP are read");
  if (signature->decode == nullptr)
    return fail(ErrorCode::unsupported, std::string(signature->format) + " images are not supported", std::string(name),
                "convert it to PNG, JPEG or WebP");
  try {
    codecs::Outcome outcome = signature->decode(bytes);
    if (!outcome)
      return fail(ErrorCode::malformed, "broken " + std::string(signature->format) + " image: " + outcome.error(),
                  std::string(name));
    return codecs::turn(std::move(outcome->image), outcome->orientation);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::failed, "no memory for the image", std::string(name));
  }
}

Result<Image> read_image(const Path& path) {
  MK_TRY(const auto file, File::open(path));
  if (file->size() > std::uint64_t{1} << 30)
    return fail(ErrorCode::malformed, "the file is larger than 1 GiB, too much for an image", to_utf8(path));
  std::vector<std::byte> bytes(static_cast<std::size_t>(file->size()));
  MK_CHECK(file->read(0, bytes));
  return decode_image(bytes, to_utf8(path));
}

}  // namespace mk
