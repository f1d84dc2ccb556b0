#include "calibration/calibration_data.h"

#include "testing/testing.h"

namespace mk {
namespace {

using testing::repository;

Port port(std::string name, DataType type, std::vector<std::int64_t> dims) {
  Shape shape;
  for (const std::int64_t dim : dims) shape.push_back(dim < 0 ? Dim::symbolic("batch") : Dim::known(dim));
  return {std::move(name), Type::tensor(type, std::move(shape))};
}

std::vector<float> floats(const HostTensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

std::vector<std::int64_t> integers(const HostTensor& tensor) {
  const auto values = int64_values(tensor);
  return values ? *values : std::vector<std::int64_t>{};
}

// x = [[1, 4, 9, 16], [1, 4, -9, 16]]
TEST(CalibrationData, RowsOfAnArchive) {
  const Path path = repository("tests/data/runtime/signed_inputs.npz");
  const std::vector inputs{port("x", DataType::float32, {-1, 4})};
  ASSERT_OK_AND(const auto source, open_calibration_data({.path = path}, inputs));
  ASSERT_EQ(source->size(), 2u);
  EXPECT_EQ(source->description(), "signed_inputs.npz");
  ASSERT_OK_AND(const auto second, source->sample(1));
  ASSERT_EQ(second.size(), 1u);
  EXPECT_EQ(second[0].dims, (std::vector<std::int64_t>{1, 4}));
  EXPECT_EQ(floats(second[0]), (std::vector<float>{1, 4, -9, 16}));

  const std::vector whole{port("x", DataType::float16, {2, 4})};  // a batch of two, in another type
  ASSERT_OK_AND(const auto batches, open_calibration_data({.path = path}, whole));
  ASSERT_EQ(batches->size(), 1u);
  ASSERT_OK_AND(const auto both, batches->sample(0));
  EXPECT_EQ(both[0].type, DataType::float16);
  EXPECT_EQ(both[0].dims, (std::vector<std::int64_t>{2, 4}));
}

TEST(CalibrationData, FoldersOfArchives) {
  const testing::TemporaryFolder folder;
  for (const char* name : {"a.npz", "b.npz"})
    std::filesystem::copy(repository("tests/data/runtime/signed_inputs.npz"), folder / name);
  const std::vector inputs{port("x", DataType::float32, {-1, 4})};
  ASSERT_OK_AND(const auto source, open_calibration_data({.path = folder.path()}, inputs));
  EXPECT_EQ(source->size(), 4u);
  for (const std::size_t number : {std::size_t{3}, std::size_t{0}, std::size_t{1}}) {
    ASSERT_OK_AND(const auto sample, source->sample(number));
    EXPECT_EQ(floats(sample[0])[2], number % 2 == 0 ? 9 : -9);
  }
}

TEST(CalibrationData, ArchivesThatDoNotFitSayWhatWould) {
  const std::vector inputs{port("x", DataType::float32, {-1, 4}), port("step", DataType::int64, {1})};
  const auto missing = open_calibration_data({.path = repository("tests/data/runtime/signed_inputs.npz")}, inputs);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::usage);
  EXPECT_NE(missing.error().message.find("step"), std::string::npos);
  EXPECT_NE(missing.error().hint.find("x, step"), std::string::npos);
  // x of [0, 4]
  const auto empty = open_calibration_data({.path = repository("tests/data/runtime/no_rows.npz")},
                                           std::vector{port("x", DataType::float32, {-1, 4})});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, ErrorCode::usage);
  EXPECT_NE(empty.error().where.find("no_rows.npz: x"), std::string::npos);
  // x of [2, 4], all NaN and infinities
  const auto nothing = open_calibration_data({.path = repository("tests/data/runtime/no_numbers.npz")},
                                             std::vector{port("x", DataType::float32, {-1, 4})});
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ErrorCode::usage);
  EXPECT_NE(nothing.error().where.find("no_numbers.npz: x"), std::string::npos);
  // Rows of 4 where the input takes 7.
  const auto shape = open_calibration_data({.path = repository("tests/data/runtime/signed_inputs.npz")},
                                           std::vector{port("x", DataType::float32, {-1, 7})});
  ASSERT_FALSE(shape);
  EXPECT_EQ(shape.error().code, ErrorCode::usage);
  EXPECT_NE(shape.error().where.find("signed_inputs.npz: x"), std::string::npos);
  EXPECT_FALSE(has_columns(repository("tests/data/runtime/signed_inputs.npz")));
  EXPECT_TRUE(has_columns("rows.parquet"));
  EXPECT_EQ(open_calibration_data({.path = "nowhere.npz"}, inputs).error().code, ErrorCode::not_found);
  const testing::TemporaryFolder folder;
  EXPECT_EQ(open_calibration_data({.path = folder.write("x.csv", "1,2")}, inputs).error().code, ErrorCode::usage);
}

class Texts : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nhello\nworld\n");
    data_ = {.path = folder_.write("texts.txt", "hello world\r\n\n  \nworld\nhello hello\n"), .assets = folder_.path()};
  }
  testing::TemporaryFolder folder_;
  CalibrationData data_;
};

TEST_F(Texts, LinesInTheInputsThatThereAre) {
  const std::vector inputs{port("input_ids", DataType::int32, {-1, 5}),
                           port("attention_mask", DataType::int64, {-1, 5})};
  ASSERT_OK_AND(const auto source, open_calibration_data(data_, inputs));
  ASSERT_EQ(source->size(), 3u);
  ASSERT_OK_AND(const auto first, source->sample(0));
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0].type, DataType::int32);
  EXPECT_EQ(first[0].dims, (std::vector<std::int64_t>{1, 5}));
  EXPECT_EQ(integers(first[0]), (std::vector<std::int64_t>{2, 4, 5, 3, 0}));
  EXPECT_EQ(integers(first[1]), (std::vector<std::int64_t>{1, 1, 1, 1, 0}));
  ASSERT_OK_AND(const auto last, source->sample(2));
  EXPECT_EQ(integers(last[0]), (std::vector<std::int64_t>{2, 4, 4, 3, 0}));
}

TEST_F(Texts, BatchesAndFreeLengths) {
  const std::vector inputs{port("input_ids", DataType::int64, {2, 4})};
  ASSERT_OK_AND(const auto batches, open_calibration_data(data_, inputs));
  EXPECT_EQ(batches->size(), 2u);
  ASSERT_OK_AND(const auto last, batches->sample(1));  // filled up from the beginning
  EXPECT_EQ(integers(last[0]), (std::vector<std::int64_t>{2, 4, 4, 3, 2, 4, 5, 3}));
  const std::vector open{
      Port{"input_ids", Type::tensor(DataType::int64, Shape{Dim::symbolic("b"), Dim::symbolic("s")})}};
  ASSERT_OK_AND(const auto free, open_calibration_data(data_, open));
  ASSERT_OK_AND(const auto first, free->sample(0));
  EXPECT_EQ(first[0].dims, (std::vector<std::int64_t>{1, 128}));
}

TEST_F(Texts, WhatTextsCannotFeed) {
  const std::vector pixels{port("pixel_values", DataType::float32, {-1, 3, 4, 4})};
  EXPECT_EQ(open_calibration_data(data_, pixels).error().code, ErrorCode::usage);
  const std::vector more{port("input_ids", DataType::int64, {1, 4}), port("past", DataType::float32, {1, 4})};
  const auto past = open_calibration_data(data_, more);
  ASSERT_FALSE(past);
  EXPECT_NE(past.error().message.find("past"), std::string::npos);
  data_.assets = folder_ / "elsewhere";
  const std::vector inputs{port("input_ids", DataType::int64, {1, 4})};
  const auto no_tokenizer = open_calibration_data(data_, inputs);
  ASSERT_FALSE(no_tokenizer);
  EXPECT_EQ(no_tokenizer.error().code, ErrorCode::not_found);
  EXPECT_NE(no_tokenizer.error().hint.find("--model-id"), std::string::npos);
}

// Plain colours, 4 x 4; the train split has one of each.
TEST(CalibrationData, PicturesOfAFolder) {
  const CalibrationData data{.path = repository("tests/data/eval/images"),
                             .assets = repository("tests/data/eval/fixed")};
  const std::vector inputs{port("pixel_values", DataType::float32, {-1, 3, 4, 4})};
  ASSERT_OK_AND(const auto source, open_calibration_data(data, inputs));
  ASSERT_EQ(source->size(), 3u);
  std::vector<float> sum(3 * 16);
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_OK_AND(const auto sample, source->sample(i));
    EXPECT_EQ(sample[0].dims, (std::vector<std::int64_t>{1, 3, 4, 4}));
    const auto values = floats(sample[0]);
    for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += values[j];
  }
  EXPECT_EQ(sum, std::vector<float>(48, 1.0f));  // red + green + blue

  const std::vector batch{port("pixel_values", DataType::float32, {2, 3, 4, 4})};
  ASSERT_OK_AND(const auto pairs, open_calibration_data(data, batch));
  EXPECT_EQ(pairs->size(), 2u);
  const std::vector large{port("pixel_values", DataType::float32, {-1, 3, 8, 8})};
  ASSERT_OK_AND(const auto wrong, open_calibration_data(data, large));
  EXPECT_NE(wrong->sample(0).error().message.find("takes images of 8 x 8, the preprocessor makes 4 x 4"),
            std::string::npos);
  const std::vector text{port("input_ids", DataType::int64, {1, 4})};
  EXPECT_EQ(open_calibration_data(data, text).error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace mk
