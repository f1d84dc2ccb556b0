// The command as a process: what it prints where, and how it ends.

#include <algorithm>

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "testing/testing.h"
#include "winml/commands.h"

namespace mk::cli {
namespace {

ProcessOutcome winml(std::vector<std::string> arguments, std::map<std::string, std::string> environment = {}) {
  auto outcome =
      run_process(MODELKIT_WINML, {.arguments = std::move(arguments), .environment = std::move(environment)});
  EXPECT_TRUE(outcome) << outcome.error().to_string();
  return outcome ? *outcome : ProcessOutcome{};
}

Json parsed(const std::string& text) {
  auto json = parse_json(text, "stdout");
  EXPECT_TRUE(json) << text;
  return json ? *json : Json();
}

TEST(Root, HelpIsTheSameHoweverItIsAskedFor) {
  const ProcessOutcome none = winml({});
  for (const char* flag : {"-h", "--help"}) {
    const ProcessOutcome asked = winml({flag});
    EXPECT_EQ(asked.exit_code, 0);
    EXPECT_EQ(asked.out, none.out);
    EXPECT_EQ(asked.err, none.err);
  }
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_TRUE(none.out.starts_with("Usage: winml [OPTIONS] COMMAND [ARGS]..."));
  EXPECT_NE(none.out.find("\n  sys "), std::string::npos);
}

TEST(Root, BannerIsOnStderrWithoutColourAndWithTheVersion) {
  const ProcessOutcome help = winml({}, {{"LC_ALL", "C.UTF-8"}});
  EXPECT_NE(help.err.find("█"), std::string::npos);
  EXPECT_NE(help.err.find(MODELKIT_VERSION), std::string::npos);
  EXPECT_EQ(help.out.find("█"), std::string::npos);
  EXPECT_EQ((help.out + help.err).find('\x1b'), std::string::npos);
  EXPECT_EQ(winml({}, {{"LC_ALL", "C"}}).err.find("█"), std::string::npos);
}

TEST(Root, Version) {
  const ProcessOutcome version = winml({"--version"});
  EXPECT_EQ(version.out, "winml, version " MODELKIT_VERSION "\n");
  EXPECT_EQ(version.err, "");
  EXPECT_EQ(version.exit_code, 0);
}

TEST(Root, UnknownCommandsSuggestOnlyWhatIsNear) {
  const ProcessOutcome swapped = winml({"syss"});
  EXPECT_EQ(swapped.exit_code, 2);
  EXPECT_EQ(swapped.out, "");
  EXPECT_EQ(swapped.err, "error: No such command 'syss'. Did you mean 'sys'?\n");
  EXPECT_EQ(winml({"xylophone"}).err, "error: No such command 'xylophone'. `winml --help` lists the commands\n");
  EXPECT_EQ(winml({"--verison"}).err, "error: No such option '--verison'. Did you mean '--version'?\n");
}

TEST(Root, CommandsOfThePythonToolSayThatTheyAreMissing) {
  const ProcessOutcome serve = winml({"serve"});
  EXPECT_EQ(serve.exit_code, 2);
  EXPECT_NE(serve.err.find("not available in this version"), std::string::npos);
  EXPECT_EQ(winml({}).out.find("serve"), std::string::npos);
}

TEST(Command, HelpHasNoBanner) {
  const ProcessOutcome help = winml({"sys", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_TRUE(help.out.starts_with("Usage: winml sys [OPTIONS]\n"));
  EXPECT_EQ(winml({"sys", "-h"}).out, help.out);
  EXPECT_EQ(winml({"sys", "--list-ep", "-qh"}).out, help.out);
}

TEST(Command, UsageErrorsAreOneLineAndExitTwo) {
  const ProcessOutcome wrong = winml({"sys", "--lst-ep"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.out, "");
  EXPECT_EQ(wrong.err, "error: No such option '--lst-ep'. Did you mean '--list-ep'?\n");
}

TEST(Command, ErrorsAreJsonWhereJsonWasAskedFor) {
  for (const std::vector<std::string>& format :
       {std::vector<std::string>{"--format", "json"}, {"-f", "JSON"}, {"--format=json"}, {"-fjson"}}) {
    std::vector<std::string> arguments{"sys", "--lst-ep"};
    arguments.insert(arguments.end(), format.begin(), format.end());
    const ProcessOutcome wrong = winml(arguments);
    EXPECT_EQ(wrong.exit_code, 2);
    const Json document = parsed(wrong.out);
    EXPECT_EQ(document["error"]["code"], "usage");
    EXPECT_EQ(document["error"]["message"], "No such option '--lst-ep'");
    EXPECT_EQ(document["error"]["hint"], "Did you mean '--list-ep'?");
    EXPECT_TRUE(document["error"].contains("where"));
    EXPECT_TRUE(wrong.err.starts_with("error: "));
  }
}

TEST(Sys, JsonKeepsTheKeysThatScriptsRead) {
  const ProcessOutcome sys = winml({"sys", "-f", "json"});
  EXPECT_EQ(sys.exit_code, 0);
  const Json document = parsed(sys.out);
  for (const char* key : {"schema_version", "python", "platform", "memory", "libraries", "torch", "backends",
                          "export_readiness", "executionProviders", "devices"})
    EXPECT_TRUE(document.contains(key)) << key;
  EXPECT_EQ(document["schema_version"], 1);
  EXPECT_EQ(document["devices"][0]["priority"], 1);
}

TEST(Sys, ListsAreOneObjectEach) {
  const Json devices = parsed(winml({"sys", "--list-device", "--format", "json"}).out);
  EXPECT_EQ(devices.size(), 1u);
  EXPECT_TRUE(devices["devices"].is_array());
  EXPECT_EQ(devices["devices"], parsed(winml({"sys", "--format", "json"}).out)["devices"]);
}

TEST(Sys, SucceedsWithoutOnnxRuntime) {
  const testing::TemporaryFolder empty;
  const std::map<std::string, std::string> nowhere{{"WINML_ORT_PATH", to_utf8(empty.path())}};
  const ProcessOutcome sys = winml({"sys", "--format", "json"}, nowhere);
  EXPECT_EQ(sys.exit_code, 0);
  const Json document = parsed(sys.out);
  EXPECT_TRUE(document["libraries"]["onnxruntime"].is_null());
  EXPECT_EQ(document["executionProviders"], Json::object());
  EXPECT_NE(sys.err.find("Warning"), std::string::npos);
  // Asked for by name, it is an error.
  EXPECT_NE(winml({"sys", "--list-ep"}, nowhere).exit_code, 0);
}

TEST(Sys, CompactIsAFewLines) {
  const ProcessOutcome sys = winml({"sys", "-f", "compact"});
  EXPECT_TRUE(sys.out.starts_with("winml: " MODELKIT_VERSION " ("));
  EXPECT_TRUE(winml({"sys", "-f", "compact", "--list-device"}).out.starts_with("CPU: "));
}

// What bash completes after a line of words, the last of which is being typed.
std::string completed(const std::string& words) {
  const std::string script = "source <(" MODELKIT_WINML " completion bash); COMP_WORDS=(" + words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _winml; echo \"${COMPREPLY[*]}\"";
  const auto outcome = run_process("/bin/bash", {.arguments = {"-c", script}});
  EXPECT_TRUE(outcome);
  EXPECT_EQ(outcome->err, "");
  return outcome->out;
}

TEST(Catalog, ShowsFiltersAndWrites) {
  const ProcessOutcome resnets = winml({"catalog", "--ep", "openvino", "--model-type", "ResNet"});
  EXPECT_EQ(resnets.exit_code, 0);
  EXPECT_NE(resnets.out.find("WinML CLI Catalog | 2 validated models\n"), std::string::npos) << resnets.out;
  EXPECT_NE(resnets.out.find("microsoft/resnet-50  image-classification    25MB  resnet      CPU / GPU / NPU\n"),
            std::string::npos)
      << resnets.out;
  EXPECT_EQ(winml({"catalog", "-t", "nonsense"}).out, "No models match the given filters.\n");
  EXPECT_EQ(winml({"catalog", "-t", "nonsense", "-f", "json"}).out, "[]\n");
  EXPECT_EQ(winml({"catalog", "--ep", "nonsense"}).exit_code, 2);

  testing::TemporaryFolder folder;
  const Path file = folder.path() / "sub" / "list.json";
  EXPECT_EQ(winml({"catalog", "-t", "mask-generation", "-o", to_utf8(file)}).exit_code, 0);
  ASSERT_OK_AND(const std::string text, read_text(file));
  const Json list = parsed(text);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["onnx_path"], "onnx/prompt_encoder_mask_decoder_int8.onnx");
  EXPECT_EQ(list[0]["size_mb"], 9.6);
  EXPECT_EQ(list[0]["supported_eps"], (Json{{"cpu", {"CPU"}}}));
  EXPECT_EQ(winml({"catalog", "-o", to_utf8(file)}).exit_code, 1);
  EXPECT_EQ(winml({"catalog", "-o", to_utf8(file), "--overwrite"}).exit_code, 0);
}

TEST(Completion, Bash) {
  EXPECT_EQ(completed("winml sy"), "sys\n");
  EXPECT_EQ(completed("winml sys --list"), "--list-device --list-ep\n");
  EXPECT_EQ(completed("winml -v sys --format j"), "json\n");
  EXPECT_EQ(completed("winml sys --format = c"), "compact\n");
  EXPECT_EQ(completed("winml completion z"), "zsh\n");
  EXPECT_EQ(completed("winml sys --ort ''"), "\n");  // paths are the shell's
}

TEST(Completion, EveryShellKnowsEveryCommand) {
  for (const char* shell : {"bash", "zsh", "fish", "powershell"}) {
    const ProcessOutcome script = winml({"completion", shell});
    EXPECT_EQ(script.exit_code, 0);
    EXPECT_NE(script.out.find("sys"), std::string::npos) << shell;
    EXPECT_NE(script.out.find("list-ep"), std::string::npos) << shell;
    EXPECT_EQ(script.out.find("debug"), std::string::npos) << shell;
  }
  EXPECT_EQ(winml({"completion", "tcsh"}).exit_code, 2);
}

// docs/commands has a page per command whose option table is what the command says; tools/update-docs writes it.
TEST(Docs, TablesDoNotDrift) {
  for (const Command& command : all_commands()) {
    if (command.hidden) continue;
    const std::string name(command.name);
    ASSERT_OK_AND(const std::string page, read_text(testing::repository("docs/commands/" + name + ".md")));
    const std::string table = winml({"docs", name}).out;
    EXPECT_NE(page.find("<!-- options: " + name + " -->\n" + table + "<!-- end -->\n"), std::string::npos)
        << "docs/commands/" << name << ".md: run tools/update-docs";
  }
  ASSERT_OK_AND(const std::string page, read_text(testing::repository("docs/architectures.md")));
  EXPECT_NE(page.find("<!-- options: architectures -->\n" + winml({"docs", "architectures"}).out + "<!-- end -->\n"),
            std::string::npos)
      << "docs/architectures.md: run tools/update-docs";
}

TEST(Streams, AReaderThatLeavesIsNoError) {
  const auto outcome = run_process(
      "/bin/bash", {.arguments = {"-c", "set -o pipefail; " MODELKIT_WINML " completion zsh | head -1 >/dev/null"}});
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->exit_code, 0);
  EXPECT_EQ(outcome->err, "");
}

TEST(Streams, AFullDiskBehindStdoutIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  const auto outcome = run_process("/bin/bash", {.arguments = {"-c", MODELKIT_WINML " --version > /dev/full"}});
  ASSERT_OK(outcome);
  EXPECT_EQ(outcome->exit_code, 1);
  EXPECT_TRUE(outcome->err.starts_with("error: cannot write"));
}

std::string sample() { return to_utf8(testing::repository("samples/digits-vit")); }

TEST(Inspect, ACheckpointHasTheKeysOfThePythonTool) {
  const Json model = parsed(winml({"inspect", "-m", sample(), "-f", "json", "-H"}).out);
  for (const char* key : {"model_id", "model_type", "architectures", "task", "task_source", "pipeline_tasks",
                          "composite", "overall_support", "support_notes", "loader", "exporter", "winml", "cache",
                          "hierarchy", "processor", "io_config"})
    EXPECT_TRUE(model.contains(key)) << key;
  EXPECT_EQ(model["task"], "image-classification");
  EXPECT_EQ(model["task_source"], "tasks-manager");
  EXPECT_EQ(model["exporter"]["input_tensors"][0]["shape_desc"], "[B, 3, 32, 32]");
  EXPECT_EQ(model["winml"]["winml_class"], "WinMLModelForImageClassification");
  EXPECT_EQ(model["hierarchy"]["root_class"], "ViTForImageClassification");
  EXPECT_EQ(model["checkpoint"]["tensor_count"], 72);
  EXPECT_EQ(model["hierarchy"]["total_parameters"].get<std::int64_t>() * 4,
            model["checkpoint"]["bytes"].get<std::int64_t>());
}

// The tree and the cost come from the builders: weights are not needed.
TEST(Inspect, AConfigAloneHasATreeAndACost) {
  const testing::TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": "resnet", "architectures": ["ResNetForImageClassification"],
                                  "num_labels": 1000, "image_size": 224})");
  const Json model = parsed(winml({"inspect", "-m", to_utf8(folder.path()), "-f", "json", "-H"}).out);
  EXPECT_EQ(model["hierarchy"]["root_class"], "ResNetForImageClassification");
  // ResNet-50 as its paper has it: 25.6 million parameters; 4.1 billion multiply-accumulates at 224 x 224 with the
  // stride in the 3 x 3 convolutions.
  EXPECT_NEAR(model["graph"]["parameters"].get<double>(), 25.6e6, 0.1e6);
  const Json& shape = model["exporter"]["input_tensors"][0]["shape"];
  const double scale = shape[2].get<double>() * shape[3].get<double>() / (224.0 * 224.0);
  EXPECT_NEAR(model["graph"]["macs"].get<double>(), 4.1e9 * scale, 0.1e9 * scale);
  EXPECT_EQ(model["graph"]["unknown_nodes"], 0);
  const Json targets = model["targets"];
  const auto npu = std::ranges::find_if(
      targets, [](const Json& t) { return t["ep"] == "QNNExecutionProvider" && t["device"] == "npu"; });
  ASSERT_NE(npu, targets.end());
  EXPECT_EQ((*npu)["precision"], "w8a16");
  EXPECT_EQ((*npu)["stages"], (Json{"export", "optimize", "quantize"}));
}

TEST(Inspect, SeveralGraphsAreNamed) {
  const testing::TemporaryFolder folder;
  folder.write("config.json", R"({"model_type": "bart", "architectures": ["BartForConditionalGeneration"]})");
  const Json model = parsed(winml({"inspect", "-m", to_utf8(folder.path()), "-f", "json"}).out);
  EXPECT_EQ(model["composite"]["components"],
            (Json{{"encoder", "feature-extraction"}, {"decoder", "text2text-generation"}}));
  EXPECT_EQ(model["composite"]["pipeline_tasks"], (Json{"summarization", "table-question-answering"}));
  EXPECT_EQ(model["pipeline_tasks"], model["composite"]["pipeline_tasks"]);
}

TEST(Inspect, ListsTasksAndTensors) {
  const std::string all = winml({"inspect", "--list-tasks"}).out;
  EXPECT_EQ(std::ranges::count(all, '\n'), 40);
  EXPECT_TRUE(all.starts_with("any-to-any\naudio-classification\n"));
  EXPECT_EQ(winml({"inspect", "--list-tasks", "-m", sample()}).out, "image-classification\nimage-feature-extraction\n");
  EXPECT_EQ(winml({"inspect", "--list-tasks", "--model-type", "nonsense"}).exit_code, 1);
  EXPECT_NE(winml({"inspect", "-m", sample(), "--list-tensors"}).out.find("vit.embeddings.cls_token"),
            std::string::npos);
}

TEST(Inspect, EndsAsTheTableOfExitCodesSays) {
  EXPECT_EQ(winml({"inspect"}).exit_code, 2);
  EXPECT_EQ(winml({"inspect", "-m", "./missing"}).exit_code, 2);
  EXPECT_EQ(winml({"inspect", "-m", "missing.onnx"}).exit_code, 2);
  EXPECT_EQ(winml({"inspect", "-m", sample(), "-t", "nonsense"}).exit_code, 2);
  const testing::TemporaryFolder folder;
  EXPECT_EQ(winml({"inspect", "-m", to_utf8(folder.write("x.onnx", "no model at all"))}).exit_code, 3);
  folder.write("m/config.json", R"({"model_type": "bert", "hidden_size": "wide", "architectures": ["BertModel"]})");
  EXPECT_EQ(winml({"inspect", "-m", to_utf8(folder / "m")}).exit_code, 3);
  folder.write("n/config.json", R"({"model_type": "novel", "architectures": ["NovelModel"]})");
  const ProcessOutcome novel = winml({"inspect", "-m", to_utf8(folder / "n"), "-f", "json"});
  EXPECT_EQ(novel.exit_code, 0);
  EXPECT_EQ(parsed(novel.out)["overall_support"], "unsupported");
}

TEST(Config, JsonGoesToStdoutOrToTheFileAndNowhereElse) {
  const ProcessOutcome shown = winml({"config", "-m", sample()});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_EQ(parsed(shown.out)["loader"]["model_type"], "vit");
  EXPECT_NE(shown.err.find("auto-detected"), std::string::npos);

  const testing::TemporaryFolder folder;
  const std::string file = to_utf8(folder / "c.json");
  const ProcessOutcome written = winml({"-q", "config", "-m", sample(), "-o", file});
  EXPECT_EQ(written.exit_code, 0);
  EXPECT_EQ(written.out + written.err, "");
  ASSERT_OK_AND(const std::string text, read_text(folder / "c.json"));
  EXPECT_EQ(text + "\n", shown.out);
  const ProcessOutcome again = winml({"config", "-m", sample(), "-o", file});
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_NE(again.err.find("--overwrite"), std::string::npos);
  EXPECT_EQ(winml({"config", "-m", sample(), "-o", file, "--overwrite"}).exit_code, 0);
}

TEST(Config, UsageErrorsExitTwo) {
  const testing::TemporaryFolder folder;
  const std::string empty = to_utf8(folder.write("empty.json", ""));
  const std::string list = to_utf8(folder.write("list.json", "[1]"));
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"config"},
                                             {"config", "-m", sample(), "-p", "w9a3"},
                                             {"config", "-m", sample(), "--ep", "qnn@pypi"},
                                             {"config", "-m", sample(), "--ep", "qnnn"},
                                             {"config", "-m", sample(), "--ep", "qnn", "-d", "cpu"},
                                             {"config", "-m", sample(), "-d", "tpu"},
                                             {"config", "-m", sample(), "-c", empty},
                                             {"config", "-m", sample(), "-c", list},
                                             {"config", "-m", sample(), "--input-specs", list},
                                             {"config", "-m", sample(), "-c", "none.json"},
                                             {"config", "--model-type", "bertt"}}) {
    const ProcessOutcome outcome = winml(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments.back();
    EXPECT_EQ(outcome.out, "") << arguments.back();
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
}

TEST(Config, StrictRefusesUnknownKeys) {
  const testing::TemporaryFolder folder;
  const Path file = folder.write("c.json", R"({"quant": {"smaples": 3}})");
  for (const char* command : {"config", "build"}) {
    std::vector<std::string> arguments{command, "-m", sample(), "-c", to_utf8(file), "--strict"};
    if (std::string_view(command) == "build") {
      arguments.emplace_back("-o");
      arguments.push_back(to_utf8(folder.path() / "out"));
    }
    const ProcessOutcome refused = winml(arguments);
    EXPECT_EQ(refused.exit_code, 2) << command;
    EXPECT_NE(refused.err.find("unknown key 'smaples' (" + to_utf8(file) + "#/quant/smaples). Did you mean 'samples'?"),
              std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(winml({"config", "-m", sample(), "-c", to_utf8(file)}).exit_code, 0);
}

TEST(Recipes, ActionsAndExitCodes) {
  const testing::TemporaryFolder root;
  const std::string folder = to_utf8(root.path());
  root.write("org_m/fill-mask_fp32_config.json",
             R"({"export": {}, "optim": {}, "loader": {"task": "fill-mask", "model_type": "bert"}})");
  root.write("org_m/qnn/npu/fill-mask_w8a16_config.json", "{}");
  const Json list = parsed(winml({"recipes", "list", "--recipes", folder, "-f", "json"}).out);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["target"], nullptr);
  EXPECT_EQ(list[1]["target"], "qnn/npu");
  EXPECT_NE(winml({"recipes", "show", "--recipes", folder, "-m", "org/m", "-t", "fill-mask"}).out.find("\"bert\""),
            std::string::npos);
  EXPECT_EQ(winml({"recipes", "show", "--recipes", folder, "-m", "nobody/m"}).exit_code, 1);
  const ProcessOutcome check = winml({"recipes", "check", "--recipes", folder});
  EXPECT_EQ(check.exit_code, 1);
  EXPECT_NE(check.out.find("1 of 2 recipes are right"), std::string::npos) << check.out;
  EXPECT_EQ(winml({"recipes", "check", "--recipes", folder, folder + "/org_m/fill-mask_fp32_config.json"}).exit_code,
            0);
  EXPECT_EQ(winml({"recipes", "copy", "--recipes", folder, "--from", "qnn/npu"}).exit_code, 2);
  EXPECT_EQ(winml({"recipes", "copy", "--recipes", folder, "--from", "qnn/npu", "--to", "openvino/npu"}).out,
            folder + "/org_m/openvino/npu/fill-mask_w8a16_config.json\n1 copied\n");
  EXPECT_EQ(winml({"recipes", "list", "--recipes", folder + "/none"}).exit_code, 2);
  EXPECT_EQ(winml({"recipes", "fly"}).exit_code, 2);
}

TEST(Config, JsonFilesMayBePipes) {
  const auto outcome =
      run_process("/bin/bash", {.arguments = {"-c", MODELKIT_WINML " config -q -m " + sample() +
                                                        " --export-config <(echo '{\"opset_version\": 18}')"}});
  ASSERT_OK(outcome);
  ASSERT_EQ(outcome->exit_code, 0) << outcome->err;
  EXPECT_EQ(parsed(outcome->out)["export"]["opset_version"], 18);
}

TEST(Config, AnExportSectionMustBeAnObject) {
  const testing::TemporaryFolder folder;
  const ProcessOutcome outcome =
      winml({"config", "-m", sample(), "-c", to_utf8(folder.write("c.json", R"({"export": 3})"))});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.err.find("c.json#/export"), std::string::npos) << outcome.err;
}

TEST(Export, RunsTheResultUnlessToldNotTo) {
  const testing::TemporaryFolder folder;
  const std::vector<std::string> plain{"export",      "-m", sample(), "-o", to_utf8(folder / "m.onnx"),
                                       "--overwrite", "-f", "json"};
  EXPECT_EQ(parsed(winml(plain).out)["verify"], "runs, output finite");

  std::vector<std::string> unchecked = plain;
  unchecked.push_back("--no-verify");
  const ProcessOutcome written = winml(unchecked);
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_TRUE(parsed(written.out)["verify"].is_null());

  const ProcessOutcome without = winml(plain, {{"WINML_ORT_PATH", to_utf8(folder / "none")}});
  EXPECT_EQ(without.exit_code, 0) << without.err;
  EXPECT_NE(without.err.find("the result was not run"), std::string::npos) << without.err;
}

}  // namespace
}  // namespace mk::cli
