// winml perf as a process: exit codes, streams, the report.

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "testing/testing.h"

namespace mk::cli {
namespace {

class PerfTest : public ::testing::Test {
 protected:
  ProcessOutcome perf(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "perf");
    auto outcome = run_process(MODELKIT_WINML, {.arguments = std::move(arguments),
                                                .environment = {{"WINML_CACHE_DIR", to_utf8(folder_ / "cache")}}});
    EXPECT_TRUE(outcome) << outcome.error().to_string();
    return outcome ? *outcome : ProcessOutcome{};
  }
  static std::string data(std::string_view name) { return to_utf8(testing::repository("tests/data/runtime") / name); }
  static Json parsed(const std::string& text) {
    auto json = parse_json(text, "stdout");
    EXPECT_TRUE(json) << text;
    return json ? *json : Json();
  }
  testing::TemporaryFolder folder_;
};

TEST_F(PerfTest, JsonIsOneDocumentAndIsKept) {
  const auto outcome = perf({"-m", data("tokens.onnx"), "--iterations", "3", "--batch-size", "2", "-f", "json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = parsed(outcome.out);
  EXPECT_EQ(report["schema_version"], 2);
  EXPECT_EQ(report["raw_samples_ms"].size(), 3u);
  EXPECT_EQ(report["model_info"]["dynamic_dims"], (Json{{"batch", 2}, {"sequence", 128}}));
  EXPECT_NE(outcome.err.find("Results saved to: "), std::string::npos);
  ASSERT_OK_AND(const auto kept, list_folder(folder_ / "cache/perf/tokens"));
  ASSERT_EQ(kept.size(), 1u);
  ASSERT_OK_AND(const auto text, read_text(folder_ / "cache/perf/tokens" / kept[0].filename()));
  EXPECT_EQ(text, outcome.out);
}

TEST_F(PerfTest, TwoRunsInOneSecondKeepTwoReports) {
  for (int i = 0; i < 2; ++i) EXPECT_EQ(perf({"-m", data("affine.onnx"), "--iterations", "1", "-q"}).exit_code, 0);
  ASSERT_OK_AND(const auto kept, list_folder(folder_ / "cache/perf/affine"));
  EXPECT_EQ(kept.size(), 2u);
}

TEST_F(PerfTest, TextHasTheFiguresOnStdoutAndTheModelOnStderr) {
  const auto outcome = perf({"-m", data("tokens.onnx"), "--iterations", "3"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.starts_with("Latency (ms), 3 runs\n")) << outcome.out;
  EXPECT_NE(outcome.out.find("Results saved to: "), std::string::npos);
  EXPECT_NE(outcome.err.find("[dynamic(1), dynamic(128)]"), std::string::npos) << outcome.err;
}

TEST_F(PerfTest, AFolderThatBuildMade) {
  std::filesystem::create_directories(folder_ / "built");
  std::filesystem::copy_file(data("affine.onnx"), folder_ / "built/model.onnx");
  const auto outcome = perf({"-m", to_utf8(folder_ / "built"), "--iterations", "1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "cache/perf/built"));
}

TEST_F(PerfTest, ACheckpointIsBuiltIntoTheCache) {
  const std::string sample = to_utf8(testing::repository("samples/digits-vit"));
  const auto first = perf({"-m", sample, "--iterations", "1", "-f", "json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const Json report = parsed(first.out);
  EXPECT_EQ(report["benchmark_info"]["task"], "image-classification");
  EXPECT_EQ(report["model_info"]["precision"], "fp32");
  EXPECT_EQ(report["model_info"]["input_shapes"], Json::parse("[[1, 3, 32, 32]]"));
  const std::string built = report["benchmark_info"]["running_model_path"].get<std::string>();
  EXPECT_TRUE(built.starts_with(to_utf8(folder_ / "cache"))) << built;
  const auto written = std::filesystem::last_write_time(built);
  EXPECT_EQ(perf({"-m", sample, "--iterations", "1", "-q"}).exit_code, 0);
  EXPECT_EQ(std::filesystem::last_write_time(built), written);

  const auto batch = perf({"-m", sample, "--iterations", "1", "--batch-size", "3", "--no-use-cache", "-f", "json"});
  ASSERT_EQ(batch.exit_code, 0) << batch.err;
  const Json other = parsed(batch.out);
  EXPECT_EQ(other["benchmark_info"]["effective_batch_size"], 3);
  EXPECT_FALSE(std::filesystem::exists(other["benchmark_info"]["running_model_path"].get<std::string>()));
}

TEST_F(PerfTest, BuildFlagsOnAnOnnxFileAreTold) {
  const auto typed = perf({"-m", data("affine.onnx"), "--iterations", "1", "--no-quant", "--rebuild"});
  EXPECT_EQ(typed.exit_code, 0);
  EXPECT_NE(typed.err.find("--rebuild, --quant ignored"), std::string::npos) << typed.err;
  EXPECT_EQ(perf({"-m", data("affine.onnx"), "--iterations", "1"}).err.find("ignored"), std::string::npos);
}

TEST_F(PerfTest, ExitCodes) {
  const std::string model = data("affine.onnx");
  const std::string there = to_utf8(folder_.write("there.json", "{}"));
  const std::string broken = to_utf8(folder_.write("broken.onnx", "no model"));
  const std::string contradicting = to_utf8(folder_.write("contradicting.json", R"({"x": [2, 4]})"));
  const std::string no_rows = to_utf8(folder_.write("no_rows.json", R"({"batch": 0})"));
  const std::string misspelt = to_utf8(folder_.write("misspelt.json", R"({"btach": 2})"));
  const std::string lengths = to_utf8(folder_.write("lengths.json", R"({"sequence_lenght": 8})"));
  const std::string sample = to_utf8(testing::repository("samples/digits-vit"));
  const std::string bad_shapes = to_utf8(folder_.write("shapes.json", R"({"batch": true})"));
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    std::string_view says;
  } cases[] = {
      {{}, 2, "--model"},
      {{"-m", to_utf8(folder_ / "missing.onnx")}, 2, "missing.onnx"},
      {{"-m", broken}, 3, "broken.onnx"},
      {{"-m", model, "--iterations", "0"}, 2, "--iterations"},
      {{"-m", model, "--warmup", "-1"}, 2, "--warmup"},
      {{"-m", model, "--batch-size", "0"}, 2, "--batch-size"},
      {{"-m", model, "--duration", "0"}, 2, "--duration"},
      {{"-m", model, "--duration", "inf"}, 2, "--duration"},
      {{"-m", model, "--ep-options", "abc"}, 2, "--ep-options"},
      {{"-m", model, "--ep", "qnn", "-d", "npu"}, 2, "qnn is not installed"},
      {{"-m", model, "-d", "config"}, 2, "auto, npu, gpu, cpu"},
      {{"-m", model, "-o", there}, 1, "--overwrite"},
      {{"-m", model, "--input-data", data("arrays.npz")}, 2, "missing [x] and unexpected [ids"},
      {{"-m", model, "--shape-config", bad_shapes}, 2, "shapes.json#/batch"},
      {{"-m", model, "--shape-config", contradicting}, 2, "float32[batch, 3]"},
      {{"-m", model, "--shape-config", no_rows}, 2, "no rows"},
      {{"-m", model, "--shape-config", misspelt}, 2, "Did you mean 'batch'?"},
      {{"-m", sample, "--shape-config", lengths}, 2, "Did you mean 'sequence_length'?"},
      {{"-m", sample, "--shape-config", no_rows}, 2, "no_rows.json#/batch"},
      {{"-m", model, "--batch-size", "1000000000000"}, 2, "(x). Choose a smaller batch"},
      {{"-m", model, "--task", "foo"}, 2, "foo"},
      {{"-m", data("affine.onnx"), "--input-data", data("infinite_inputs.npz")}, 2, "infinite_inputs.npz"},
      {{"-m", model, "--baseline", there}, 2, "there.json#/latency_ms"},
      {{"-m", model, "--ort", to_utf8(folder_ / "nowhere")}, 4, "nowhere"},
  };
  for (const auto& c : cases) {
    const auto outcome = perf(c.arguments);
    EXPECT_EQ(outcome.exit_code, c.exit_code) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("error: ")) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(c.says), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }
}

// The runtime would call it an inference error; build and inspect say that the model is malformed.
TEST_F(PerfTest, AMalformedModelIsExitThree) {
  ASSERT_OK_AND(std::string bytes, read_text(path_from_utf8(data("affine.onnx"))));
  const auto node_input = bytes.find("\x0a\x01x");  // the first input of the first node: x becomes q
  ASSERT_NE(node_input, std::string::npos);
  bytes[node_input + 2] = 'q';
  const std::string dangling = to_utf8(folder_.write("dangling.onnx", bytes));
  const std::string cut = to_utf8(folder_.write("cut.onnx", bytes.substr(0, bytes.size() - 5)));
  for (const std::string& model : {dangling, cut}) {
    const auto outcome = perf({"-m", model});
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
  }
}

TEST_F(PerfTest, ABatchThatAStaticModelCannotTakeIsTold) {
  const auto outcome = perf({"-m", data("abs_sqrt.onnx"), "--batch-size", "4", "--iterations", "1"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("--batch-size 4 has no effect"), std::string::npos) << outcome.err;
  const auto dynamic = perf({"-m", data("affine.onnx"), "--batch-size", "4", "--iterations", "1"});
  EXPECT_EQ(dynamic.err.find("no effect"), std::string::npos) << dynamic.err;
}

TEST_F(PerfTest, ASlowerRunIsANo) {
  const Path before = folder_ / "before.json";
  ASSERT_EQ(perf({"-m", data("affine.onnx"), "--iterations", "20", "-o", to_utf8(before), "-q"}).exit_code, 0);
  ASSERT_OK_AND(auto report, read_json(before));
  report["latency_ms"]["p50"] = 1e-6;
  const std::string fast = to_utf8(folder_.write("fast.json", dump_json(report)));
  report["latency_ms"]["p50"] = 1e6;
  const std::string slow = to_utf8(folder_.write("slow.json", dump_json(report)));
  const auto slower = perf({"-m", data("affine.onnx"), "--iterations", "5", "--baseline", fast, "-f", "json"});
  EXPECT_EQ(slower.exit_code, 1);
  EXPECT_EQ(parsed(slower.out)["baseline"]["slower"], true);
  EXPECT_EQ(perf({"-m", data("affine.onnx"), "--iterations", "5", "--baseline", slow}).exit_code, 0);
}

TEST_F(PerfTest, ConfigFillsWhatWasNotTyped) {
  const std::string config = to_utf8(folder_.write(
      "config.json",
      R"({"loader": {"task": "feature-extraction"}, "compile": {"ep_device": {"ep": "qnn", "device": "npu"}}})"));
  const auto by_config = perf({"-m", data("tokens.onnx"), "-c", config});
  EXPECT_EQ(by_config.exit_code, 2);
  EXPECT_NE(by_config.err.find("qnn"), std::string::npos);
  const auto typed =
      perf({"-m", data("tokens.onnx"), "-c", config, "--ep", "cpu", "-d", "cpu", "--iterations", "1", "-f", "json"});
  EXPECT_EQ(typed.exit_code, 0) << typed.err;
  EXPECT_EQ(parsed(typed.out)["benchmark_info"]["task"], "feature-extraction");
}

}  // namespace
}  // namespace mk::cli
