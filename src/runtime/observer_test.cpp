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

TEST(Observer, ShowsEveryValueOnceInOrder) {
  ASSERT_OK_AND(const auto runtime, Runtime::load());
  const auto model = chain();
  const std::vector<std::string> names{"y", "x", "count", "doubled"};
  const std::vector<float> values{1, 2, 3, 4};
  const std::vector inputs{host_tensor<float>("x", DataType::float32, {2, 2}, std::span<const float>(values))};
  ASSERT_OK_AND(auto observer, Observer::open(runtime, *model, names));
  for (int run = 0; run < 2; ++run) {
    std::vector<std::pair<std::string, float>> seen;
    ASSERT_OK(observer.run(inputs, [&](std::size_t index, const TensorView& value) -> Status {
      EXPECT_EQ(value.name, names[index]);
      const bool is_count = value.type == DataType::int64;
      EXPECT_EQ(value.dims, is_count ? std::vector<std::int64_t>{} : (std::vector<std::int64_t>{2, 2}));
      seen.emplace_back(names[index],
                        is_count ? static_cast<float>(*reinterpret_cast<const std::int64_t*>(value.data.data()))
                                 : reinterpret_cast<const float*>(value.data.data())[3]);
      return {};
    }));
    EXPECT_EQ(seen, (std::vector<std::pair<std::string, float>>{
                        {"x", 4.0f}, {"doubled", 8.0f}, {"y", -8.0f}, {"count", 4.0f}}));
  }
}

// What shares the memory of a value that is no longer needed would show other numbers in a value that was kept.
TEST(Observer, CollectsGroupsThatFitIntoTheMemory) {
  ASSERT_OK_AND(const auto runtime, Runtime::load());
  const auto model = chain();
  const std::vector<float> values{1, 2, 3, 4};
  const std::vector inputs{host_tensor<float>("x", DataType::float32, {2, 2}, std::span<const float>(values))};
  for (const std::uint64_t memory : {std::uint64_t{1}, std::uint64_t{20}, std::uint64_t{1} << 20}) {
    ASSERT_OK_AND(auto observer, Observer::open(runtime, *model, {"y", "x", "count", "doubled"}, {.memory = memory}));
    const auto groups = observer.groups(inputs);
    EXPECT_EQ(groups.size(), memory == 1u << 20 ? 1u : 3u);
    std::map<std::size_t, float> last;
    for (const auto& group : groups) {
      ASSERT_OK_AND(const auto collected, observer.collect(inputs, group));
      EXPECT_EQ(collected.size(), group.size());
      for (const auto& [index, value] : collected)
        if (value.type == DataType::float32) last[index] = reinterpret_cast<const float*>(value.data.data())[3];
    }
    EXPECT_EQ(last, (std::map<std::size_t, float>{{0, -8.0f}, {3, 8.0f}}));
  }
}

TEST(Observer, AValueThatTheGraphDoesNotHaveIsNamed) {
  ASSERT_OK_AND(const auto runtime, Runtime::load());
  const auto observer = Observer::open(runtime, *chain(), {"nosuch"});
  ASSERT_FALSE(observer);
  EXPECT_EQ(observer.error().message, "the graph has no value nosuch to observe");
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
