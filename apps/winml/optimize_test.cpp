// winml optimize as a process: what it writes, says and refuses. What the passes make of graphs is tested beside them.

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "testing/testing.h"

namespace mk::cli {
namespace {

class OptimizeTest : public ::testing::Test {
 protected:
  static ProcessOutcome winml(std::vector<std::string> arguments) {
    auto outcome = run_process(MODELKIT_WINML, {.arguments = std::move(arguments), .environment = {}});
    EXPECT_TRUE(outcome) << outcome.error().to_string();
    return outcome ? *outcome : ProcessOutcome{};
  }
  static Json parsed(const std::string& text) {
    auto json = parse_json(text, "stdout");
    EXPECT_TRUE(json) << text;
    return json ? *json : Json();
  }
  std::string digits() {
    const std::string path = to_utf8(folder_ / "digits.onnx");
    const auto exported =
        winml({"export", "-m", to_utf8(testing::repository("samples/digits-vit")), "-o", path, "--no-verify", "-q"});
    EXPECT_EQ(exported.exit_code, 0) << exported.err;
    return path;
  }
  testing::TemporaryFolder folder_;
};

TEST_F(OptimizeTest, FusesAndComparesAndLeavesTheModel) {
  const std::string model = digits();
  ASSERT_OK_AND(const std::string before, read_text(path_from_utf8(model)));
  const auto outcome = winml({"optimize", "-m", model, "--enable-gelu-fusion", "-f", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = parsed(outcome.out);
  EXPECT_EQ(report["files"][0], to_utf8(folder_ / "digits_opt.onnx"));
  EXPECT_LT(report["nodes_after"], report["nodes_before"]);
  EXPECT_LT(report["max_abs_diff"].get<double>(), 1e-4);
  EXPECT_EQ(report["tolerance"], 1e-3);
  EXPECT_TRUE(report["rolled_back"].empty());
  ASSERT_OK_AND(const std::string after, read_text(path_from_utf8(model)));
  EXPECT_EQ(before, after);

  const auto again = winml({"optimize", "-m", model});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("--overwrite"), std::string::npos) << again.err;

  const auto unchecked = winml({"optimize", "-m", model, "--overwrite", "--no-verify", "-f", "json"});
  EXPECT_EQ(parsed(unchecked.out)["max_abs_diff"], nullptr);
}

TEST_F(OptimizeTest, ConfigsAreYamlOrJsonAndFlagsWin) {
  const std::string model = digits();
  const auto fused = [&](const Path& config, std::vector<std::string> more = {}) -> std::size_t {
    std::vector<std::string> arguments{"optimize", "-m", model, "-c", to_utf8(config), "--overwrite", "-f", "json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto outcome = winml(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::size_t places = 0;
    const Json report = parsed(outcome.out);
    for (const Json& row : report["passes"]) {
      if (row["pass"] == "gelu-fusion") places += row["fired"].get<std::size_t>();
    }
    return places;
  };
  EXPECT_EQ(fused(folder_.write("a.yaml", "gelu-fusion: true\n")), 4U);  // one per layer
  EXPECT_EQ(fused(folder_.write("b.yml", "{}\n")), 0U);
  EXPECT_EQ(fused(folder_.write("c.json", R"({"gelu_fusion": true})")), 4U);
  EXPECT_EQ(fused(folder_.write("d.json", R"({"capabilities": {"gelu_fusion": true}})"), {"--disable-gelu-fusion"}),
            0U);
}

TEST_F(OptimizeTest, BadConfigsAreUsageErrorsThatSayWhere) {
  const std::string model = digits();
  const auto refused = [&](const Path& config, std::string_view why) {
    const auto outcome = winml({"optimize", "-m", model, "-c", to_utf8(config), "--overwrite"});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.err.find(why), std::string::npos) << outcome.err;
  };
  refused(folder_.write("a.yaml", "gelu-fusio: true\n"), "Did you mean 'gelu-fusion'?");
  refused(folder_.write("b.yaml", "a: [\n"), "Invalid YAML");
  refused(folder_.write("c.json", R"({"gelu_fusion": 1})"), "c.json#/gelu_fusion");
  refused(folder_.write("d.toml", ""), "Use .yaml, .yml or .json");
  refused(folder_.write("e.json", "[]"), "mapping");
  refused(folder_.write("g.yaml", "gelu-fusion: true\ngelu-fusion: false\n"), "is there twice");
  refused(folder_.write("h.yaml", "gelu-fusion: true\ngelu_fusion: false\n"), "is there twice");
  refused(folder_.write("i.yaml", ""), "mapping");
  const auto known = winml({"optimize", "-m", model, "-c",
                            to_utf8(folder_.write("f.json", R"({"clamp_constant_values": true})")), "--overwrite"});
  EXPECT_EQ(known.exit_code, 0);
  EXPECT_NE(known.err.find("clamp-constant-values has no pass"), std::string::npos) << known.err;
}

TEST_F(OptimizeTest, RefusesWhatItCannotDo) {
  EXPECT_EQ(winml({"optimize"}).exit_code, 2);
  EXPECT_EQ(winml({"optimize", "-m", to_utf8(folder_ / "none.onnx")}).exit_code, 2);
  const Path broken = folder_.write("broken.onnx", "\x08\x08\xff");
  EXPECT_EQ(winml({"optimize", "-m", to_utf8(broken)}).exit_code, 3);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "broken_opt.onnx"));
  const auto both = winml({"optimize", "-m", to_utf8(broken), "--enable-gelu-fusion", "--disable-gelu-fusion"});
  EXPECT_EQ(both.exit_code, 2);
}

TEST_F(OptimizeTest, DataThatIsMissingOrShortIsSaid) {
  ASSERT_OK_AND(const auto model, read_onnx(path_from_utf8(digits())));
  const Path split = folder_ / "split.onnx", data = folder_ / "split.onnx.data";
  Publication publication;
  ASSERT_OK(write_onnx(*model, split, publication, true, {.external = ExternalData::always}));
  ASSERT_OK(publication.commit());
  const auto refused = [&](int code, const std::string& what) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"optimize"}, {"quantize", "-p", "fp16"}, {"quantize", "-p", "w8a8"}}) {
      std::vector<std::string> arguments = command;
      arguments.insert(arguments.end(), {"-m", to_utf8(split), "-o", to_utf8(folder_ / "beside.onnx")});
      const auto outcome = winml(arguments);
      EXPECT_EQ(outcome.exit_code, code) << outcome.err;
      EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
      EXPECT_FALSE(std::filesystem::exists(folder_ / "beside.onnx"));
    }
    EXPECT_EQ(winml({"build", "-m", to_utf8(split), "-o", to_utf8(folder_ / "out")}).exit_code, code);
  };
  std::filesystem::resize_file(data, 100);
  refused(3, "is not in a file of 100");
  std::filesystem::remove(data);
  for (const char* precision : {"fp16", "w8a8"})
    EXPECT_EQ(
        winml({"quantize", "-p", precision, "-m", to_utf8(split), "-o", to_utf8(folder_ / "beside.onnx")}).exit_code,
        2);
  EXPECT_EQ(winml({"build", "-m", to_utf8(split), "-o", to_utf8(folder_ / "out")}).exit_code, 2);

  // Optimizing needs no data: references survive in the model's folder, and only there.
  const auto outcome = winml({"optimize", "-m", to_utf8(split), "-f", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("were not compared"), std::string::npos) << outcome.err;
  EXPECT_LT(parsed(outcome.out)["nodes_after"], parsed(outcome.out)["nodes_before"]);
  EXPECT_EQ(winml({"optimize", "-m", to_utf8(split), "-o", to_utf8(folder_ / "sub" / "x.onnx")}).exit_code, 2);
}

// The same answer from each command that changes a model.
TEST_F(OptimizeTest, WhatNoRuntimeTakesIsRefused) {
  Model model;
  model.ir_version = 8;
  model.set_opset({}, 17);
  Graph& graph = *model.graph;
  graph.name = "g";
  Value* x = graph.add_value("x");
  x->type = Type::tensor(DataType::float32, static_shape({2, 3}));
  graph.mark_input(x);
  Value* y = graph.add_op("Cast", {x}, "y");
  y->type = x->type;
  graph.mark_output(y);
  const Path path = folder_ / "cast.onnx";
  Publication publication;
  ASSERT_OK(write_onnx(model, path, publication, true));
  ASSERT_OK(publication.commit());
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"optimize"}, {"quantize", "-p", "fp16"}, {"quantize"}, {"build"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"-m", to_utf8(path), "-o", to_utf8(folder_ / "out"), "--no-verify"});
    const auto outcome = winml(arguments);
    EXPECT_EQ(outcome.exit_code, 3) << outcome.err;
    EXPECT_NE(outcome.err.find("Cast: its attribute to is missing"), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
  }
}

TEST_F(OptimizeTest, FilesThatTheModelIsMadeFromStay) {
  ASSERT_OK_AND(const auto model, read_onnx(path_from_utf8(digits())));
  Publication publication;
  ASSERT_OK(write_onnx(*model, folder_ / "split.onnx", publication, true, {.external = ExternalData::always}));
  ASSERT_OK(publication.commit());
  const std::string split = to_utf8(folder_ / "split.onnx"), data = to_utf8(folder_ / "split.onnx.data");
  const auto onto_data = winml({"optimize", "-m", split, "-o", data, "--overwrite"});
  EXPECT_EQ(onto_data.exit_code, 2);
  EXPECT_NE(onto_data.err.find("made from"), std::string::npos) << onto_data.err;
  const std::string config = to_utf8(folder_.write("c.yaml", "gelu-fusion: true\n"));
  EXPECT_EQ(winml({"optimize", "-m", split, "-c", config, "-o", config, "--overwrite"}).exit_code, 2);
  EXPECT_EQ(winml({"optimize", "-m", split, "-o", split, "--overwrite"}).exit_code, 0);  // itself, whole
}

TEST_F(OptimizeTest, ListsWhatCanBeSwitched) {
  const auto outcome = winml({"optimize", "-l"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_TRUE(outcome.out.starts_with("Available optimization flags ("));
  EXPECT_NE(outcome.out.find("--enable-gelu-fusion"), std::string::npos);
  const auto probe = winml({"optimize", "-m", digits(), "--check-optim", "-f", "json"});
  EXPECT_EQ(probe.exit_code, 0) << probe.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "digits_opt.onnx"));
  const Json report = parsed(probe.out);
  for (const Json& row : report["findings"]) {
    if (row["capability"] == "gelu-fusion") {
      EXPECT_EQ(row["places"], 4);
    }
  }
}

}  // namespace
}  // namespace mk::cli
