#include "runtime/observer.h"

#include <map>

#include "testing/testing.h"

namespace mk {
namespace {

// x [n, 2] -> doubled = x + x -> y = -doubled; count = Size(y).
std::unique_ptr<Model> chain() {
  auto model = std::make_unique<Model>();
  model->ir_version = 8;
  model->set_opset("", 17);
  Graph& graph = *model->graph;
  graph.name = "chain";
  const Type rows = Type::tensor(DataType::float32, Shape{Dim::symbolic("n"), Dim::known(2)});
  Value* x = graph.add_input("x", rows);
  Value* doubled = graph.add_op("Add", {x, x}, "doubled");
  Value* y = graph.add_op("Neg", {doubled}, "y");
  doubled->type = y->type = rows;
  graph.mark_output(y);
  Value* count = graph.add_op("Size", {y}, "count");
  count->type = Type::tensor(DataType::int64, Shape{});
  return model;
}

TEST(Observer, ShowsEveryValueOnceWhateverTheMemory) {
  ASSERT_OK_AND(const auto runtime, Runtime::load());
  const auto model = chain();
  const std::vector<std::string> names{"y", "x", "count", "doubled"};
  const std::vector<float> values{1, 2, 3, 4};
  const std::vector inputs{host_tensor<float>("x", DataType::float32, {2, 2}, std::span<const float>(values))};
  for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{20}, std::uint64_t{1} << 20}) {
    ASSERT_OK_AND(auto observer, Observer::open(runtime, *model, names, {.memory = memory}));
    EXPECT_EQ(observer.groups(inputs).size(), memory == 1u << 20 ? 1u : 3u);
    std::map<std::string, float> last;
    ASSERT_OK(observer.run(inputs, [&](std::size_t index, const TensorView& value) -> Status {
      EXPECT_FALSE(last.contains(names[index]));
      EXPECT_EQ(value.name, names[index]);
      if (value.type != DataType::float32) {
        last[names[index]] = 0;
        return {};
      }
      EXPECT_EQ(value.dims, (std::vector<std::int64_t>{2, 2}));
      last[names[index]] = reinterpret_cast<const float*>(value.data.data())[3];
      return {};
    }));
    EXPECT_EQ(last, (std::map<std::string, float>{{"x", 4.0f}, {"doubled", 8.0f}, {"y", -8.0f}, {"count", 0.0f}}));
  }
}

TEST(Observer, AnErrorOfTheVisitorEndsTheRun) {
  ASSERT_OK_AND(const auto runtime, Runtime::load());
  const auto model = chain();
  ASSERT_OK_AND(auto observer, Observer::open(runtime, *model, {"y"}));
  const std::vector<float> values{1, 2};
  const std::vector inputs{host_tensor<float>("x", DataType::float32, {1, 2}, std::span<const float>(values))};
  const auto status =
      observer.run(inputs, [](std::size_t, const TensorView&) -> Status { return fail(ErrorCode::failed, "enough"); });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "enough");
  EXPECT_FALSE(observer.run({}, [](std::size_t, const TensorView&) -> Status { return {}; }));
}

TEST(Observer, FloatValuesInOrder) {
  EXPECT_EQ(float_values(*chain()), (std::vector<std::string>{"x", "doubled", "y"}));
}

}  // namespace
}  // namespace mk
