#include <gtest/gtest.h>

#include "graph/shape_inference.h"
#include "graph/verifier.h"
#include "testing/onnx_text.h"
#include "testing/testing.h"

namespace mk {
namespace {

std::unique_ptr<Model> model_of(const std::string& graph, const std::string& imports = "\"\" : 17") {
  auto model = testing::model_of_text("<ir_version: 8, opset_import: [" + imports + "]>\n" + graph);
  if (!model) ADD_FAILURE() << model.error().to_string();
  return model ? std::move(*model) : nullptr;
}

// Bytes that must not be read.
class Untouchable final : public ByteSource {
 public:
  explicit Untouchable(std::uint64_t size) : size_(size) {}
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t, std::span<std::byte>) const override {
    return fail(ErrorCode::failed, "a weight was read");
  }

 private:
  std::uint64_t size_;
};

Tensor large(std::string name, std::vector<std::int64_t> dims) {
  const std::uint64_t count = make_tensor({}, DataType::float32, dims, nullptr).element_count();
  return make_tensor(std::move(name), DataType::float32, std::move(dims), std::make_shared<Untouchable>(4 * count));
}

TEST(CheckOnnx, AcceptsWhatIsRight) {
  ASSERT_OK(check_onnx(*model_of("g (float[N, 4] x) => (float[N, 4] y) { y = Relu(x) }")));
}

TEST(CheckOnnx, ModelsOverTwoGigabytesWithoutReadingThem) {
  const auto model = model_of("g (float[N, 50000] x) => (float[N, 50000] y) { y = Relu(x) }");
  Graph& graph = *model->graph;
  Value* weight = graph.add_initializer(large("weight", {50000, 50000}));
  Value* product = graph.add_op("MatMul", {graph.find("x"), weight}, "product");
  graph.find("y")->producer()->set_input(0, product);
  graph.move_before(product->producer(), graph.find("y")->producer());
  ASSERT_OK(check_onnx(*model));
  EXPECT_NE(weight->initializer(), nullptr);  // the model itself is as it was
}

TEST(CheckOnnx, LargeConstantsStayConstantsOfTheirShape) {
  const auto model = model_of(R"(g (bool c, float[N, 40000] x) => (float[N, 40000] y) {
      y = If(c) <
        then_branch = then () => (float[N, 40000] t) { t = Relu(x) },
        else_branch = otherwise () => (float[N, 40000] e) { e = Neg(x) }>
  })");
  Node* choice = model->graph->find("y")->producer();
  Graph& branch = *choice->subgraphs().at(0);
  Node* relu = branch.find("t")->producer();
  Value* held = branch.add_value("held");
  branch.add_node("Constant", {}, {held}, relu)->set_attribute({"value", large({}, {40000, 40000})});
  Value* weight = branch.add_initializer(large("weight", {40000, 40000}));
  Value* sum = branch.add_op("Add", {held, weight}, "sum", relu);
  relu->set_input(0, branch.add_op("MatMul", {model->graph->find("x"), sum}, "product", relu));
  ASSERT_OK(check_onnx(*model));
  // A wrong shape inside is seen all the same.
  branch.set_initializer(weight, large({}, {40000, 39999}));
  const auto status = check_onnx(*model);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("Incompatible dimensions"), std::string::npos) << status.error().message;
}

TEST(CheckOnnx, NamesTheNode) {
  const auto unknown = check_onnx(*model_of("g (float[4] x) => (float[4] y) { [the_node] y = Rolu(x) }"));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::malformed);
  EXPECT_EQ(unknown.error().where, "the_node");
  EXPECT_NE(unknown.error().message.find("No Op registered for Rolu"), std::string::npos);

  const auto wrong = check_onnx(*model_of("g (float[4] x, float[3] z) => (float[4] y) { [the_node] y = Add(x, z) }"));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().where, "the_node");

  const auto types = check_onnx(*model_of("g (float[4] x, int64[4] z) => (float[4] y) { [the_node] y = Add(x, z) }"));
  ASSERT_FALSE(types);
  EXPECT_EQ(types.error().where, "the_node");
}

TEST(CheckOnnx, RefusesWhatIsDeclaredWrongly) {
  const auto status = check_onnx(*model_of("g (float[4] x) => (float[5] y) { [the_node] y = Relu(x) }"));
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("differ in dimension 0"), std::string::npos) << status.error().message;
}

TEST(CheckOnnx, EndsOnSpacesInAnEquation) {
  const std::string inputs = "g (float[2, 3] x, float[3, 4] z) => (float[2, 4] y) ";
  ASSERT_OK(check_onnx(*model_of(inputs + "{ y = Einsum<equation = \"ij, jk -> ik\">(x, z) }")));
  const auto status = check_onnx(*model_of(inputs + "{ [the_node] y = Einsum<equation = \"i.j,jk->ik\">(x, z) }"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().where, "the_node");
}

TEST(CheckOnnx, PrintsNothing) {
  ::testing::internal::CaptureStdout();
  const auto status = check_onnx(*model_of("g (float[4] x) => (float[4] y) { y = ScaledTanh(x) }"));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("ScaledTanh"), std::string::npos);
}

TEST(CheckOnnx, LetsOtherDomainsPass) {
  ASSERT_OK(check_onnx(
      *model_of("g (float[4] x) => (float[4] y) { y = com.microsoft.Gelu(x) }", "\"\" : 17, \"com.microsoft\" : 1")));
}

}  // namespace
}  // namespace mk
