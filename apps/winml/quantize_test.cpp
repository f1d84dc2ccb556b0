// winml quantize and winml compare as processes: exit codes, files, what is on stdout.

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "testing/testing.h"
#include "winml/quantize_options.h"

namespace mk::cli {
namespace {

class QuantizeCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(testing::repository("tests/data/runtime/affine.onnx"), folder_ / "affine.onnx");
    std::filesystem::copy(testing::repository("tests/data/runtime/affine_off.onnx"), folder_ / "affine_off.onnx");
  }
  ProcessOutcome winml(std::vector<std::string> arguments) {
    auto outcome = run_process(MODELKIT_WINML, {.arguments = std::move(arguments)});
    EXPECT_TRUE(outcome) << outcome.error().to_string();
    return outcome ? *outcome : ProcessOutcome{};
  }
  ProcessOutcome quantize(std::vector<std::string> more) {
    std::vector<std::string> arguments{"quantize", "-m", file("affine.onnx")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return winml(std::move(arguments));
  }
  std::string file(const std::string& name) const { return to_utf8(folder_ / path_from_utf8(name)); }
  bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / path_from_utf8(name)); }
  testing::TemporaryFolder folder_;
};

Json parsed(const std::string& text) {
  auto json = parse_json(text, "stdout");
  EXPECT_TRUE(json) << text;
  return json ? *json : Json();
}

TEST_F(QuantizeCommand, WritesBesideTheModelUnderTheNameOfItsPrecision) {
  EXPECT_EQ(quantize({}).exit_code, 0);
  EXPECT_TRUE(exists("affine_quantized.onnx"));
  EXPECT_EQ(quantize({"-p", "FP16"}).exit_code, 0);
  EXPECT_TRUE(exists("affine_fp16.onnx"));
  EXPECT_EQ(quantize({"-p", "w8a8", "-p", "fp16"}).exit_code, 0);
  EXPECT_TRUE(exists("affine_w8a8_fp16.onnx"));
  const ProcessOutcome inside = quantize({"-o", file("deep/er/q.onnx"), "--format", "json", "-q"});
  EXPECT_EQ(inside.exit_code, 0);
  EXPECT_TRUE(exists("deep/er/q.onnx"));
  const Json json = parsed(inside.out);
  EXPECT_EQ(json["passes"][0]["calibration"]["samples"], 10);
  EXPECT_GT(json["accuracy"]["outputs"][0]["cosine_similarity"].get<double>(), 0.9);
  EXPECT_EQ(inside.err, "");
}

TEST_F(QuantizeCommand, AnOutputThatIsThereStays) {
  folder_.write("affine_quantized.onnx", "mine");
  const ProcessOutcome refused = quantize({});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_NE(refused.err.find("--overwrite"), std::string::npos);
  EXPECT_EQ(read_text(folder_ / "affine_quantized.onnx").value_or(""), "mine");
  EXPECT_EQ(quantize({"--overwrite", "--exclude", "*", "--weight-type", "int9"}).exit_code, 2);
  EXPECT_EQ(read_text(folder_ / "affine_quantized.onnx").value_or(""), "mine");
  EXPECT_EQ(quantize({"--overwrite"}).exit_code, 0);
  EXPECT_NE(read_text(folder_ / "affine_quantized.onnx").value_or("mine"), "mine");
}

TEST_F(QuantizeCommand, WhatCannotBe) {
  for (const char* precision : {"banana", "fp32", "w3a8", "w8a32"}) EXPECT_EQ(quantize({"-p", precision}).exit_code, 2);
  EXPECT_EQ(winml({"quantize"}).exit_code, 2);
  EXPECT_EQ(winml({"quantize", "-m", file("missing.onnx")}).exit_code, 2);
  folder_.write("empty.onnx", "");
  folder_.write("broken.onnx", "no model at all");
  EXPECT_EQ(winml({"quantize", "-m", file("empty.onnx")}).exit_code, 3);
  EXPECT_EQ(winml({"quantize", "-m", file("broken.onnx")}).exit_code, 3);
  EXPECT_FALSE(exists("empty_quantized.onnx"));
  EXPECT_EQ(quantize({"--calibration-data", file("nowhere.npz")}).exit_code, 2);
  EXPECT_EQ(quantize({"-p", "w8a8"}).exit_code, 0);
  const ProcessOutcome twice = winml({"quantize", "-m", file("affine_quantized.onnx")});
  EXPECT_EQ(twice.exit_code, 3);
  EXPECT_NE(twice.err.find("quantized already"), std::string::npos);
}

TEST_F(QuantizeCommand, OptionsThatDoNothingAreNamed) {
  const ProcessOutcome outcome = quantize({"-p", "fp16", "--samples", "3", "--method", "entropy"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("--samples, --method ignored"), std::string::npos) << outcome.err;
}

TEST_F(QuantizeCommand, NothingDoneIsNoSuccess) {
  const ProcessOutcome none = quantize({"--op-type", "NoSuch"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("no node was quantized"), std::string::npos) << none.err;
  EXPECT_FALSE(exists("affine_quantized.onnx"));
}

TEST_F(QuantizeCommand, QuietSaysNothing) {
  const ProcessOutcome outcome = quantize({"-q"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out + outcome.err, "");
  EXPECT_EQ(winml({"optimize", "-q", "-m", file("affine.onnx")}).out, "");
  EXPECT_NE(winml({"optimize", "-q", "-l"}).out, "");
  const ProcessOutcome built = winml({"build", "-q", "-m", file("affine.onnx"), "-o", file("out")});
  EXPECT_EQ(built.exit_code, 0) << built.err;
  EXPECT_EQ(built.out + built.err, "");
}

TEST_F(QuantizeCommand, ColumnsThatNothingHasAreWarnedOf) {
  const ProcessOutcome outcome = quantize({"--calibration-column", "foo"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("the column 'foo' of the calibration data is ignored"), std::string::npos) << outcome.err;
  EXPECT_EQ(quantize({"--samples", "99999999999999", "--overwrite"}).exit_code, 2);
}

TEST_F(QuantizeCommand, APartOfAConfigBuildsAnOnnxFile) {
  const std::string model = file("affine.onnx");
  const Path half = folder_.write("half.json", R"({"quant": {"mode": "fp16"}})");
  const ProcessOutcome built = winml({"build", "-m", model, "-c", to_utf8(half), "-o", file("half")});
  EXPECT_EQ(built.exit_code, 0) << built.err;
  const Path wrong = folder_.write("wrong.json", R"({"quant": {"samples": -4}})");
  const ProcessOutcome refused = winml({"build", "-m", model, "-c", to_utf8(wrong), "-o", file("wrong")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("quant.samples must be from 1"), std::string::npos) << refused.err;
}

// What is typed wins over the config, which wins over the defaults; types beat a precision.
TEST_F(QuantizeCommand, Precedence) {
  QuantizeCommandOptions o;
  o.config = folder_.write("config.json", R"({"quant": {"samples": 4, "per_channel": true, "weight_type": "int8",
                                              "calibration_method": "entropy"}})");
  o.samples = 6;
  ASSERT_OK_AND(const auto plan, quantize_plan(o, silent_progress()));
  ASSERT_EQ(plan.passes.size(), 1u);
  EXPECT_EQ(plan.passes[0].samples, 6);
  EXPECT_TRUE(plan.passes[0].per_channel);
  EXPECT_EQ(plan.passes[0].calibration_method, "entropy");
  EXPECT_EQ(plan.passes[0].weight_type, "int8");
  EXPECT_EQ(plan.passes[0].activation_type, "uint8");
  o.precisions = {"w16a16"};
  ASSERT_OK_AND(const auto precise, quantize_plan(o, silent_progress()));
  EXPECT_EQ(precise.passes[0].weight_type, "int8");  // written in the config
  EXPECT_EQ(precise.passes[0].activation_type, "uint16");
  o.weight_type = "uint8";
  ASSERT_OK_AND(const auto typed, quantize_plan(o, silent_progress()));
  EXPECT_EQ(typed.passes[0].weight_type, "uint8");
  o.config = folder_.write("half.json", R"({"quant": {"mode": "fp16", "fp16_keep_io_types": false}})");
  o.precisions.clear();
  ASSERT_OK_AND(const auto half, quantize_plan(o, silent_progress()));
  EXPECT_EQ(half.passes[0].mode, "fp16");
  EXPECT_FALSE(half.passes[0].fp16_keep_io_types);
  EXPECT_EQ(half.suffix, "_fp16");
  for (const char* text : {"", "[1]", "{"}) {
    o.config = folder_.write("bad.json", text);
    const auto bad = quantize_plan(o, silent_progress());
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code, ErrorCode::usage);
  }
}

TEST_F(QuantizeCommand, CompareAnswers) {
  const std::string model = file("affine.onnx");
  EXPECT_EQ(winml({"compare", "-m", model, "--reference", model}).exit_code, 0);
  const ProcessOutcome off =
      winml({"compare", "-m", file("affine_off.onnx"), "--reference", model, "--format", "json", "-q"});
  EXPECT_EQ(off.exit_code, 1);
  const Json json = parsed(off.out);
  EXPECT_EQ(json["verdict"], "no");
  EXPECT_FALSE(json["first_divergence"].is_null());
  EXPECT_EQ(winml({"compare", "-m", file("affine_off.onnx"), "--reference", model, "--tolerance", "max_abs_diff=1000"})
                .exit_code,
            0);
  EXPECT_EQ(winml({"compare", "-m", model}).exit_code, 2);
  EXPECT_EQ(winml({"compare", "-m", model, "--reference", file("missing.onnx")}).exit_code, 2);
  EXPECT_EQ(winml({"compare", "-m", model, "--reference", model, "--tolerance", "banana=1"}).exit_code, 2);
}

}  // namespace
}  // namespace mk::cli
