#include "build/check_run.h"

#include "graph/onnx_writer.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

class CheckRunTest : public ::testing::Test {
 protected:
  Result<std::string> check(std::string_view graph, const std::map<std::string, std::int64_t>& sizes = {}) {
    MK_TRY(const auto model,
           testing::model_of_text("<ir_version: 8, opset_import: [\"\" : 17]> g " + std::string(graph)));
    MK_TRY(const std::string bytes, serialize_onnx(*model));
    return check_run(folder.write("m.onnx", bytes), std::nullopt, sizes, silent_progress());
  }
  testing::TemporaryFolder folder;
};

TEST_F(CheckRunTest, FiniteOutputsPass) {
  ASSERT_OK_AND(const std::string seen, check("(float[2, 3] x) => (float[2, 3] y) { y = Exp(x) }"));
  EXPECT_EQ(seen, "runs, output finite");
}

// log(-|x|) is NaN everywhere.
TEST_F(CheckRunTest, NamesTheOutputThatIsNotFinite) {
  const auto seen =
      check("(float[2, 3] x) => (float[2, 3] y, float[2, 3] z) { a = Abs(x) n = Neg(a) y = Exp(x) z = Log(n) }");
  ASSERT_FALSE(seen.has_value());
  EXPECT_EQ(seen.error().code, ErrorCode::failed);
  EXPECT_EQ(seen.error().where, "z");
  EXPECT_NE(seen.error().message.find("6 of 6 values"), std::string::npos) << seen.error().message;
}

// Only a row of 5 can be added to 5 constants.
TEST_F(CheckRunTest, DynamicDimensionsTakeTheSizesGiven) {
  const char* graph = "(float[batch, width] x) => (float[batch, n] y) <float[5] c = {1, 2, 3, 4, 5}> { y = Add(x, c) }";
  EXPECT_TRUE(check(graph, {{"width", 5}}).has_value());
  EXPECT_FALSE(check(graph, {{"width", 6}}).has_value());
}

TEST_F(CheckRunTest, ARuntimeAskedForByNameMustBeThere) {
  const auto seen = check_run(folder / "m.onnx", folder / "none", {}, silent_progress());
  ASSERT_FALSE(seen.has_value());
  EXPECT_EQ(seen.error().code, ErrorCode::inference);
}

}  // namespace
}  // namespace mk
