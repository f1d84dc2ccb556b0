#include "runtime/session.h"

#include <thread>

#include "base/file.h"
#include "testing/testing.h"

namespace mk {
namespace {

using testing::repository;

HostTensor floats(std::string name, std::vector<std::int64_t> dims, std::vector<float> values) {
  return host_tensor<float>(std::move(name), DataType::float32, std::move(dims), values);
}

std::vector<float> floats_of(const HostTensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

class SessionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = Runtime::load();
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    runtime_ = *loaded;
  }
  static void TearDownTestSuite() { runtime_.reset(); }
  static Result<Session> open(std::string_view name, const SessionOptions& options = {}) {
    return Session::open(runtime_, repository("tests/data/runtime") / name, options);
  }
  static inline std::shared_ptr<Runtime> runtime_;
};

TEST_F(SessionTest, SaysWhatTheModelDeclares) {
  ASSERT_OK_AND(const auto session, open("affine.onnx"));
  ASSERT_EQ(session.inputs().size(), 1u);
  EXPECT_EQ(session.inputs()[0].name, "x");
  EXPECT_EQ(to_string(session.inputs()[0].type), "float32[batch, 3]");
  ASSERT_EQ(session.outputs().size(), 2u);
  EXPECT_EQ(to_string(session.outputs()[0].type), "float32[batch, 2]");
  EXPECT_EQ(session.outputs()[1].name, "total");
  ASSERT_TRUE(session.outputs()[1].type.shape);
  EXPECT_TRUE(session.outputs()[1].type.shape->empty());
}

TEST_F(SessionTest, RunsAtAnyBatch) {
  ASSERT_OK_AND(const auto session, open("affine.onnx"));
  const std::vector<HostTensor> one{floats("x", {1, 3}, {1, 2, 3})};
  ASSERT_OK_AND(const auto outputs, session.run(one));
  ASSERT_EQ(outputs.size(), 2u);
  EXPECT_EQ(outputs[0].name, "y");
  EXPECT_EQ(outputs[0].dims, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(floats_of(outputs[0]), (std::vector<float>{22.5f, 27.5f}));  // [1 2 3] . w + b
  EXPECT_EQ(outputs[1].dims, std::vector<std::int64_t>{});
  EXPECT_EQ(floats_of(outputs[1]), std::vector<float>{50.0f});

  const std::vector<HostTensor> two{floats("x", {2, 3}, {0, 0, 0, 1, 0, 0}), floats("not declared", {1}, {0})};
  const std::vector<std::string> wanted{"y"};
  ASSERT_OK_AND(const auto only_y, session.run(two, wanted));
  ASSERT_EQ(only_y.size(), 1u);
  EXPECT_EQ(floats_of(only_y[0]), (std::vector<float>{0.5f, -0.5f, 1.5f, 1.5f}));

  const std::vector<HostTensor> none{floats("x", {0, 3}, {})};
  ASSERT_OK_AND(const auto empty, session.run(none));
  EXPECT_EQ(empty[0].dims, (std::vector<std::int64_t>{0, 2}));
  EXPECT_TRUE(empty[0].data.empty());
}

TEST_F(SessionTest, WrongInputsAreNamedAndDoNoHarm) {
  ASSERT_OK_AND(const auto session, open("affine.onnx"));
  const auto error_of = [&](std::vector<HostTensor> inputs) { return session.run(inputs).error().to_string(); };
  EXPECT_NE(error_of({}).find("missing inputs: 'x'"), std::string::npos);
  EXPECT_NE(error_of({floats("x", {1, 4}, {1, 2, 3, 4})}).find("'x' has shape [1, 4], the model takes [batch, 3]"),
            std::string::npos);
  EXPECT_NE(error_of({floats("x", {3}, {1, 2, 3})}).find("'x' has shape [3]"), std::string::npos);
  EXPECT_NE(error_of({floats("x", {2, 3}, {1, 2, 3})}).find("not that many values"), std::string::npos);
  const std::vector<double> wide{1, 2, 3};
  EXPECT_NE(error_of({host_tensor<double>("x", DataType::float64, {1, 3}, wide)}).find("'x' is float64"),
            std::string::npos);
  const std::vector<HostTensor> good{floats("x", {1, 3}, {0, 0, 0})};
  EXPECT_TRUE(session.run(good));
}

TEST_F(SessionTest, OtherElementTypes) {
  ASSERT_OK_AND(const auto session, open("kinds.onnx"));
  HostTensor text;
  text.name = "text";
  text.type = DataType::string;
  text.dims = {3};
  text.strings = {"", "h\u00e9llo", "b"};
  const std::vector<std::int64_t> ids{0, 1, -3};
  const std::vector<std::uint8_t> flag{1};
  const std::vector<HostTensor> inputs{text, host_tensor<std::int64_t>("ids", DataType::int64, {3}, ids),
                                       host_tensor<std::uint8_t>("flag", DataType::boolean, {}, flag)};
  ASSERT_OK_AND(const auto outputs, session.run(inputs));
  EXPECT_EQ(outputs[0].strings, text.strings);
  EXPECT_EQ(outputs[1].type, DataType::float16);
  const auto half = outputs[1].values<std::uint16_t>();
  EXPECT_EQ(std::vector<std::uint16_t>(half.begin(), half.end()), (std::vector<std::uint16_t>{0, 0x3c00, 0xc200}));
  EXPECT_EQ(outputs[2].values<std::uint8_t>()[0], 0);
}

TEST_F(SessionTest, AnOutputThatIsNoTensor) {
  ASSERT_OK_AND(const auto session, open("sequence.onnx"));
  EXPECT_EQ(session.outputs()[0].type.kind, Type::Kind::sequence);
  const std::vector<HostTensor> inputs{floats("x", {2}, {1, 2})};
  const auto outputs = session.run(inputs);
  ASSERT_FALSE(outputs);
  EXPECT_EQ(outputs.error().code, ErrorCode::unsupported);
  EXPECT_NE(outputs.error().message.find("pair"), std::string::npos);
}

TEST_F(SessionTest, BoundInputsRunAgainAndAgain) {
  ASSERT_OK_AND(const auto session,
                open("affine.onnx", {.intra_op_threads = 1, .optimization = GraphOptimization::none}));
  std::vector<HostTensor> inputs{floats("x", {1, 3}, {1, 2, 3})};
  ASSERT_OK_AND(auto bound, session.bind(inputs));
  for (int i = 0; i < 3; ++i) {
    inputs[0].values<float>()[0] = static_cast<float>(i);  // bound, not copied
    ASSERT_OK(bound.run());
    ASSERT_OK_AND(const auto outputs, bound.outputs());
    EXPECT_EQ(floats_of(outputs[0]),
              (std::vector<float>{21.5f + static_cast<float>(i), 25.5f + 2 * static_cast<float>(i)}));
    bound.release_outputs();
  }
}

TEST_F(SessionTest, ManyThreadsShareASession) {
  ASSERT_OK_AND(const auto session, open("affine.onnx"));
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const std::vector<HostTensor> inputs{floats("x", {1, 3}, {1, 2, 3})};
      const auto outputs = session.run(inputs);
      if (outputs && floats_of((*outputs)[1]) == std::vector<float>{50.0f}) ++right;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
}

TEST_F(SessionTest, FilesThatAreNoModels) {
  EXPECT_EQ(open("nowhere.onnx").error().code, ErrorCode::not_found);
  testing::TemporaryFolder folder;
  const auto broken = Session::open(runtime_, folder.write("broken.onnx", "this is no protobuf \xff\xff"));
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().code, ErrorCode::malformed);
  EXPECT_NE(broken.error().where.find("broken.onnx"), std::string::npos);
  EXPECT_EQ(Session::open(runtime_, folder.path()).error().code, ErrorCode::not_found);
}

TEST_F(SessionTest, OpensFromMemory) {
  ASSERT_OK_AND(const auto bytes, read_text(repository("tests/data/runtime/affine.onnx")));
  ASSERT_OK_AND(const auto session, Session::open_bytes(runtime_, bytes));
  EXPECT_EQ(session.inputs().size(), 1u);
}

TEST(Runtime, SaysWhichLibraryAndWhy) {
  ASSERT_OK_AND(const auto runtime, Runtime::load());
  EXPECT_GE(runtime->api_version(), minimum_ort_api);
  EXPECT_TRUE(runtime->version().starts_with("1."));
  EXPECT_TRUE(runtime->used().problem.empty());
  const auto providers = runtime->providers();
  EXPECT_NE(std::find(providers.begin(), providers.end(), "CPUExecutionProvider"), providers.end());
}

TEST(Runtime, ANamedLibraryThatIsNoneIsAnError) {
  testing::TemporaryFolder folder;
  const Path text = folder.write("libonnxruntime.so", "no library");
  for (const Path& path : {text, folder.path(), folder / "missing"}) {
    const auto loaded = Runtime::load({.ort = path});
    ASSERT_FALSE(loaded) << path;
    EXPECT_EQ(loaded.error().code, ErrorCode::inference);
    EXPECT_NE(loaded.error().where.find("--ort"), std::string::npos) << loaded.error().to_string();
    EXPECT_NE(loaded.error().hint.find("winml sys"), std::string::npos);
  }
}

}  // namespace
}  // namespace mk
