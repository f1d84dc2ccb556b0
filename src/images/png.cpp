#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "images/codecs.h"

namespace mk::codecs {
namespace {

constexpr png_alloc_size_t max_chunk = 16u << 20;  // of text, profiles, EXIF: more is an attack on our memory

// Everything that owns memory is here, outside the functions that libpng's errors jump out of.
struct Reader {
  Bytes bytes;
  std::size_t position = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  png_infop tail = nullptr;  // chunks after the image
  std::jmp_buf escape;
  char message[128] = {};

  int bit_depth = 0;
  int color_type = 0;
  std::vector<png_byte> samples;  // rows as libpng gives them
  std::vector<png_bytep> rows;
  std::array<std::uint8_t, std::size_t{256} * 3> palette;

  Reader() {
    for (std::size_t i = 0; i < 256; ++i)
      std::fill_n(palette.data() + i * 3, 3, static_cast<std::uint8_t>(i));  // Pillow's, for entries the file lacks
  }
  ~Reader() { png_destroy_read_struct(&png, &info, &tail); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
};

extern "C" {

static void on_error(png_structp png, png_const_charp message) {
  auto& reader = *static_cast<Reader*>(png_get_error_ptr(png));
  std::snprintf(reader.message, sizeof reader.message, "%s", message);
  std::longjmp(reader.escape, 1);
}

static void on_warning(png_structp, png_const_charp) {}

static void read_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto& reader = *static_cast<Reader*>(png_get_io_ptr(png));
  if (count > reader.bytes.size() - reader.position) png_error(png, "the data is truncated");
  std::memcpy(out, reader.bytes.data() + reader.position, count);
  reader.position += count;
}
}

bool read_header(Reader& reader) {
  if (setjmp(reader.escape) != 0) return false;
  png_set_read_fn(reader.png, &reader, read_bytes);
  png_set_user_limits(reader.png, max_side, max_side);
  png_set_chunk_malloc_max(reader.png, max_chunk);
  png_read_info(reader.png, reader.info);
  reader.bit_depth = png_get_bit_depth(reader.png, reader.info);
  reader.color_type = png_get_color_type(reader.png, reader.info);
  return true;
}

// What libpng does to the samples: to 8 bits (16-bit gray stays), no alpha. Palette indices stay.
void set_transformations(Reader& reader) {
  const bool gray = reader.color_type == PNG_COLOR_TYPE_GRAY;
  if (gray && reader.bit_depth < 8) png_set_expand_gray_1_2_4_to_8(reader.png);
  if (reader.bit_depth < 8) png_set_packing(reader.png);
  if (reader.bit_depth == 16 && !gray) png_set_strip_16(reader.png);
  if ((reader.color_type & PNG_COLOR_MASK_ALPHA) != 0) png_set_strip_alpha(reader.png);
  png_set_interlace_handling(reader.png);
}

bool prepare_rows(Reader& reader, std::size_t& row_bytes) {
  if (setjmp(reader.escape) != 0) return false;
  set_transformations(reader);
  png_read_update_info(reader.png, reader.info);
  row_bytes = png_get_rowbytes(reader.png, reader.info);
  png_colorp entries = nullptr;
  int count = 0;
  if (png_get_PLTE(reader.png, reader.info, &entries, &count) != 0 && reader.color_type == PNG_COLOR_TYPE_PALETTE)
    for (int i = 0; i < count; ++i) {
      std::uint8_t* entry = reader.palette.data() + static_cast<std::size_t>(i) * 3;
      entry[0] = entries[i].red;
      entry[1] = entries[i].green;
      entry[2] = entries[i].blue;
    }
  return true;
}

bool read_rows(Reader& reader) {
  if (setjmp(reader.escape) != 0) return false;
  png_read_image(reader.png, reader.rows.data());
  return true;
}

// Broken chunks after the image do not make it unreadable.
bool read_tail(Reader& reader) {
  if (setjmp(reader.escape) != 0) return false;
  png_read_end(reader.png, reader.tail);
  return true;
}

// ImageMagick's way to keep EXIF: "\nexif\n    LENGTH\nHEX...", hex digits broken into lines.
int raw_profile_orientation(std::string_view text) {
  for (int line = 0; line < 3; ++line) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return 0;
    text.remove_prefix(end + 1);
  }
  std::vector<std::byte> bytes;
  int high = -1;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) continue;
    if (high >= 0) bytes.push_back(static_cast<std::byte>(high * 16 + digit));
    high = high >= 0 ? -1 : digit;
  }
  return exif_orientation(bytes);
}

int orientation_in(Reader& reader, png_infop info) {
  png_bytep exif = nullptr;
  png_uint_32 length = 0;
  if (png_get_eXIf_1(reader.png, info, &length, &exif) != 0)
    if (const int found = exif_orientation(std::as_bytes(std::span(exif, length)))) return found;
  png_textp texts = nullptr;
  int count = 0, raw = 0, xmp = 0;
  png_get_text(reader.png, info, &texts, &count);
  for (int i = 0; i < count; ++i) {
    const std::string_view key = texts[i].key;
    const std::string_view text(texts[i].text, texts[i].itxt_length != 0 ? texts[i].itxt_length : texts[i].text_length);
    if (key == "Raw profile type exif") raw = raw_profile_orientation(text);
    if (key == "XML:com.adobe.xmp") xmp = xmp_orientation(text);
  }
  return raw != 0 ? raw : xmp;
}

int orientation_of(Reader& reader) {
  const int found = orientation_in(reader, reader.info);
  return found != 0 ? found : orientation_in(reader, reader.tail);
}

using Convert = void (*)(const Reader&, const png_byte*, std::uint8_t*, int);

void gray8(const Reader&, const png_byte* in, std::uint8_t* out, int width) {
  for (int x = 0; x < width; ++x, out += 3) out[0] = out[1] = out[2] = in[x];
}

void gray16(const Reader&, const png_byte* in, std::uint8_t* out, int width) {
  for (int x = 0; x < width; ++x, in += 2, out += 3) out[0] = out[1] = out[2] = in[0] != 0 ? 255 : in[1];
}

void indexed(const Reader& reader, const png_byte* in, std::uint8_t* out, int width) {
  for (int x = 0; x < width; ++x, out += 3) std::memcpy(out, reader.palette.data() + std::size_t{in[x]} * 3, 3);
}

void rgb8(const Reader&, const png_byte* in, std::uint8_t* out, int width) {
  std::memcpy(out, in, static_cast<std::size_t>(width) * 3);
}

Convert conversion_of(const Reader& reader) {
  switch (reader.color_type) {
    case PNG_COLOR_TYPE_PALETTE:
      return indexed;
    case PNG_COLOR_TYPE_GRAY:
      return reader.bit_depth == 16 ? gray16 : gray8;
    case PNG_COLOR_TYPE_GRAY_ALPHA:
      return gray8;
    default:
      return rgb8;
  }
}

// Empty, or what is wrong.
std::string decode(Reader& reader, Decoded& out) {
  if (!read_header(reader)) return reader.message;
  const auto width = png_get_image_width(reader.png, reader.info);
  const auto height = png_get_image_height(reader.png, reader.info);
  if (std::string problem = size_problem(width, height); !problem.empty()) return problem;
  std::size_t row_bytes = 0;
  if (!prepare_rows(reader, row_bytes)) return reader.message;
  out.image = Image(static_cast<int>(width), static_cast<int>(height));
  const Convert convert = conversion_of(reader);
  const bool direct = convert == rgb8 && row_bytes == out.image.row_bytes();
  if (!direct) reader.samples.resize(row_bytes * height);
  reader.rows.resize(height);
  for (png_uint_32 y = 0; y < height; ++y)
    reader.rows[y] = direct ? out.image.row(static_cast<int>(y)) : reader.samples.data() + row_bytes * y;
  if (!read_rows(reader)) return reader.message;
  if (!direct)
    for (int y = 0; y < out.image.height; ++y)
      convert(reader, reader.rows[static_cast<std::size_t>(y)], out.image.row(y), out.image.width);
  read_tail(reader);
  out.orientation = orientation_of(reader);
  return {};
}

}  // namespace

Outcome decode_png(Bytes bytes) {
  Reader reader;
  reader.bytes = bytes;
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, on_error, on_warning);
  if (reader.png != nullptr) {
    reader.info = png_create_info_struct(reader.png);
    reader.tail = png_create_info_struct(reader.png);
  }
  if (reader.info == nullptr || reader.tail == nullptr) return tl::make_unexpected(std::string("out of memory"));
  Decoded out;
  if (std::string problem = decode(reader, out); !problem.empty()) return tl::make_unexpected(std::move(problem));
  return out;
}

}  // namespace mk::codecs
