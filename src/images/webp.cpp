#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "images/codecs.h"

namespace mk::codecs {
namespace {

using Demuxer = std::unique_ptr<WebPDemuxer, decltype(&WebPDemuxDelete)>;

Bytes chunk(const WebPDemuxer* demuxer, const char* name, WebPChunkIterator& iterator) {
  if (WebPDemuxGetChunk(demuxer, name, 1, &iterator) == 0) return {};
  return std::as_bytes(std::span(iterator.chunk.bytes, iterator.chunk.size));
}

int orientation_of(const WebPDemuxer* demuxer) {
  WebPChunkIterator iterator;
  std::memset(&iterator, 0, sizeof iterator);
  int found = exif_orientation(chunk(demuxer, "EXIF", iterator));
  WebPDemuxReleaseChunkIterator(&iterator);
  if (found != 0) return found;
  const Bytes xmp = chunk(demuxer, "XMP ", iterator);
  found = xmp_orientation({reinterpret_cast<const char*>(xmp.data()), xmp.size()});
  WebPDemuxReleaseChunkIterator(&iterator);
  return found;
}

// The first frame into its place on the canvas, which is black elsewhere.
bool draw(const WebPIterator& frame, Image& canvas) {
  if (frame.complete == 0 || frame.x_offset < 0 || frame.y_offset < 0 || frame.width <= 0 || frame.height <= 0 ||
      frame.x_offset + frame.width > canvas.width || frame.y_offset + frame.height > canvas.height)
    return false;
  std::uint8_t* corner = canvas.row(frame.y_offset) + static_cast<std::size_t>(frame.x_offset) * 3;
  const auto stride = canvas.row_bytes();
  const std::size_t room =
      stride * static_cast<std::size_t>(frame.height - 1) + static_cast<std::size_t>(frame.width) * 3;
  int width = 0, height = 0;
  return WebPGetInfo(frame.fragment.bytes, frame.fragment.size, &width, &height) != 0 && width == frame.width &&
         height == frame.height &&
         WebPDecodeRGBInto(frame.fragment.bytes, frame.fragment.size, corner, room, static_cast<int>(stride)) !=
             nullptr;
}

}  // namespace

Outcome decode_webp(Bytes bytes) {
  const WebPData data{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  const Demuxer demuxer(WebPDemux(&data), WebPDemuxDelete);
  if (demuxer == nullptr) return tl::make_unexpected(std::string("the data is truncated or malformed"));
  const std::int64_t width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  const std::int64_t height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  if (std::string problem = size_problem(width, height); !problem.empty()) return tl::make_unexpected(problem);
  Decoded out{Image(static_cast<int>(width), static_cast<int>(height)), orientation_of(demuxer.get())};
  WebPIterator frame;
  std::memset(&frame, 0, sizeof frame);
  const bool drawn = WebPDemuxGetFrame(demuxer.get(), 1, &frame) != 0 && draw(frame, out.image);
  WebPDemuxReleaseIterator(&frame);
  if (!drawn) return tl::make_unexpected(std::string("the data cannot be decoded"));
  return out;
}

}  // namespace mk::codecs
