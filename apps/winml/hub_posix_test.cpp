// Commands with models of the Hub, as processes: a local server stands for it.

#include <chrono>
#include <csignal>
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "base/process.h"
#include "testing/hub_server.h"
#include "testing/testing.h"

namespace mk::cli {
namespace {

class HubCommand : public ::testing::Test {
 protected:
  HubCommand() {
    const Path sample = testing::repository("samples/digits-vit");
    for (const char* name : {"config.json", "preprocessor_config.json"})
      server_.add("ada/digits", name, text(sample / name));
    server_.add("ada/digits", "model.safetensors", text(sample / "model.safetensors"), true);
  }
  static std::string text(const Path& path) { return read_text(path, 1u << 30).value(); }

  std::map<std::string, std::string> environment() const {
    return {{"HF_ENDPOINT", server_.url()},
            {"HF_HOME", to_utf8(home())},
            {"HF_HUB_CACHE", to_utf8(home() / "hub")},
            {"HF_HUB_OFFLINE", "0"},
            {"TRANSFORMERS_OFFLINE", "0"},
            {"HF_TOKEN", "hf_ofTheTest"},
            {"no_proxy", "127.0.0.1"},
            {"WINML_CACHE_DIR", to_utf8(folder_ / "cache")}};
  }
  ProcessOutcome winml(std::vector<std::string> arguments, std::map<std::string, std::string> more = {}) {
    more.merge(environment());
    auto outcome = run_process(MODELKIT_WINML, {.arguments = std::move(arguments), .environment = std::move(more)});
    EXPECT_TRUE(outcome) << outcome.error().to_string();
    EXPECT_EQ(outcome->err.find("hf_ofTheTest"), std::string::npos);
    EXPECT_EQ(outcome->out.find("hf_ofTheTest"), std::string::npos);
    return outcome ? *outcome : ProcessOutcome{};
  }
  Path home() const { return folder_ / "home"; }

  testing::TemporaryFolder folder_;
  testing::HubServer server_;
};

TEST_F(HubCommand, InspectFetchesConfigsOnly) {
  const ProcessOutcome outcome = winml({"inspect", "-m", "ada/digits", "-f", "json"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_OK(parse_json(outcome.out, "stdout"));
  EXPECT_EQ(server_.stored_requests(), 0u);
  EXPECT_EQ(server_.asked().size(), 3u);
}

TEST_F(HubCommand, ExportTakesAnId) {
  const Path output = folder_ / "m.onnx";
  const ProcessOutcome outcome = winml({"export", "-m", "ada/digits@main", "-o", to_utf8(output)});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("download model.safetensors"), std::string::npos) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(output));
  server_.hub().forget_requests();
  const ProcessOutcome offline =
      winml({"--offline", "export", "-m", "ada/digits", "-o", to_utf8(folder_ / "again.onnx")});
  EXPECT_EQ(offline.exit_code, 0) << offline.err;
  EXPECT_TRUE(server_.asked().empty());
}

TEST_F(HubCommand, ABareRepositoryIsBuiltFromItsGraph) {
  server_.add("ada/bare", "onnx/net.onnx", text(testing::repository("tests/data/hub/external.onnx")), true);
  server_.add("ada/bare", "onnx/weights.bin", std::string(16, '\0'), true);
  const ProcessOutcome outcome = winml({"build", "-m", "ada/bare", "-d", "cpu", "-o", to_utf8(folder_ / "out")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_OK_AND(const Json manifest, read_json(folder_ / "out" / "build_manifest.json"));
  const Json wanted = {{"repository", "ada/bare"}, {"revision", std::string(40, 'a')}, {"artifact", "onnx/net.onnx"}};
  EXPECT_EQ(manifest.value("hub", Json()), wanted) << manifest.dump();
}

TEST_F(HubCommand, ABuildRecordsTheCommit) {
  const ProcessOutcome outcome = winml({"build", "-m", "ada/digits", "-d", "cpu", "-o", to_utf8(folder_ / "out")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_OK_AND(const Json manifest, read_json(folder_ / "out" / "build_manifest.json"));
  EXPECT_EQ(manifest.value("revision", ""), std::string(40, 'a'));
}

TEST_F(HubCommand, GoesThroughTheProxy) {
  const ProcessOutcome outcome =
      winml({"inspect", "-m", "ada/digits"},
            {{"HF_ENDPOINT", "http://hub.invalid"}, {"http_proxy", server_.url()}, {"no_proxy", "localhost"}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  ASSERT_FALSE(server_.asked().empty());
  EXPECT_EQ(server_.hub().requests()[0].header("host"), "hub.invalid");
}

TEST_F(HubCommand, TheTokenMayBeInAFile) {
  testing::HubServerRepository hidden{.token = "hf_fromTheFile"};
  hidden.files["config.json"] = {text(testing::repository("samples/digits-vit/config.json")), false};
  server_.put("ada/hidden", hidden);
  const auto code = [&](std::map<std::string, std::string> more) {
    std::filesystem::remove_all(home() / "hub");
    more.emplace("HF_TOKEN", "");
    return winml({"inspect", "-m", "ada/hidden"}, std::move(more)).exit_code;
  };
  EXPECT_EQ(code({}), 2);
  folder_.write("home/token", "hf_fromTheFile\n");
  EXPECT_EQ(code({}), 0);
  EXPECT_EQ(code({{"HF_TOKEN", " hf_fromTheFile\r\n"}}), 0);
  EXPECT_EQ(code({{"HF_TOKEN", "hf_another"}}), 2);  // it comes before the file
  EXPECT_EQ(code({{"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"}}), 2);
  const Path other = folder_.write("other/token", "hf_another");
  EXPECT_EQ(code({{"HF_TOKEN_PATH", to_utf8(other)}}), 2);
  // What would be a header of its own is no token.
  server_.hub().forget_requests();
  code({{"HF_TOKEN", "hf_a\r\nX-Evil: 1"}, {"HF_TOKEN_PATH", to_utf8(folder_ / "none")}});
  for (const auto& request : server_.hub().requests()) {
    EXPECT_EQ(request.header("x-evil"), "");
    EXPECT_EQ(request.header("authorization"), "");
  }
}

TEST_F(HubCommand, RefusalsAreOneLineAndTwo) {
  for (const char* model : {"ada/none", "ada/digits@none", "ada/digits/none.onnx"}) {
    const ProcessOutcome outcome = winml({"inspect", "-m", model});
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  const ProcessOutcome endpoint = winml({"inspect", "-m", "ada/digits"}, {{"HF_ENDPOINT", "ftp://hub"}});
  EXPECT_EQ(endpoint.exit_code, 2);
  EXPECT_NE(endpoint.err.find("HF_ENDPOINT"), std::string::npos);
  const ProcessOutcome unreachable = winml({"inspect", "-m", "ada/other"}, {{"HF_ENDPOINT", "http://127.0.0.1:1"}});
  EXPECT_EQ(unreachable.exit_code, 1);
  EXPECT_EQ(std::count(unreachable.err.begin(), unreachable.err.end(), '\n'), 1) << unreachable.err;
}

#if !defined(__SANITIZE_ADDRESS__)
// A library that ends the process at its first socket stands before the system's.
TEST_F(HubCommand, OfflineOpensNoSocket) {
  const std::pair<std::string, std::string> trap("LD_PRELOAD", MODELKIT_NO_SOCKET);
  ASSERT_NE(winml({"inspect", "-m", "ada/digits"}, {trap}).exit_code, 0);  // the trap works
  ASSERT_EQ(server_.asked().size(), 0u);
  EXPECT_EQ(winml({"inspect", "-m", "ada/digits"}).exit_code, 0);
  server_.hub().forget_requests();
  EXPECT_EQ(winml({"inspect", "-m", "ada/digits", "--offline"}, {trap}).exit_code, 0);
  EXPECT_EQ(winml({"inspect", "-m", "ada/digits"}, {trap, {"HF_HUB_OFFLINE", "1"}}).exit_code, 0);
  EXPECT_EQ(winml({"inspect", "-m", "ada/digits"}, {trap, {"TRANSFORMERS_OFFLINE", "yes"}}).exit_code, 0);
  const ProcessOutcome absent = winml({"inspect", "-m", "ada/none", "--offline"}, {trap});
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_NE(absent.err.find("--offline forbids the network"), std::string::npos) << absent.err;
  // Nor for what is on this machine.
  EXPECT_EQ(winml({"inspect", "-m", to_utf8(testing::repository("samples/digits-vit"))}, {trap}).exit_code, 0);
}
#endif

// Stopped in the middle: what was fetched stays, and the next run goes on from there.
TEST_F(HubCommand, AnInterruptKeepsWhatWasFetched) {
  const std::string weights = text(testing::repository("samples/digits-vit") / "model.safetensors");
  const std::size_t first = 100'000;
  const Path partial = home() / "hub/models--ada--digits/blobs" / (testing::etag_of({weights, true}) + ".incomplete");
  for (const int signal : {SIGINT, SIGKILL}) {
    std::filesystem::remove_all(home());
    // The storage sends a part, and then the process is stopped while it waits to try again.
    server_.intercept(
        [](const testing::ServedRequest& request, bool storage) -> std::optional<testing::ServedResponse> {
          if (!storage || request.header("range").empty()) return std::nullopt;
          return testing::ServedResponse{.status = 503, .headers = {{"Retry-After", "60"}}};
        });
    server_.change([&](testing::ServedResponse& response) { response.cut_after = first; });
    const std::string script =
        "\"$0\" export -m ada/digits --overwrite -o \"$1\" & pid=$!; n=0; until [ -s \"$2\" ] || [ $n -gt 400 ]; do "
        "sleep 0.05; n=$((n+1)); done; sleep 0.2; kill -" +
        std::to_string(signal) + " $pid; wait $pid; exit $?";
    auto outcome = run_process(
        "/bin/sh", {.arguments = {"-c", script, MODELKIT_WINML, to_utf8(folder_ / "m.onnx"), to_utf8(partial)},
                    .environment = environment()});
    ASSERT_OK(outcome);
    EXPECT_EQ(outcome->exit_code, signal == SIGINT ? 130 : 137) << outcome->err;
    server_.intercept({});
    server_.change({});
    server_.storage().forget_requests();
    const ProcessOutcome again =
        winml({"export", "-m", "ada/digits", "--overwrite", "-o", to_utf8(folder_ / "m.onnx")});
    EXPECT_EQ(again.exit_code, 0) << again.err;
    ASSERT_EQ(server_.stored_requests(), 1u);
    EXPECT_EQ(server_.storage().requests()[0].header("range"), "bytes=" + std::to_string(first) + "-");
  }
}

TEST_F(HubCommand, ProcessesShareOneDownload) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      good +=
          winml({"export", "-m", "ada/digits", "-o", to_utf8(folder_ / std::to_string(i) / "m.onnx")}).exit_code == 0;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 3);
  EXPECT_EQ(server_.stored_requests(), 1u);
}

}  // namespace
}  // namespace mk::cli
