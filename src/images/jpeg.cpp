#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <memory>
// jpeglib.h needs the declarations above.
#include <jerror.h>
#include <jpeglib.h>

#include "images/codecs.h"

namespace mk::codecs {
namespace {

constexpr int max_scans = 500;  // a progressive file with more of them is an attack on our time
constexpr JOCTET end_of_image[2] = {0xff, JPEG_EOI};

// libjpeg's state with ours beside it. Its errors jump back to decode(), so nothing that they jump over owns memory.
struct Reader {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
  bool ended;      // the data ended before the end marker
  bool truncated;  // and something of the image was missing
};

Reader& reader_of(j_common_ptr info) { return *static_cast<Reader*>(info->client_data); }

[[noreturn]] void escape(Reader& reader, const char* message) {
  std::snprintf(reader.message, sizeof reader.message, "%s", message);
  std::longjmp(reader.escape, 1);
}

extern "C" {

static void on_error(j_common_ptr info) {
  Reader& reader = reader_of(info);
  info->err->format_message(info, reader.message);
  std::longjmp(reader.escape, 1);
}

static void on_message(j_common_ptr info, int level) {
  Reader& reader = reader_of(info);
  if (level < 0 && reader.ended && info->err->msg_code == JWRN_HIT_MARKER) reader.truncated = true;
}

static void init_source(j_decompress_ptr) {}
static void term_source(j_decompress_ptr) {}

static boolean fill_input(j_decompress_ptr info) {
  reader_of(reinterpret_cast<j_common_ptr>(info)).ended = true;
  info->src->next_input_byte = end_of_image;
  info->src->bytes_in_buffer = sizeof end_of_image;
  return TRUE;
}

static void skip_input(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  const std::size_t step = std::min(static_cast<std::size_t>(count), info->src->bytes_in_buffer);
  info->src->next_input_byte += step;
  info->src->bytes_in_buffer -= step;
  if (step < static_cast<std::size_t>(count)) fill_input(info);
}

static void on_progress(j_common_ptr info) {
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number > max_scans) escape(reader_of(info), "too many scans");
}
}

void start(Reader& reader, Bytes bytes) {
  reader.info.err = jpeg_std_error(&reader.errors);
  reader.info.client_data = &reader;
  reader.errors.error_exit = on_error;
  reader.errors.emit_message = on_message;
  reader.source.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  reader.source.bytes_in_buffer = bytes.size();
  reader.source.init_source = init_source;
  reader.source.fill_input_buffer = fill_input;
  reader.source.skip_input_data = skip_input;
  reader.source.resync_to_restart = jpeg_resync_to_restart;
  reader.source.term_source = term_source;
  reader.progress.progress_monitor = on_progress;
}

bool starts_with(const jpeg_marker_struct& marker, std::string_view prefix) {
  return marker.data_length >= prefix.size() && std::memcmp(marker.data, prefix.data(), prefix.size()) == 0;
}

int orientation_of(const jpeg_decompress_struct& info) {
  using namespace std::string_view_literals;
  constexpr auto xmp_prefix = "http://ns.adobe.com/xap/1.0/\0"sv;
  int xmp = 0;
  for (const auto* marker = info.marker_list; marker != nullptr; marker = marker->next) {
    if (starts_with(*marker, "Exif\0\0"sv)) {
      const int found = exif_orientation(std::as_bytes(std::span(marker->data, marker->data_length)));
      if (found != 0) return found;
    } else if (starts_with(*marker, xmp_prefix)) {
      xmp = xmp_orientation(
          {reinterpret_cast<const char*>(marker->data) + xmp_prefix.size(), marker->data_length - xmp_prefix.size()});
    }
  }
  return xmp;
}

// Adobe's files have the four inks inverted, and Pillow takes every CMYK file for one of them.
void to_rgb(const std::uint8_t* inks, std::uint8_t* rgb, int width) {
  for (int x = 0; x < width; ++x, inks += 4, rgb += 3) {
    const int light = inks[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - inks[c]) * light + 128;
      rgb[c] = static_cast<std::uint8_t>(light - ((product + (product >> 8)) >> 8));
    }
  }
}

// The header, into out.image's size. False after an error, with reader.message set.
bool read_header(Reader& reader, Decoded& out) {
  if (setjmp(reader.escape) != 0) return false;
  jpeg_create_decompress(&reader.info);
  reader.info.src = &reader.source;
  reader.info.progress = &reader.progress;
  jpeg_save_markers(&reader.info, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&reader.info, TRUE);
  out.orientation = orientation_of(reader.info);
  switch (reader.info.num_components) {
    case 1:
    case 3:
      reader.info.out_color_space = JCS_RGB;
      break;
    case 4:
      reader.info.out_color_space = JCS_CMYK;
      break;
    default:
      escape(reader, "not one, three or four components");
  }
  return true;
}

// The rows, into out.image, whose memory is there; `inks` has room for a row of CMYK.
bool read_rows(Reader& reader, Decoded& out, std::vector<std::uint8_t>& inks) {
  if (setjmp(reader.escape) != 0) return false;
  jpeg_start_decompress(&reader.info);
  if (reader.ended && jpeg_has_multiple_scans(&reader.info) != 0) reader.truncated = true;
  while (reader.info.output_scanline < reader.info.output_height) {
    std::uint8_t* target = out.image.row(static_cast<int>(reader.info.output_scanline));
    JSAMPROW row = inks.empty() ? target : inks.data();
    if (jpeg_read_scanlines(&reader.info, &row, 1) != 1) escape(reader, "a row is missing");
    if (!inks.empty()) to_rgb(inks.data(), target, out.image.width);
    if (reader.truncated) escape(reader, "the data is truncated");
  }
  jpeg_finish_decompress(&reader.info);
  return true;
}

}  // namespace

Outcome decode_jpeg(Bytes bytes) {
  Decoded out;
  auto reader = std::make_unique<Reader>();
  std::memset(reader.get(), 0, sizeof(Reader));
  start(*reader, bytes);
  std::vector<std::uint8_t> inks;
  std::string problem;
  bool good = read_header(*reader, out);
  if (good) {
    problem = size_problem(reader->info.image_width, reader->info.image_height);
    good = problem.empty();
  }
  if (good) {
    out.image = Image(static_cast<int>(reader->info.image_width), static_cast<int>(reader->info.image_height));
    if (reader->info.out_color_space == JCS_CMYK) inks.resize(static_cast<std::size_t>(out.image.width) * 4);
    good = read_rows(*reader, out, inks);
  }
  jpeg_destroy_decompress(&reader->info);
  if (!good) return tl::make_unexpected(problem.empty() ? std::string(reader->message) : problem);
  return out;
}

}  // namespace mk::codecs
