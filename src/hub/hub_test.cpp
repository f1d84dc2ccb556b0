#include "hub/hub.h"

#include <algorithm>
#include <set>
#include <thread>

#include "base/file.h"
#include "base/file_lock.h"
#include "hub/hub_store.h"
#include "hub/resolve.h"
#include "testing/hub_server.h"
#include "testing/testing.h"
#include "testing/warnings.h"

namespace mk {
namespace {

using testing::HubServer;
using testing::ServedRequest;
using testing::ServedResponse;
using testing::TemporaryFolder;

const std::string commit_a(40, 'a'), commit_b(40, 'b');
const std::string secret = "hf_secretOfTheTest";

std::string pattern(std::size_t size, unsigned seed = 1) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>((seed = seed * 1664525 + 1013904223) >> 24);
  return bytes;
}

class HubTest : public ::testing::Test {
 protected:
  HubTest() {
    server_.add("org/name", "config.json", R"({"model_type": "bert"})");
    server_.add("org/name", "tokenizer.json", "{}");
    server_.add("org/name", "README.md", "# Read me");
    server_.add("org/name", "model.safetensors", weights_, true);
    server_.add("org/name", "pytorch_model.bin", "never fetched", true);
    server_.add("org/name", "onnx/model.onnx", "not asked for", true);
  }
  HubSettings settings() const {
    HubSettings s;
    s.endpoint = server_.url();
    s.roots = {root_ / "hub"};
    s.first_pause = std::chrono::milliseconds(1);
    s.longest_pause = std::chrono::milliseconds(4);
    s.stall_timeout = std::chrono::seconds(5);
    return s;
  }
  Result<ResolvedModel> resolve(std::string_view text, Fetch fetch = Fetch::all,
                                WantedModel wanted = WantedModel::any) {
    return resolve_with(settings(), text, fetch, wanted);
  }
  Result<ResolvedModel> resolve_with(const HubSettings& s, std::string_view text, Fetch fetch = Fetch::all,
                                     WantedModel wanted = WantedModel::any) {
    Hub hub(s, warnings_);
    return resolve_model(text, wanted, hub, fetch);
  }
  Path repository(const std::string& name = "models--org--name") const { return root_ / "hub" / name; }
  std::set<std::string> files_of(const Path& folder) const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (!entry.is_directory()) names.insert(to_utf8(entry.path().lexically_relative(folder)));
    return names;
  }
  static std::string text_of(const Path& path) { return read_text(path, 1u << 30).value_or("(cannot be read)"); }
  std::size_t asked(std::string_view part) const {
    const auto lines = server_.asked();
    return static_cast<std::size_t>(std::count_if(
        lines.begin(), lines.end(), [&](const std::string& line) { return line.find(part) != std::string::npos; }));
  }
  // The storage closes the first `count` connections after so many bytes.
  void cut(int count, std::size_t after) {
    server_.change([count, after](ServedResponse& response) mutable {
      if (count-- > 0) response.cut_after = after;
    });
  }

  const std::string weights_ = pattern(3u << 20);
  TemporaryFolder root_;
  HubServer server_;
  testing::Warnings warnings_;
};

using Files = std::set<std::string>;

TEST_F(HubTest, FetchesWhatACommandNeedsInTheCachesLayout) {
  ASSERT_OK_AND(const ResolvedModel model, resolve("org/name"));
  EXPECT_EQ(model.commit, commit_a);
  EXPECT_EQ(model.folder, repository() / "snapshots" / commit_a);
  EXPECT_EQ(files_of(model.folder), (Files{"config.json", "tokenizer.json", "model.safetensors"}));
  EXPECT_EQ(text_of(model.folder / "model.safetensors"), weights_);
  EXPECT_EQ(text_of(repository() / "refs/main"), commit_a);
  // As huggingface_hub has them: relative links to blobs named by git's hash or by the SHA-256.
  EXPECT_EQ(std::filesystem::read_symlink(model.folder / "tokenizer.json"),
            Path("../../blobs/9e26dfeeb6e641a33dae4961196235bdb965b21b"));  // git hash-object of "{}"
  EXPECT_EQ(blob_sha256(model.folder / "model.safetensors"), testing::etag_of({weights_, true}));
  EXPECT_EQ(files_of(repository() / "blobs").size(), 3u);
  for (const std::string& name : files_of(root_ / "hub/.locks/models--org--name"))
    EXPECT_TRUE(name.ends_with(".lock")) << name;
}

TEST_F(HubTest, AsksOnceAndFetchesNothingTwice) {
  ASSERT_OK(resolve("org/name"));
  server_.hub().forget_requests();
  server_.storage().forget_requests();
  Hub hub(settings(), warnings_);
  ASSERT_OK(resolve_model("org/name", WantedModel::any, hub, Fetch::configs));
  ASSERT_OK(resolve_model("org/name", WantedModel::checkpoint, hub));
  EXPECT_EQ(server_.asked(), std::vector<std::string>{"GET /api/models/org/name/revision/main?blobs=true"});
  EXPECT_EQ(server_.stored_requests(), 0u);
}

TEST_F(HubTest, ForConfigsOnlyConfigsAreFetched) {
  ASSERT_OK_AND(const ResolvedModel model, resolve("org/name", Fetch::configs));
  EXPECT_FALSE(model.is_onnx());
  EXPECT_EQ(files_of(model.folder), Files{"config.json"});
  ASSERT_OK(resolve("org/name", Fetch::side_files));
  EXPECT_EQ(files_of(model.folder), (Files{"config.json", "tokenizer.json"}));
  EXPECT_EQ(server_.stored_requests(), 0u);
}

TEST_F(HubTest, FetchesTheShardsThatTheIndexNames) {
  server_.add("org/sharded", "config.json", "{}");
  server_.add(
      "org/sharded", "model.safetensors.index.json",
      R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-1.safetensors"}})");
  for (const char* name : {"model-1.safetensors", "model-2.safetensors", "consolidated.safetensors"})
    server_.add("org/sharded", name, name, true);
  ASSERT_OK_AND(const ResolvedModel model, resolve("org/sharded"));
  EXPECT_EQ(files_of(model.folder),
            (Files{"config.json", "model.safetensors.index.json", "model-1.safetensors", "model-2.safetensors"}));

  server_.add("org/torn", "config.json", "{}");
  server_.add("org/torn", "model.safetensors.index.json", R"({"weight_map": {"a": "../../escape"}})");
  const auto torn = resolve("org/torn");
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code, ErrorCode::malformed);
}

TEST_F(HubTest, OtherRevisionsHaveRefsOfTheirOwn) {
  ASSERT_OK(resolve("org/name"));
  ASSERT_OK(resolve("org/name@" + commit_a));
  ASSERT_OK(resolve("org/name@aaaaaaa"));  // of the cache; the Hub is asked by the whole
  EXPECT_TRUE(warnings_.messages.empty());
  EXPECT_EQ(files_of(repository() / "refs"), Files{"main"});
  EXPECT_EQ(resolve("org/name@v9").error().message, "org/name has no revision v9");
  EXPECT_EQ(resolve("org/name@refs/pr/1").error().code, ErrorCode::not_found);
  EXPECT_EQ(asked("/revision/refs%2Fpr%2F1?"), 1u);

  // The branch moves on: the new snapshot shares the blobs that are the same.
  server_.commit("org/name", commit_b);
  server_.add("org/name", "config.json", R"({"model_type": "vit"})");
  server_.storage().forget_requests();
  ASSERT_OK_AND(const ResolvedModel moved, resolve("org/name"));
  EXPECT_EQ(moved.commit, commit_b);
  EXPECT_EQ(server_.stored_requests(), 0u);
  EXPECT_EQ(text_of(repository() / "refs/main"), commit_b);
  EXPECT_EQ(files_of(repository() / "snapshots").size(), 6u);
}

TEST_F(HubTest, ABareRepositorysOneGraphIsTheModel) {
  server_.add("org/bare", "model_2025.onnx", "graph", true);
  ASSERT_OK_AND(const ResolvedModel model, resolve("org/bare"));
  EXPECT_EQ(model.onnx, model.folder / "model_2025.onnx");
  EXPECT_TRUE(std::filesystem::exists(repository("models--org--bare") / ".no_exist" / commit_a / "config.json"));
  EXPECT_EQ(resolve("org/bare", Fetch::all, WantedModel::checkpoint).error().code, ErrorCode::usage);

  server_.add("org/bare", "onnx/other.onnx", "graph", true);
  const auto several = resolve("org/bare");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, ErrorCode::usage);
  EXPECT_NE(several.error().to_string().find("model_2025.onnx, onnx/other.onnx"), std::string::npos);
  ASSERT_OK_AND(const ResolvedModel named, resolve("org/bare/onnx/other.onnx"));
  EXPECT_EQ(text_of(named.onnx), "graph");

  const auto absent = resolve("org/bare/none.onnx");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::not_found);
  EXPECT_NE(absent.error().hint.find("org/bare/model_2025.onnx, org/bare/onnx/other.onnx"), std::string::npos);
  server_.add("org/nothing", "README.md", "");
  EXPECT_EQ(resolve("org/nothing").error().code, ErrorCode::not_found);
}

TEST_F(HubTest, AGraphComesWithTheDataThatItNames) {
  const Path graph = testing::repository("tests/data/hub/external.onnx");
  ASSERT_TRUE(std::filesystem::exists(graph));
  server_.add("org/data", "onnx/model.onnx", text_of(graph), true);
  server_.add("org/data", "onnx/weights.bin", "data", true);
  server_.add("org/data", "onnx/more.bin", "data", true);
  ASSERT_OK_AND(const ResolvedModel model, resolve("org/data/onnx/model.onnx"));
  EXPECT_EQ(files_of(model.folder), (Files{"onnx/model.onnx", "onnx/weights.bin"}));
}

TEST_F(HubTest, AGgufFileIsACheckpointByItself) {
  server_.add("org/one-gguf", "model-q8_0.gguf", "gguf", true);
  ASSERT_OK_AND(const ResolvedModel only, resolve("org/one-gguf"));
  EXPECT_FALSE(only.is_onnx());
  EXPECT_EQ(files_of(only.folder), Files{"model-q8_0.gguf"});
  server_.add("org/one-gguf", "model-q4_k.gguf", "gguf", true);
  const auto several = resolve("org/one-gguf");
  ASSERT_FALSE(several);
  EXPECT_EQ(several.error().code, ErrorCode::usage);
  EXPECT_EQ(several.error().hint, "Name one: org/one-gguf/model-q4_k.gguf");
  ASSERT_OK_AND(const ResolvedModel named,
                resolve("org/one-gguf/model-q4_k.gguf", Fetch::all, WantedModel::checkpoint));
  EXPECT_EQ(named.folder.filename(), "model-q4_k.gguf");
  EXPECT_EQ(named.commit, commit_a);
  EXPECT_EQ(resolve("org/one-gguf/model-q4_k.gguf", Fetch::all, WantedModel::onnx).error().code, ErrorCode::usage);

  server_.add("org/both", "config.json", "{}");
  server_.add("org/both", "model-q8_0.gguf", "gguf", true);
  ASSERT_OK_AND(const ResolvedModel both, resolve("org/both"));
  EXPECT_EQ(files_of(both.folder), (Files{"config.json", "model-q8_0.gguf"}));
}

TEST_F(HubTest, SaysWhatARepositoryWithoutReadableWeightsHas) {
  server_.add("org/flax", "config.json", "{}");
  server_.add("org/flax", "flax_model.msgpack", "x", true);
  const auto flax = resolve("org/flax");
  EXPECT_EQ(flax.error().code, ErrorCode::unsupported);
  EXPECT_NE(flax.error().message.find("flax_model.msgpack"), std::string::npos);
  server_.add("org/js", "config.json", "{}");
  server_.add("org/js", "onnx/model.onnx", "x", true);
  EXPECT_NE(resolve("org/js").error().message.find("org/js/onnx/model.onnx"), std::string::npos);
  EXPECT_NE(resolve("org/js", Fetch::all, WantedModel::onnx).error().hint.find("org/js/onnx/model.onnx"),
            std::string::npos);
}

TEST_F(HubTest, ADroppedConnectionIsTakenUpWhereItBroke) {
  cut(3, 1u << 20);
  ASSERT_OK_AND(const ResolvedModel model, resolve("org/name"));
  EXPECT_EQ(text_of(model.folder / "model.safetensors"), weights_);
  std::vector<std::string> ranges;
  for (const ServedRequest& request : server_.storage().requests()) ranges.push_back(request.header("range"));
  EXPECT_EQ(ranges, (std::vector<std::string>{"", "bytes=1048576-", "bytes=2097152-"}));
}

TEST_F(HubTest, WhatAnEarlierRunFetchedIsKept) {
  HubSettings impatient = settings();
  impatient.attempts = 1;
  cut(100, 1000);
  server_.intercept([n = 0](const ServedRequest&, bool storage) mutable -> std::optional<ServedResponse> {
    if (storage && ++n > 1) return ServedResponse{.status = 503};
    return std::nullopt;
  });
  const auto failed = resolve_with(impatient, "org/name");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::failed);
  const HubStore store(root_ / "hub", "org/name");
  const Path partial = store.partial(testing::etag_of({weights_, true}));
  EXPECT_EQ(text_of(partial), weights_.substr(0, 1000));
  EXPECT_FALSE(std::filesystem::exists(repository() / "refs/main"));  // it leads to whole snapshots only

  server_.intercept({});
  server_.change({});
  server_.storage().forget_requests();
  ASSERT_OK_AND(const ResolvedModel model, resolve("org/name"));
  EXPECT_EQ(text_of(model.folder / "model.safetensors"), weights_);
  EXPECT_EQ(server_.storage().requests().at(0).header("range"), "bytes=1000-");
  EXPECT_FALSE(std::filesystem::exists(partial));
}

TEST_F(HubTest, APartThatIsNotOfTheFileIsFetchedAnew) {
  const HubStore store(root_ / "hub", "org/name");
  const Path partial = store.partial(testing::etag_of({weights_, true}));
  const auto leave = [&](const std::string& bytes) {
    std::filesystem::remove_all(root_ / "hub");
    root_.write(partial.lexically_relative(root_.path()), bytes);
  };
  for (const std::string& rubbish :
       {std::string("not the beginning"), pattern(weights_.size(), 7), pattern(weights_.size() + 1)}) {
    leave(rubbish);
    ASSERT_OK_AND(const ResolvedModel model, resolve("org/name"));
    EXPECT_EQ(text_of(model.folder / "model.safetensors"), weights_);
  }
  leave(weights_);  // killed between the last byte and the new name
  server_.storage().forget_requests();
  ASSERT_OK(resolve("org/name"));
  EXPECT_EQ(server_.stored_requests(), 0u);

  leave(weights_.substr(0, 100));  // a storage without ranges starts again
  server_.change([](ServedResponse& response) { response.ranges = false; });
  ASSERT_OK_AND(const ResolvedModel model, resolve("org/name"));
  EXPECT_EQ(text_of(model.folder / "model.safetensors"), weights_);
}

TEST_F(HubTest, AWrongHashIsNeverAFile) {
  server_.change([](ServedResponse& response) {
    if (!response.body.empty()) response.body.back() ^= 1;
  });
  const auto wrong = resolve("org/name");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::failed);
  EXPECT_NE(wrong.error().message.find("does not have the Hub's hash"), std::string::npos);
  EXPECT_EQ(server_.stored_requests(), 2u);
  EXPECT_FALSE(std::filesystem::exists(repository() / "snapshots" / commit_a / "model.safetensors"));

  server_.change([n = 0](ServedResponse& response) mutable {  // once is an accident
    if (n++ == 0) response.body[5] ^= 1;
  });
  ASSERT_OK(resolve("org/name"));

  // Small files: by git's hash.
  server_.intercept([](const ServedRequest& request, bool) -> std::optional<ServedResponse> {
    if (request.path.find("/resolve/") == std::string::npos) return std::nullopt;
    return ServedResponse{.body = "[]"};
  });
  server_.add("org/small", "config.json", "{}");
  server_.add("org/small", "model.safetensors", "x", true);
  EXPECT_FALSE(resolve("org/small"));
  // And a portal's page of another length.
  server_.intercept([](const ServedRequest& request, bool) -> std::optional<ServedResponse> {
    if (request.path.find("/resolve/") == std::string::npos) return std::nullopt;
    return ServedResponse{.body = "<html>Please sign in</html>"};
  });
  const auto portal = resolve("org/small");
  ASSERT_FALSE(portal);
  EXPECT_NE(portal.error().message.find("sends more than the 2 bytes"), std::string::npos) << portal.error().message;
}

TEST_F(HubTest, WaitsAsLongAsARateLimitSays) {
  int refused = 0;
  server_.intercept([&](const ServedRequest& request, bool) -> std::optional<ServedResponse> {
    if (!request.path.starts_with("/api") || refused++ > 0) return std::nullopt;
    return ServedResponse{.status = 429, .headers = {{"Retry-After", "1"}}};
  });
  const auto start = std::chrono::steady_clock::now();
  ASSERT_OK(resolve("org/name", Fetch::configs));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(950));

  server_.intercept([&](const ServedRequest&, bool) -> std::optional<ServedResponse> {
    return ServedResponse{.status = 429, .headers = {{"RateLimit", "\"api\";r=0;t=250"}}};
  });
  server_.hub().forget_requests();
  server_.add("org/new", "config.json", "{}");
  const auto limited = resolve("org/new", Fetch::configs);  // longer than anybody waits
  EXPECT_EQ(limited.error().code, ErrorCode::failed);
  EXPECT_NE(limited.error().hint.find("in 250 s"), std::string::npos);
  EXPECT_EQ(server_.asked().size(), 1u);
}

TEST_F(HubTest, TriesAgainWhatMayPass) {
  server_.intercept([n = 0](const ServedRequest&, bool) mutable -> std::optional<ServedResponse> {
    return ++n <= 3 ? std::optional(ServedResponse{.status = 503}) : std::nullopt;
  });
  ASSERT_OK(resolve("org/name", Fetch::configs));
  server_.hub().forget_requests();
  server_.intercept([](const ServedRequest&, bool) { return std::optional(ServedResponse{.status = 500}); });
  const auto broken = resolve("org/other");
  EXPECT_EQ(broken.error().code, ErrorCode::failed);
  EXPECT_EQ(server_.asked().size(), 5u);
}

TEST_F(HubTest, TheTokenGoesToTheHubAndToNobodyElse) {
  testing::HubServerRepository private_one{.token = secret};
  private_one.files["config.json"] = {"{}", false};
  private_one.files["model.safetensors"] = {weights_, true};
  server_.put("org/private", private_one);
  HubSettings with_token = settings();
  with_token.token = secret;
  ASSERT_OK(resolve_with(with_token, "org/private"));
  for (const ServedRequest& request : server_.hub().requests())
    EXPECT_EQ(request.header("authorization"), "Bearer " + secret);
  ASSERT_EQ(server_.stored_requests(), 1u);
  for (const ServedRequest& request : server_.storage().requests()) EXPECT_EQ(request.header("authorization"), "");
  EXPECT_EQ(server_.storage().requests().at(0).header("cookie"), "");
  // Nowhere on the disk, either.
  for (const std::string& name : files_of(root_.path()))
    EXPECT_EQ(text_of(root_ / name).find(secret), std::string::npos) << name;
}

TEST_F(HubTest, RefusalsSayWhatToDo) {
  testing::HubServerRepository gated{.token = secret, .gated = true};
  gated.files["config.json"] = {"{}", false};
  gated.files["model.safetensors"] = {"x", true};
  server_.put("org/gated", gated);
  testing::HubServerRepository hidden{.token = secret};
  server_.put("org/hidden", hidden);
  HubSettings stranger = settings();
  stranger.token = "hf_another";
  const auto error_of = [](const Result<ResolvedModel>& model) {
    EXPECT_FALSE(model);
    if (model) return std::string();
    EXPECT_EQ(exit_code(model.error().code), 2);
    const std::string text = model.error().to_string();
    EXPECT_EQ(text.find("hf_another"), std::string::npos);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    return text;
  };
  const auto says = [&](const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  says(error_of(resolve("org/gated")), "org/gated is gated");
  says(error_of(resolve("org/gated")), "set HF_TOKEN");
  says(error_of(resolve_with(stranger, "org/gated")), "with the account of the token");
  says(error_of(resolve("org/hidden")), "there is no model org/hidden on 127.0.0.1, or it is private");
  says(error_of(resolve("org/hidden")), "set HF_TOKEN");
  says(error_of(resolve_with(stranger, "org/hidden")), "that the token may read it");
  EXPECT_EQ(asked("/resolve/"), 3u);

  server_.intercept([](const ServedRequest&, bool) { return std::optional(ServedResponse{.status = 401}); });
  says(error_of(resolve_with(stranger, "org/name")), "the Hub refuses the token");
  server_.intercept([](const ServedRequest&, bool) {
    return std::optional(
        ServedResponse{.status = 403, .headers = {{"X-Error-Message", "Your plan\tdoes not allow that."}}});
  });
  says(error_of(resolve_with(stranger, "org/name")), "refuses access to org/name: Your plan does not allow that");
  EXPECT_EQ(server_.stored_requests(), 0u);
}

TEST_F(HubTest, FollowsAMoveWithinTheHub) {
  testing::HubServerRepository old{.moved_to = "org/name"};
  server_.put("gpt2", old);
  ASSERT_OK_AND(const ResolvedModel model, resolve("gpt2"));
  EXPECT_EQ(text_of(model.folder / "model.safetensors"), weights_);
  EXPECT_TRUE(std::filesystem::exists(repository("models--gpt2")));

  server_.intercept([](const ServedRequest& request, bool) {
    return std::optional(ServedResponse{.status = 302, .headers = {{"Location", request.path}}});
  });
  EXPECT_NE(resolve("org/circle").error().message.find("circle"), std::string::npos);
  server_.intercept([](const ServedRequest&, bool) {
    return std::optional(ServedResponse{.status = 302, .headers = {{"Location", "file:///etc/passwd"}}});
  });
  EXPECT_NE(resolve("org/file").error().message.find("an address that is none"), std::string::npos);
}

TEST_F(HubTest, AHubWithoutHashesInItsListIsAskedForEach) {
  testing::HubServerRepository plain{.lists_content = false};
  plain.files["config.json"] = {"{}", false};
  plain.files["model.safetensors"] = {weights_, true};
  server_.put("org/plain", plain);
  ASSERT_OK_AND(const ResolvedModel model, resolve("org/plain"));
  EXPECT_EQ(asked("HEAD "), 2u);
  EXPECT_EQ(blob_sha256(model.folder / "model.safetensors"), testing::etag_of({weights_, true}));
}

TEST_F(HubTest, AnswersThatAreNoneOfTheHubsAreErrors) {
  const std::string answers[] = {"",    "<html>",
                                 "{}",  R"({"sha": "abc", "siblings": []})",
                                 "[1]", R"({"sha": ")" + commit_a + R"(", "siblings": 3})"};
  for (const std::string& answer : answers) {
    server_.intercept([&](const ServedRequest&, bool) { return std::optional(ServedResponse{.body = answer}); });
    const auto model = resolve("org/name");
    ASSERT_FALSE(model) << answer;
    EXPECT_EQ(model.error().code, ErrorCode::malformed);
  }
  // Names that lead out of the cache are no files.
  const std::string evil = R"({"sha": ")" + commit_a +
                           R"(", "siblings": [{"rfilename": "../../../../x"}, {"rfilename": "/x"}, {"rfilename": "~/x"},
                             {"rfilename": "a\\b"}, {"rfilename": 3}, {"rfilename": "c:x"}]})";
  ASSERT_OK_AND(const auto info, parse_repository(evil, "org/name"));
  EXPECT_TRUE(info.files.empty());
}

TEST_F(HubTest, OfflineItUsesTheCacheAndAsksNobody) {
  HubSettings offline = settings();
  offline.offline = "HF_HUB_OFFLINE";
  const auto absent = resolve_with(offline, "org/name");
  ASSERT_FALSE(absent);
  EXPECT_EQ(exit_code(absent.error().code), 2);
  EXPECT_NE(absent.error().hint.find("HF_HUB_OFFLINE forbids the network"), std::string::npos);
  EXPECT_TRUE(server_.asked().empty());

  ASSERT_OK(resolve("org/name", Fetch::configs));
  server_.hub().forget_requests();
  ASSERT_OK(resolve_with(offline, "org/name", Fetch::configs));
  EXPECT_EQ(resolve_with(offline, "org/name").error().message, "the cached snapshot of org/name has no weights");
  ASSERT_OK(resolve("org/name"));
  server_.hub().forget_requests();
  ASSERT_OK_AND(const ResolvedModel model, resolve_with(offline, "org/name"));
  EXPECT_EQ(model.commit, commit_a);
  EXPECT_TRUE(server_.asked().empty());
}

TEST_F(HubTest, WithoutAnAnswerTheCacheServes) {
  ASSERT_OK(resolve("org/name"));
  HubSettings nowhere = settings();
  {
    const testing::HttpServer gone([](const ServedRequest&) { return ServedResponse{}; });
    nowhere.endpoint = gone.url();
  }
  ASSERT_OK_AND(const ResolvedModel model, resolve_with(nowhere, "org/name"));
  EXPECT_EQ(model.commit, commit_a);
  ASSERT_EQ(warnings_.messages.size(), 1u);
  EXPECT_NE(warnings_.messages[0].find("using what the cache has of org/name (aaaaaaaa)"), std::string::npos);
  const auto absent = resolve_with(nowhere, "org/other");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, ErrorCode::failed);
  EXPECT_NE(absent.error().to_string().find("no answer from 127.0.0.1"), std::string::npos);
}

TEST_F(HubTest, ManyAtOnceFetchEachFileOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 6; ++i)
    threads.emplace_back([&] {
      Hub hub(settings(), silent_progress());
      const auto model = resolve_model("org/name", WantedModel::any, hub);
      if (model && text_of(model->folder / "model.safetensors") == weights_) ++good;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 6);
  EXPECT_EQ(server_.stored_requests(), 1u);
}

TEST_F(HubTest, WaitsForAnotherThatHoldsTheLock) {
  const HubStore store(root_ / "hub", "org/name");
  auto held = store.lock(testing::etag_of({weights_, true}), {});
  ASSERT_OK(held);
  std::optional<FileLock> lock(std::move(*held));
  std::thread other([&] { EXPECT_TRUE(resolve("org/name")); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(server_.stored_requests(), 0u);
  lock.reset();
  other.join();
  EXPECT_EQ(server_.stored_requests(), 1u);
}

TEST_F(HubTest, OthersFilesAreLeftAlone) {
  root_.write("hub/models--org--name/blobs/1111.incomplete", "of another");
  root_.write("hub/models--org--name/blobs/2222", "of another");
  ASSERT_OK(resolve("org/name"));
  EXPECT_TRUE(std::filesystem::exists(repository() / "blobs/1111.incomplete"));
  EXPECT_TRUE(std::filesystem::exists(repository() / "blobs/2222"));

  // A file of the cache that is not what the Hub has is named, not replaced.
  std::filesystem::resize_file(repository() / "blobs" / testing::etag_of({weights_, true}), 10);
  const auto torn = resolve("org/name");
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code, ErrorCode::malformed);
  EXPECT_NE(torn.error().message.find("10 bytes instead of 3145728"), std::string::npos);
}

TEST_F(HubTest, EmptyFilesAreFiles) {
  server_.add("org/empty", "config.json", "");
  server_.add("org/empty", "model.safetensors", "", true);
  ASSERT_OK_AND(const ResolvedModel model, resolve("org/empty"));
  EXPECT_EQ(text_of(model.folder / "config.json"), "");
}

}  // namespace
}  // namespace mk
