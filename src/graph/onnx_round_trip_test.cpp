#include "graph/onnx_round_trip.h"

#include "testing/testing.h"

namespace mk {
namespace {

// The fuzzer's seeds, and each of them with any one byte changed.
TEST(OnnxRoundTrip, SeedsAndTheirNeighbours) {
  const Path folder = testing::repository("tests/data/fuzz/onnx_reader");
  ASSERT_OK_AND(const auto names, list_folder(folder));
  ASSERT_FALSE(names.empty());
  for (const Path& name : names) {
    ASSERT_OK_AND(std::string bytes, read_text(folder / name));
    ASSERT_OK(read_onnx(std::as_bytes(std::span(bytes)), {}, {.require_external_data = false}));
    EXPECT_EQ(round_trip_fault(std::as_bytes(std::span(bytes))), "") << name;
    for (char& byte : bytes) {
      const char original = byte;
      for (const int change : {1, 2, 8, 0x80, 0xff}) {
        byte = static_cast<char>(original ^ change);
        ASSERT_EQ(round_trip_fault(std::as_bytes(std::span(bytes))), "") << name << " at " << &byte - bytes.data();
      }
      byte = original;
    }
  }
}

}  // namespace
}  // namespace mk
