#include "quantize/quantize.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "quantize/qdq_test_support.h"
#include "runtime/random_samples.h"

namespace mk {
namespace {

using testing::constant_text;
using testing::model_of_text;
using testing::random_floats;

std::string product_text() {
  return "<ir_version: 8, opset_import: [\"\" : 21]> g (float[n,32] x) => (float[n,32] y) <" +
         constant_text("w", {32, 32}, random_floats(1024, 1)) + "> { h = MatMul(x, w) y = Relu(h) }";
}

class QuantizeModel : public ::testing::Test {
 protected:
  static Result<QuantizeReport> run(Model& model, const std::vector<QuantConfig>& passes, QuantizeSetup setup = {}) {
    setup.runtime = [] { return Runtime::load(); };
    return quantize_model(model, passes, setup, silent_progress());
  }
  static Result<std::unique_ptr<SampleSource>> samples(std::size_t count) {
    MK_TRY(const auto model, model_of_text(product_text()));
    return random_samples(*model, count, 7, {});
  }
  static QuantConfig mode(std::string name) {
    QuantConfig config;
    config.mode = std::move(name);
    return config;
  }
};

TEST_F(QuantizeModel, NamesThatTheModelLacksAreWarnedOf) {
  for (const char* name : {"static", "fp16"}) {
    ASSERT_OK_AND(const auto model, model_of_text(product_text()));
    QuantConfig config = mode(name);
    config.nodes_to_exclude = {"y", "nobody*"};
    config.op_types_to_exclude = {"Conv", "Relu"};
    ASSERT_OK_AND(const auto report, run(*model, {config}, {.verify = false}));
    const auto has = [&](std::string_view text) {
      return std::ranges::count_if(report.warnings, [&](const auto& w) { return w.find(text) != std::string::npos; });
    };
    EXPECT_EQ(has("no node matches"), 1) << name;
    EXPECT_EQ(has("'nobody*'"), 1) << name;
    EXPECT_EQ(has("no operator of type"), 1) << name;
    EXPECT_EQ(has("'Conv'"), 1) << name;
  }
}

TEST_F(QuantizeModel, EveryModeGivesNearlyTheSame) {
  struct Row {
    const char* mode;
    double cosine;
    const char* op_type;
  };
  ASSERT_OK_AND(const auto source, samples(20));
  for (const Row& row : {Row{"static", 0.999, "QuantizeLinear"}, Row{"dynamic", 0.999, "MatMulInteger"},
                         Row{"rtn", 0.98, "MatMulNBits"}, Row{"fp16", 0.999999, "Cast"}}) {
    ASSERT_OK_AND(const auto model, model_of_text(product_text()));
    ASSERT_OK_AND(const auto report, run(*model, {mode(row.mode)}, {.samples = source.get()}));
    ASSERT_EQ(report.steps.size(), 1u);
    EXPECT_GT(report.steps[0].nodes, 0u) << row.mode;
    ASSERT_TRUE(report.accuracy) << row.mode;
    EXPECT_EQ(report.accuracy->samples, 10u);
    EXPECT_GT(report.accuracy->outputs[0].cosine, row.cosine) << row.mode;
    EXPECT_LT(report.accuracy->outputs[0].snr_db, 200) << row.mode;  // it was changed
    EXPECT_NE(report.judged_on.find("samples 11 to 20 of 20"), std::string::npos) << report.judged_on;
    std::size_t found = 0;
    for (const Node* node : model->graph->nodes()) found += node->op_type == row.op_type;
    EXPECT_GT(found, 0u) << row.mode;
  }
}

TEST_F(QuantizeModel, JudgesOnTheLastFifthWhereAllCalibrate) {
  ASSERT_OK_AND(const auto source, samples(10));
  ASSERT_OK_AND(const auto model, model_of_text(product_text()));
  ASSERT_OK_AND(const auto report, run(*model, {mode("static")}, {.samples = source.get()}));
  EXPECT_NE(report.judged_on.find("samples 9 to 10 of 10"), std::string::npos) << report.judged_on;
  EXPECT_NE(report.judged_on.find("which also calibrated"), std::string::npos);
  ASSERT_OK_AND(const auto others, samples(3));
  ASSERT_OK_AND(const auto again, model_of_text(product_text()));
  ASSERT_OK_AND(const auto judged, run(*again, {mode("static")}, {.samples = source.get(), .judged = others.get()}));
  EXPECT_EQ(judged.accuracy->samples, 3u);
}

TEST_F(QuantizeModel, WithoutSamples) {
  ASSERT_OK_AND(const auto model, model_of_text(product_text()));
  ASSERT_OK_AND(const auto report, run(*model, {mode("static")}));
  EXPECT_TRUE(report.accuracy);
  ASSERT_FALSE(report.warnings.empty());
  EXPECT_NE(report.warnings[0].find("random values"), std::string::npos);
  for (const char* name : {"fp16", "dynamic", "rtn"}) {
    ASSERT_OK_AND(const auto other, model_of_text(product_text()));
    ASSERT_OK_AND(const auto unjudged, run(*other, {mode(name)}));
    EXPECT_FALSE(unjudged.accuracy) << name;
    EXPECT_TRUE(to_json(unjudged)["accuracy"].is_null());
    EXPECT_EQ(unjudged.judged_on.find("not judged"), 0u);
  }
}

TEST_F(QuantizeModel, PassesInOrder) {
  ASSERT_OK_AND(const auto model, model_of_text(product_text()));
  ASSERT_OK_AND(const auto report, run(*model, {mode("rtn"), mode("fp16")}));
  ASSERT_EQ(report.steps.size(), 2u);
  EXPECT_TRUE(report.steps[0].weight_only);
  EXPECT_TRUE(report.steps[1].float16);
  const Json json = to_json(report);
  EXPECT_EQ(json["passes"][0]["mode"], "rtn");
  EXPECT_EQ(json["passes"][1]["mode"], "fp16");
}

TEST_F(QuantizeModel, RefusesWhatIsQuantizedOrCompiled) {
  ASSERT_OK_AND(const auto model, model_of_text(product_text()));
  ASSERT_OK(run(*model, {mode("static")}));
  for (const char* name : {"static", "dynamic", "rtn"}) {
    const auto twice = run(*model, {mode(name)});
    ASSERT_FALSE(twice) << name;
    EXPECT_EQ(twice.error().code, ErrorCode::unsupported);
    EXPECT_NE(twice.error().message.find("quantized already"), std::string::npos);
  }
  EXPECT_TRUE(run(*model, {mode("fp16")}));
  ASSERT_OK_AND(const auto compiled, model_of_text(R"(<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
    g (float[1] x) => (float[1] y) { y = com.microsoft.EPContext(x) })"));
  const auto refused = run(*compiled, {mode("fp16")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
}

TEST_F(QuantizeModel, SettingsThatCannotBe) {
  ASSERT_OK_AND(const auto model, model_of_text(product_text()));
  QuantConfig config = mode("banana");
  EXPECT_EQ(run(*model, {config}).error().code, ErrorCode::usage);
  EXPECT_EQ(run(*model, {}).error().code, ErrorCode::usage);
  config = mode("static");
  config.weight_type = "float32";
  EXPECT_EQ(run(*model, {config}).error().code, ErrorCode::usage);
  config = mode("static");
  config.calibration_load_path = "ranges.json";
  EXPECT_EQ(run(*model, {config}).error().code, ErrorCode::usage);
  config = mode("static");
  config.calibration_method = "mean";
  EXPECT_EQ(run(*model, {config}).error().code, ErrorCode::usage);
}

// A pass that changes nothing is no success.
TEST_F(QuantizeModel, WhereEverythingIsExcludedItFails) {
  for (const char* exclusion : {"name", "type"}) {
    ASSERT_OK_AND(const auto model, model_of_text(product_text()));
    QuantConfig config = mode("static");
    if (std::string_view(exclusion) == "name") {
      config.nodes_to_exclude = std::vector<std::string>{"h", "?"};
    } else {
      config.op_types_to_exclude = std::vector<std::string>{"MatMul", "Relu"};
    }
    const auto report = run(*model, {config});
    ASSERT_FALSE(report) << exclusion;
    EXPECT_EQ(report.error().code, ErrorCode::failed);
    EXPECT_EQ(report.error().message.find("no node was quantized"), 0u) << report.error().message;
  }
}

TEST_F(QuantizeModel, WhatIsInFloat16AlreadyIsDone) {
  ASSERT_OK_AND(const auto model, model_of_text(product_text()));
  QuantConfig half = mode("fp16");
  half.fp16_keep_io_types = false;
  ASSERT_OK(run(*model, {half}));
  ASSERT_OK_AND(const auto again, run(*model, {half}));
  EXPECT_EQ(again.warnings, std::vector<std::string>{"the model has nothing left to convert to float16"});
  ASSERT_OK_AND(const auto kept, model_of_text(product_text()));
  half.fp16_op_block_list = {"MatMul", "Relu", "Nope"};
  const auto none = run(*kept, {half});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message.find("no node was converted to float16"), 0u) << none.error().message;
}

// 1e6 and infinity are past the largest float16, 65504.
TEST_F(QuantizeModel, ValuesThatFloat16DoesNotHoldAreWarnedOf) {
  ASSERT_OK_AND(const auto model,
                model_of_text(R"(<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y)
    <float[2] big = {1000000, 1}> { y = Mul(x, big) })"));
  ASSERT_OK_AND(const auto report, run(*model, {mode("fp16")}, {.verify = false}));
  const std::vector<std::string> expected{"float16 does not hold 1 values of big: they are +-65504 now"};
  EXPECT_EQ(all_warnings(report), expected);
  EXPECT_EQ(to_json(report)["warnings"], Json(expected));
}

TEST_F(QuantizeModel, FailuresNameTheModel) {
  ASSERT_OK_AND(const auto model, model_of_text(R"(<ir_version: 8, opset_import: ["" : 17, "my.domain" : 1]>
    g (float[2, 2] x) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}> { h = my.domain.Foo(x) y = MatMul(h, w) })"));
  const auto report = run(*model, {mode("static")}, {.name = "models/foo.onnx"});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().where, "models/foo.onnx");
}

TEST_F(QuantizeModel, TheNumberOfSamplesHasALimit) {
  ASSERT_OK_AND(const auto model, model_of_text(product_text()));
  QuantConfig config = mode("static");
  config.samples = 99'999'999'999'999;
  const auto report = run(*model, {config});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::usage);
}

// 180,000 is past the largest float16.
TEST_F(QuantizeModel, AResultThatIsNoNumberIsAnError) {
  const auto text = R"(<ir_version: 8, opset_import: ["" : 17]> g (float[1] x) => (float[1] y)
    <float[1] big = {60000}> { a = Add(x, big) b = Add(a, big) y = Add(b, big) })";
  ASSERT_OK_AND(const auto model, model_of_text(text));
  QuantConfig half = mode("fp16");
  half.fp16_keep_io_types = false;
  const auto report = run(*model, {half});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::failed);
  EXPECT_NE(report.error().message.find("output y has inf"), std::string::npos) << report.error().to_string();
  ASSERT_OK_AND(const auto again, model_of_text(text));
  EXPECT_TRUE(run(*again, {half}, {.verify = false}));
}

}  // namespace
}  // namespace mk
