#include "quantize/node_filter.h"

#include "testing/testing.h"

namespace mk {
namespace {

TEST(NodeFilterTest, Globs) {
  EXPECT_TRUE(matches_glob("/layer.0/attention/*", "/layer.0/attention/query/MatMul"));
  EXPECT_TRUE(matches_glob("*MatMul", "/layer.0/MatMul/MatMul"));
  EXPECT_TRUE(matches_glob("a*b*c", "aXbYbZc"));
  EXPECT_TRUE(matches_glob("layer.?", "layer.7"));
  EXPECT_FALSE(matches_glob("layer.?", "layer.17"));
  EXPECT_FALSE(matches_glob("Conv", "Conv_1"));
  EXPECT_FALSE(matches_glob("", "x"));
  EXPECT_TRUE(matches_glob("*", ""));
}

TEST(NodeFilterTest, ByNameTypeAndOutput) {
  Graph graph;
  Value* x = graph.add_input("x", Type::tensor(DataType::float32));
  graph.add_op("Relu", {x}, "y");
  Node& node = *graph.nodes().front();
  EXPECT_TRUE((NodeFilter{{"y"}, {}}.matches(node)));  // a node without a name is known by its output
  node.name = "first";
  EXPECT_FALSE((NodeFilter{{"y"}, {}}.matches(node)));
  EXPECT_TRUE((NodeFilter{{"fi*"}, {}}.matches(node)));
  EXPECT_TRUE((NodeFilter{{}, {"Relu"}}.matches(node)));
  EXPECT_FALSE((NodeFilter{{}, {"relu"}}.matches(node)));
  EXPECT_FALSE((NodeFilter{}.matches(node)));
}

}  // namespace
}  // namespace mk
