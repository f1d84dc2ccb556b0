// winml eval as a process: exit codes, streams, the report. Right figures: tests/data/eval/make_eval.py, and the
// sample's accuracy in PyTorch (samples/digits-vit/README.md).

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "testing/testing.h"

namespace mk::cli {
namespace {

class EvalTest : public ::testing::Test {
 protected:
  ProcessOutcome eval(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "eval");
    auto outcome = run_process(MODELKIT_WINML, {.arguments = std::move(arguments),
                                                .environment = {{"WINML_CACHE_DIR", to_utf8(folder_ / "cache")},
                                                                {"HF_HUB_CACHE", to_utf8(folder_ / "hub")}}});
    EXPECT_TRUE(outcome) << outcome.error().to_string();
    return outcome ? *outcome : ProcessOutcome{};
  }
  static std::string file(std::string_view name) { return to_utf8(testing::repository(name)); }
  static std::string data(std::string_view name) { return file("tests/data/eval/" + std::string(name)); }
  static Json parsed(const std::string& text) {
    auto json = parse_json(text, "stdout");
    EXPECT_TRUE(json) << text;
    return json ? *json : Json();
  }
  testing::TemporaryFolder folder_;
};

TEST_F(EvalTest, TheSampleIsAsGoodAsInPyTorch) {
  const auto outcome = eval(
      {"-m", file("samples/digits-vit"), "--dataset", file("samples/digits"), "--samples", "0", "--format", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = parsed(outcome.out);
  EXPECT_EQ(report["dataset"]["split"], "test");
  EXPECT_EQ(report["dataset"]["samples"], 360);
  EXPECT_NEAR(report["metrics"]["accuracy"].get<double>(), 354.0 / 360, 1e-9);
  EXPECT_EQ(report["task"], "image-classification");
  EXPECT_EQ(report["runtime"], "winml");
}

TEST_F(EvalTest, JsonHasTheFiguresAndGoesToAFileToo) {
  ASSERT_OK_AND(const Json expected, read_json(testing::repository("tests/data/eval/expected.json")));
  const std::string output = to_utf8(folder_ / "report.json");
  const std::vector<std::string> arguments{
      "-m", data("free/model.onnx"), "--dataset", data("images"), "-o", output, "-f", "json"};
  const auto outcome = eval(arguments);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = parsed(outcome.out);
  EXPECT_DOUBLE_EQ(report["metrics"]["accuracy"], expected["accuracy"]);
  EXPECT_DOUBLE_EQ(report["metrics"]["top_5_accuracy"], expected["top_5"]);
  EXPECT_EQ(report["dataset"]["samples"], expected["samples"]);
  EXPECT_EQ(report["skipped"], (Json{{"without_label", 0}, {"without_image", 0}}));
  for (const char* key : {"total_time_in_seconds", "samples_per_second", "latency_in_seconds"})
    EXPECT_GT(report["metrics"][key].get<double>(), 0) << key;
  ASSERT_OK_AND(const auto kept, read_text(folder_ / "report.json"));
  EXPECT_EQ(kept, outcome.out);

  const auto again = eval(arguments);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_EQ(parsed(again.out)["error"]["code"], "exists");
}

TEST_F(EvalTest, AConfigCountsWhereNothingIsTyped) {
  const Path config = folder_.write(
      "config.json", R"({"eval": {"dataset": {"path": ")" + data("images") + R"(", "split": "train", "samples": 2,
                          "shuffle": false, "columns_mapping": {"label_column": "nothing"}}}})");
  const auto from_config = eval({"-m", data("free/model.onnx"), "-c", to_utf8(config)});
  EXPECT_EQ(from_config.exit_code, 2);
  EXPECT_NE(from_config.err.find("label_column='nothing'"), std::string::npos) << from_config.err;
  const auto typed = eval({"-m", data("free/model.onnx"), "-c", to_utf8(config), "--column", "label_column=label",
                           "--samples", "3", "-f", "json"});
  ASSERT_EQ(typed.exit_code, 0) << typed.err;
  EXPECT_EQ(parsed(typed.out)["dataset"]["samples"], 3);
  EXPECT_EQ(parsed(typed.out)["dataset"]["split"], "train");
}

TEST_F(EvalTest, AnIdIsADataSetInTheHubsCache) {
  const std::string commit(40, 'c');
  const Path repository = folder_ / "hub/datasets--ada--digits";
  std::filesystem::create_directories(repository / "snapshots" / commit);
  folder_.write("hub/datasets--ada--digits/refs/main", commit);
  std::filesystem::copy(testing::repository("tests/data/eval/images"), repository / "snapshots" / commit,
                        std::filesystem::copy_options::recursive);
  const auto found = eval({"-m", data("free/model.onnx"), "--dataset", "ada/digits", "-f", "json"});
  ASSERT_EQ(found.exit_code, 0) << found.err;
  EXPECT_EQ(parsed(found.out)["dataset"]["path"], "ada/digits");
  EXPECT_EQ(parsed(found.out)["dataset"]["samples"], 7);
  const auto missing = eval({"-m", data("free/model.onnx"), "--dataset", "ada/letters"});
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_NE(missing.err.find("hf download --repo-type dataset ada/letters"), std::string::npos) << missing.err;
}

TEST_F(EvalTest, CompareAnswersByExitCode) {
  const auto same = eval({"-m", data("free/model.onnx"), "--mode", "compare", "--reference", data("free/model.onnx"),
                          "--samples", "2", "-f", "json"});
  ASSERT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(parsed(same.out)["verdict"], "yes");
  EXPECT_EQ(parsed(same.out)["mode"], "compare");
  const std::vector<std::string> other{"-m",          data("other/model.onnx"), "--mode",    "compare",
                                       "--reference", data("free/model.onnx"),  "--samples", "2"};
  const auto strict = eval(other);
  EXPECT_EQ(strict.exit_code, 1) << strict.out << strict.err;
  EXPECT_NE(strict.out.find("max_abs_diff"), std::string::npos);
  std::vector<std::string> lax = other;
  lax.insert(lax.end(), {"--tolerance", "max_abs_diff=0.1"});
  EXPECT_EQ(eval(lax).exit_code, 0);
}

TEST_F(EvalTest, CompareRefusesWhatItWouldIgnore) {
  const std::vector<std::string> plain{"-m",      data("free/model.onnx"), "--mode",
                                       "compare", "--reference",           data("free/model.onnx")};
  for (const auto& [option, value] :
       {std::pair("--device", "npu"), {"--ep", "qnn"}, {"--samples", "0"}, {"--tolerance", "mse=-1"}}) {
    std::vector<std::string> arguments = plain;
    arguments.insert(arguments.end(), {option, value});
    const auto outcome = eval(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << option;
    EXPECT_NE(outcome.err.find(option), std::string::npos) << outcome.err;
  }
  std::vector<std::string> on_cpu = plain;
  on_cpu.insert(on_cpu.end(), {"--device", "cpu", "--samples", "1"});
  EXPECT_EQ(eval(on_cpu).exit_code, 0);
}

// An old config.json that does not say its type: the folder's name tells it.
TEST_F(EvalTest, ATypeThatOnlyTheNameTells) {
  const Path old = folder_ / "vit-digits";
  std::filesystem::copy(testing::repository("samples/digits-vit"), old);
  ASSERT_OK_AND(Json config, read_json(old / "config.json"));
  config.erase("model_type");
  folder_.write("vit-digits/config.json", dump_json(config));
  const auto outcome = eval({"-m", to_utf8(old), "--dataset", file("samples/digits"), "--samples", "8", "-f", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(parsed(outcome.out)["task"], "image-classification");
}

TEST_F(EvalTest, SaysWhatIsMissing) {
  const std::string model = data("free/model.onnx");
  const auto error_of = [&](std::vector<std::string> arguments) {
    const auto outcome = eval(std::move(arguments));
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_NE(error_of({}).find("No model was given"), std::string::npos);
  EXPECT_NE(error_of({"-m", model}).find("No data set was given"), std::string::npos);
  EXPECT_NE(error_of({"-m", model, "--mode", "compare"}).find("--reference"), std::string::npos);
  EXPECT_NE(error_of({"-m", model, "--dataset", "x", "--reference", model}).find("--mode compare"), std::string::npos);
  EXPECT_NE(error_of({"-m", model, "--dataset", "/nowhere"}).find("no such data set"), std::string::npos);
  EXPECT_NE(error_of({"-m", model, "--dataset", "a/b.parquet"}).find("no such data set"), std::string::npos);
  EXPECT_NE(error_of({"-m", model, "--dataset", data("images"), "--split", "dev"}).find("no split dev"),
            std::string::npos);
  EXPECT_NE(error_of({"-m", model, "--dataset", data("images"), "--column", "image=x"}).find("unknown column"),
            std::string::npos);
  const std::string bare = to_utf8(folder_ / "bare/model.onnx");
  std::filesystem::create_directories(folder_ / "bare");
  std::filesystem::copy_file(path_from_utf8(model), path_from_utf8(bare));
  EXPECT_NE(error_of({"-m", bare, "--dataset", data("images")}).find("--model-id"), std::string::npos);
  EXPECT_EQ(eval({"-m", bare, "--model-id", data("free"), "--dataset", data("images")}).exit_code, 0);
}

TEST_F(EvalTest, OtherTasksGetTheListOfWhatIsJudged) {
  const auto outcome =
      eval({"-m", data("free/model.onnx"), "--dataset", data("images"), "--task", "audio-classification"});
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.err.find("Supported: image-classification"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("--mode compare"), std::string::npos);
}

TEST_F(EvalTest, SchemaNeedsNoModel) {
  const auto tasks = eval({"--schema", "-f", "json"});
  EXPECT_EQ(tasks.exit_code, 0);
  EXPECT_EQ(parsed(tasks.out), (Json{{"tasks", {"image-classification"}}}));
  const auto one = eval({"--schema", "--task", "image-classification", "-f", "json"});
  EXPECT_EQ(parsed(one.out)["columns"][1]["default"], "label");
  EXPECT_EQ(eval({"--schema", "--task", "inpainting"}).exit_code, 2);
}

}  // namespace
}  // namespace mk::cli
