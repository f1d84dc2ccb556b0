#include "graph/tensor.h"

#include <cstring>
#include <limits>
#include <numeric>
#include <thread>

#include "testing/testing.h"

namespace mk {
namespace {

Bytes counting_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return owned_bytes(std::move(bytes));
}

// Hides that the bytes are in memory, as a file's are not.
class OutOfMemory final : public ByteSource {
 public:
  explicit OutOfMemory(Bytes source) : source_(std::move(source)) {}
  std::uint64_t size() const override { return source_->size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    largest_read = std::max(largest_read, out.size());
    return source_->read(offset, out);
  }
  mutable std::size_t largest_read = 0;

 private:
  Bytes source_;
};

std::vector<std::byte> all_of(const Bytes& source) {
  auto bytes = read_all(*source);
  EXPECT_TRUE(bytes.has_value());
  return *bytes;
}

// Reads in blocks that fit nothing.
std::vector<std::byte> in_blocks(const Bytes& source, std::size_t block) {
  std::vector<std::byte> bytes(source->size());
  for (std::size_t at = 0; at < bytes.size(); at += block) {
    const std::size_t length = std::min(block, bytes.size() - at);
    EXPECT_TRUE(source->read(at, std::span(bytes).subspan(at, length)).has_value());
  }
  return bytes;
}

TEST(Tensor, Counts) {
  EXPECT_EQ(make_tensor("t", DataType::float32, {2, 3}, nullptr).byte_count(), 24u);
  EXPECT_EQ(make_tensor("t", DataType::float32, {}, nullptr).element_count(), 1u);
  EXPECT_EQ(make_tensor("t", DataType::float32, {2, 0, 5}, nullptr).byte_count(), 0u);
  EXPECT_EQ(make_tensor("t", DataType::int4, {3}, nullptr).byte_count(), 2u);
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(make_tensor("t", DataType::float32, {huge, huge}, nullptr).element_count(),
            std::numeric_limits<std::uint64_t>::max());
}

TEST(Tensor, IntegerValues) {
  const std::int8_t small[] = {-1, 127, -128};
  ASSERT_OK_AND(auto values, integer_values(make_tensor("t", DataType::int8, {3}, owned_values(std::span(small)))));
  EXPECT_EQ(values, (std::vector<std::int64_t>{-1, 127, -128}));
  // onnx: the first of two elements stands in the low four bits.
  ASSERT_OK_AND(auto nibbles,
                integer_values(make_tensor("t", DataType::int4, {3}, owned_bytes({std::byte{0x8f}, std::byte{0x07}}))));
  EXPECT_EQ(nibbles, (std::vector<std::int64_t>{-1, -8, 7}));
  ASSERT_OK_AND(auto pairs, integer_values(make_tensor("t", DataType::uint2, {5},
                                                       owned_bytes({std::byte{0xe4}, std::byte{0x02}}))));
  EXPECT_EQ(pairs, (std::vector<std::int64_t>{0, 1, 2, 3, 2}));
  const std::uint64_t large[] = {1ull << 63};
  EXPECT_EQ(integer_values(make_tensor("t", DataType::uint64, {1}, owned_values(std::span(large)))).error().code,
            ErrorCode::malformed);
  EXPECT_EQ(integer_values(scalar_tensor("t", 1.0f)).error().code, ErrorCode::unsupported);
  EXPECT_EQ(integer_values(make_tensor("t", DataType::int64, {1}, nullptr)).error().code, ErrorCode::failed);
}

TEST(Tensor, NumberValues) {
  ASSERT_OK_AND(auto one, number_values(scalar_tensor("t", 0.5f)));
  EXPECT_EQ(one, std::vector<double>{0.5});
  ASSERT_OK_AND(auto integer, number_values(scalar_tensor("t", std::int64_t{-3})));
  EXPECT_EQ(integer, std::vector<double>{-3});
  // float6e2m3, four elements in three bytes, low bits first: 0.125 (1), 1 (8), -7.5 (63), 7.5 (31).
  ASSERT_OK_AND(auto six, number_values(make_tensor("t", DataType::float6e2m3, {4},
                                                    owned_bytes({std::byte{0x01}, std::byte{0xf2}, std::byte{0x7f}}))));
  EXPECT_EQ(six, (std::vector<double>{0.125, 1, -7.5, 7.5}));
}

TEST(Bytes, ConcatenatedAndSliced) {
  const Bytes whole = counting_bytes(1000);
  const Bytes joined =
      concatenated({sliced(whole, 0, 10), sliced(whole, 10, 0), sliced(whole, 10, 300), sliced(whole, 310, 690)});
  EXPECT_EQ(all_of(joined), all_of(whole));
  EXPECT_EQ(in_blocks(joined, 7), all_of(whole));
  EXPECT_EQ(concatenated({})->size(), 0u);
  EXPECT_EQ(sliced(whole, 5, 3)->in_memory()->data(), whole->in_memory()->data() + 5);
}

TEST(Bytes, SideBySide) {
  const Bytes whole = counting_bytes(40);
  // Byte i is 7 * i. Two matrices of four rows: rows of 3 bytes, and rows of 2.
  const Bytes joined = side_by_side({sliced(whole, 0, 12), sliced(whole, 20, 8)}, {3, 2});
  const std::vector<int> wanted{0, 1, 2, 20, 21, 3, 4, 5, 22, 23, 6, 7, 8, 24, 25, 9, 10, 11, 26, 27};
  std::vector<int> found;
  for (const std::byte byte : all_of(joined)) found.push_back(std::to_integer<int>(byte) / 7);
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(in_blocks(joined, 7), all_of(joined));
  EXPECT_EQ(side_by_side({}, {})->size(), 0u);
}

TEST(Bytes, RangesOfFiles) {
  testing::TemporaryFolder folder;
  ASSERT_OK_AND(auto file, File::open(folder.write("weights", "0123456789")));
  const Bytes range = file_bytes({file, 2, 6});
  const Bytes part = sliced(range, 1, 3);
  ASSERT_TRUE(part->file_range());
  EXPECT_EQ(part->file_range()->offset, 3u);
  std::string text(3, ' ');
  ASSERT_OK(part->read(0, std::as_writable_bytes(std::span(text))));
  EXPECT_EQ(text, "345");
  EXPECT_FALSE(file_bytes({file, 8, 4})->read(0, std::as_writable_bytes(std::span(text))).has_value());
}

TEST(Bytes, ComputedOnceForAllBlocks) {
  int runs = 0;
  const Bytes source = computed(100, [&](std::span<std::byte> out) -> Status {
    ++runs;
    std::fill(out.begin(), out.end(), std::byte{5});
    return {};
  });
  EXPECT_EQ(in_blocks(source, 30), std::vector<std::byte>(100, std::byte{5}));
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(all_of(source), std::vector<std::byte>(100, std::byte{5}));
  const Bytes failing = computed(1, [](std::span<std::byte>) -> Status { return fail(ErrorCode::failed, "no"); });
  EXPECT_EQ(read_all(*failing).error().message, "no");
}

std::vector<std::byte> transposed_by_hand(const std::vector<std::byte>& in, std::size_t batch, std::size_t rows,
                                          std::size_t columns, std::size_t width) {
  std::vector<std::byte> out(in.size());
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        const std::size_t base = b * rows * columns;
        std::memcpy(&out[(base + c * rows + r) * width], &in[(base + r * columns + c) * width], width);
      }
    }
  }
  return out;
}

struct TransposeCase {
  std::size_t batch, rows, columns, width;
};
class Transposed : public ::testing::TestWithParam<TransposeCase> {};

TEST_P(Transposed, EveryBlockSizeGivesTheSame) {
  const auto [batch, rows, columns, width] = GetParam();
  const Bytes source = counting_bytes(batch * rows * columns * width);
  const auto expected = transposed_by_hand(all_of(source), batch, rows, columns, width);
  for (const Bytes& from : {source, Bytes(std::make_shared<OutOfMemory>(source))}) {
    const Bytes result = transposed(from, batch, rows, columns, width);
    EXPECT_EQ(all_of(result), expected);
    for (const std::size_t block : {std::size_t{1}, std::size_t{13}, rows * width, rows * width * 3 + 5}) {
      if (expected.size() / block > 20000) continue;
      ASSERT_EQ(in_blocks(result, block), expected) << block;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Transposed,
                         ::testing::Values(TransposeCase{1, 3, 5, 4}, TransposeCase{2, 17, 33, 4},
                                           TransposeCase{3, 16, 1, 2}, TransposeCase{1, 1, 9, 8},
                                           TransposeCase{1, 40, 70, 1}, TransposeCase{2, 40, 70, 2},
                                           TransposeCase{1, 19, 21, 8}, TransposeCase{1, 19, 21, 16},
                                           TransposeCase{1, 600, 2000, 4}, TransposeCase{1, 2000, 300, 2}));

TEST(Transposed, MemoryIsABandNotTheMatrix) {
  const auto source = std::make_shared<OutOfMemory>(counting_bytes(16u << 20));
  const Bytes result = transposed(source, 1, 1024, 4096, 4);
  std::vector<std::byte> block(1u << 20);
  for (std::uint64_t at = 0; at < result->size(); at += block.size()) ASSERT_OK(result->read(at, block));
  EXPECT_LE(source->largest_read, 1u << 20);
}

TEST(Cast, FloatsAcrossBlocks) {
  std::vector<float> values(40000);
  std::iota(values.begin(), values.end(), -20000.0f);
  const Bytes source = owned_values(std::span<const float>(values));
  const Bytes halves = cast(source, DataType::float32, DataType::float16);
  EXPECT_EQ(halves->size(), 80000u);
  const auto expected = all_of(halves);
  std::uint16_t first;
  std::memcpy(&first, expected.data(), 2);
  EXPECT_EQ(first, 0xf4e2);  // numpy: float16(-20000)
  EXPECT_EQ(in_blocks(cast(std::make_shared<OutOfMemory>(source), DataType::float32, DataType::float16), 12345),
            expected);
}

TEST(Cast, IntegersAndBool) {
  const std::int64_t values[] = {0, 1, -5, 300};
  const Bytes source = owned_values(std::span(values));
  const auto narrow = all_of(cast(source, DataType::int64, DataType::int32));
  std::int32_t numbers[4];
  std::memcpy(numbers, narrow.data(), sizeof numbers);
  EXPECT_EQ(numbers[2], -5);
  EXPECT_EQ(numbers[3], 300);
  EXPECT_EQ(all_of(cast(source, DataType::int64, DataType::boolean)),
            (std::vector<std::byte>{std::byte{0}, std::byte{1}, std::byte{1}, std::byte{1}}));
  EXPECT_EQ(read_all(*cast(source, DataType::int64, DataType::float32)).error().code, ErrorCode::unsupported);
  EXPECT_EQ(cast(source, DataType::int64, DataType::int64), source);
}

}  // namespace
}  // namespace mk
