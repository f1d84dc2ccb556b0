#include "perf/measure.h"

#include "graph/onnx_writer.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::repository;

class MeasureTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = Runtime::load();
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    runtime_ = *loaded;
  }
  static void TearDownTestSuite() { runtime_.reset(); }
  static MeasureOptions options(std::string_view model) {
    MeasureOptions o;
    o.model_id = model;
    o.model = repository("tests/data/runtime") / model;
    o.target = {find_ep("cpu"), DeviceKind::cpu, std::nullopt};
    o.loop = {.warmup = 2, .iterations = 5};
    return o;
  }
  static Result<PerfReport> run(const MeasureOptions& o) { return measure(runtime_, o, silent_progress()); }
  static inline std::shared_ptr<Runtime> runtime_;
};

TEST_F(MeasureTest, CountsRunsAndFillsTheReport) {
  MeasureOptions o = options("tokens.onnx");
  o.batch_size = 3;
  ASSERT_OK_AND(const auto report, run(o));
  EXPECT_EQ(report.samples_ms.size(), 5u);
  EXPECT_EQ(report.latency.count, 5u);
  EXPECT_GT(report.latency.mean, 0);
  EXPECT_EQ(report.warmup, 2);
  EXPECT_EQ(report.effective_batch_size, 3);
  EXPECT_EQ(report.ep, "CPUExecutionProvider");
  EXPECT_EQ(report.device, "cpu");
  EXPECT_EQ(report.opset, 17);
  EXPECT_EQ(report.detected_precision, "fp32");
  EXPECT_EQ(report.dynamic, (std::vector<std::pair<std::string, std::int64_t>>{{"batch", 3}, {"sequence", 128}}));
  EXPECT_EQ(report.input_dims, (std::vector<std::vector<std::int64_t>>{{3, 128}, {3, 128}}));
  ASSERT_TRUE(report.memory);
}

TEST_F(MeasureTest, AFixedBatchIsWhatRuns) {
  MeasureOptions o = options("sqrt.onnx");
  o.batch_size = 4;
  o.memory = false;
  ASSERT_OK_AND(const auto report, run(o));
  EXPECT_EQ(report.batch_size, 4);
  EXPECT_EQ(report.effective_batch_size, 1);
  EXPECT_TRUE(report.dynamic.empty());
  EXPECT_FALSE(report.memory);
}

TEST_F(MeasureTest, ADurationGivesAtLeastOneRun) {
  MeasureOptions o = options("affine.onnx");
  o.loop = {.warmup = 0, .duration = 1e-9};
  ASSERT_OK_AND(const auto report, run(o));
  EXPECT_EQ(report.samples_ms.size(), 1u);
  o.loop.duration = 0.05;
  ASSERT_OK_AND(const auto longer, run(o));
  EXPECT_GT(longer.samples_ms.size(), 10u);
}

TEST_F(MeasureTest, ArchivesAreCheckedAndCast) {
  MeasureOptions o = options("affine.onnx");
  o.input_data = repository("tests/data/runtime/affine_inputs.npz");
  ASSERT_OK_AND(const auto report, run(o));
  EXPECT_EQ(report.effective_batch_size, 5);
  o.input_data = repository("tests/data/runtime/arrays.npz");
  const auto wrong = run(o);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::usage);
  EXPECT_NE(wrong.error().message.find("missing [x] and unexpected [ids, "), std::string::npos);
}

TEST_F(MeasureTest, AnOutputThatIsNoTensorCanBeTimed) { EXPECT_TRUE(run(options("sequence.onnx"))); }

TEST_F(MeasureTest, TextInputsRunEmpty) {
  ASSERT_OK_AND(const auto report, run(options("kinds.onnx")));
  EXPECT_EQ(report.detected_precision, std::nullopt);
}

TEST_F(MeasureTest, FailuresSayWhatToDo) {
  MeasureOptions o = options("tokens.onnx");
  o.shapes.shapes = {{"input_ids", {2, 8}}, {"attention_mask", {3, 8}}};
  const auto failed = run(o);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::usage);
  o = options("missing.onnx");
  EXPECT_EQ(run(o).error().code, ErrorCode::not_found);

  // Only 5 values can be added to 5 constants, and 128 are tried.
  const testing::TemporaryFolder folder;
  ASSERT_OK_AND(const auto model, testing::model_of_text(
                                      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[b, n] x) => (float[b, m] y) "
                                      "<float[5] c = {1, 2, 3, 4, 5}> { y = Add(x, c) }"));
  ASSERT_OK_AND(const std::string bytes, serialize_onnx(*model));
  o.model = folder.write("five.onnx", bytes);
  const auto refused = run(o);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::inference);
  EXPECT_NE(refused.error().hint.find("--shape-config"), std::string::npos);
}

// The runtime takes arrays that contradict each other and fails in a node.
TEST_F(MeasureTest, ArraysThatContradictEachOtherAreTheArchivesFault) {
  MeasureOptions o = options("tokens.onnx");
  o.input_data = testing::repository("tests/data/runtime/contradicting_inputs.npz");
  const auto failed = run(o);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::usage) << failed.error().to_string();
  EXPECT_EQ(failed.error().message, "'batch' is 2 in 'input_ids' and 3 in 'attention_mask'");
}

}  // namespace
}  // namespace mk
