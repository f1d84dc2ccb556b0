#include "runtime/model_session.h"

#include <algorithm>
#include <numeric>

#include "testing/testing.h"

namespace mk {
namespace {

// y = (x . w) + b with w [4, columns]; w[i][j] = i + 1, b[j] = j. Weights past 1 KiB leave the serialized model.
constexpr std::int64_t columns = 512;

std::unique_ptr<Model> affine(Bytes weight) {
  auto model = std::make_unique<Model>();
  model->ir_version = 8;
  model->set_opset("", 17);
  Graph& graph = *model->graph;
  graph.name = "affine";
  Value* x = graph.add_input("x", Type::tensor(DataType::float32, Shape{Dim::symbolic("batch"), Dim::known(4)}));
  Value* w = graph.add_initializer(make_tensor("w", DataType::float32, {4, columns}, std::move(weight)));
  std::vector<float> bias(columns);
  std::iota(bias.begin(), bias.end(), 0.0f);
  Value* b = graph.add_initializer(make_tensor("b", DataType::float32, {columns}, owned_values(bias)));
  Value* product = graph.add_op("MatMul", {x, w}, "product");
  Value* y = graph.add_op("Add", {product, b}, "y");
  y->type = Type::tensor(DataType::float32, Shape{Dim::symbolic("batch"), Dim::known(columns)});
  graph.mark_output(y);
  return model;
}

std::vector<float> rows() {
  std::vector<float> weight(4 * columns);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i / columns + 1);
  return weight;
}

HostTensor ones() {
  const std::vector<float> values(4, 1.0f);
  return host_tensor<float>("x", DataType::float32, {1, 4}, values);
}

class ModelSession : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto loaded = Runtime::load();
    ASSERT_TRUE(loaded) << loaded.error().to_string();
    runtime_ = *loaded;
  }
  static void TearDownTestSuite() { runtime_.reset(); }
  static inline std::shared_ptr<Runtime> runtime_;
};

void expect_affine(const HostTensor& y) {
  ASSERT_EQ(y.dims, (std::vector<std::int64_t>{1, columns}));
  const auto values = y.values<float>();
  for (std::size_t j = 0; j < columns; ++j) ASSERT_EQ(values[j], 10.0f + static_cast<float>(j)) << j;  // 1+2+3+4+j
}

TEST_F(ModelSession, WeightsInMemoryStayThereAndOutliveTheModel) {
  auto model = affine(owned_values(rows()));
  ASSERT_OK_AND(const auto session, open_model(runtime_, *model, {.optimization = GraphOptimization::none}));
  model.reset();
  ASSERT_OK_AND(const auto outputs, session.run(std::vector{ones()}));
  ASSERT_EQ(outputs.size(), 1u);
  expect_affine(outputs[0]);
}

TEST_F(ModelSession, LazyAndFileTensors) {
  std::vector<float> across(4 * columns);  // [columns, 4]
  for (std::size_t i = 0; i < across.size(); ++i) across[i] = static_cast<float>(i % 4 + 1);
  const auto lazy = affine(transposed(owned_values(across), 1, columns, 4, sizeof(float)));
  ASSERT_OK_AND(const auto session, open_model(runtime_, *lazy));
  ASSERT_OK_AND(const auto outputs, session.run(std::vector{ones()}));
  expect_affine(outputs[0]);

  const testing::TemporaryFolder folder;
  const auto values = rows();
  const Path path =
      folder.write("w.bin", {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  ASSERT_OK_AND(auto file, File::open(path));
  const auto ranged = affine(file_bytes({std::move(file), 0, values.size() * sizeof(float)}));
  ASSERT_OK_AND(const auto of_file, open_model(runtime_, *ranged));
  ASSERT_OK_AND(const auto same, of_file.run(std::vector{ones()}));
  expect_affine(same[0]);
}

TEST_F(ModelSession, TiedWeightsAndBranches) {
  // then: x + w, else: x - w, where w is the outer graph's and both names of it share their bytes.
  const auto weight = owned_values(std::vector<float>(columns, 2.0f));
  Model model;
  model.ir_version = 8;
  model.set_opset("", 17);
  Graph& graph = *model.graph;
  graph.name = "branches";
  const Type row = Type::tensor(DataType::float32, Shape{Dim::known(columns)});
  Value* flag = graph.add_input("flag", Type::tensor(DataType::boolean, Shape{}));
  Value* x = graph.add_input("x", row);
  Value* w = graph.add_initializer(make_tensor("w", DataType::float32, {columns}, weight));
  Value* tied = graph.add_initializer(make_tensor("tied", DataType::float32, {columns}, weight));
  const auto branch = [&](const char* op, Value* by) {
    auto body = std::make_unique<Graph>(op);
    Value* own = body->add_initializer(make_tensor(std::string(op) + "_own", DataType::float32, {columns}, weight));
    Value* first = body->add_op(op, {x, by}, std::string(op) + "_first");
    Value* out = body->add_op("Add", {first, own}, std::string(op) + "_out");
    out->type = row;
    body->mark_output(out);
    return body;
  };
  Value* y = graph.add_op("If", {flag}, "y");
  y->type = row;
  y->producer()->set_attribute(Attribute("then_branch", branch("Add", w)));
  y->producer()->set_attribute(Attribute("else_branch", branch("Sub", tied)));
  graph.mark_output(y);
  ASSERT_OK_AND(const auto session, open_model(runtime_, model));
  const std::vector<float> five(columns, 5.0f);
  for (const std::uint8_t yes : {0, 1}) {
    const std::vector<HostTensor> inputs{host_tensor<std::uint8_t>("flag", DataType::boolean, {}, std::span(&yes, 1)),
                                         host_tensor<float>("x", DataType::float32, {columns}, five)};
    ASSERT_OK_AND(const auto outputs, session.run(inputs));
    EXPECT_EQ(outputs[0].values<float>()[columns - 1], yes ? 9.0f : 5.0f);
  }
}

}  // namespace
}  // namespace mk
