// Chains that exporters make shapes with, end to end: the shape at the end is right only where every value on the way
// is. Right values are what numpy computes, with the symbols in place of numbers.

#include <gtest/gtest.h>

#include "graph/shape_inference.h"
#include "testing/onnx_text.h"

namespace mk {
namespace {

// The type of `y` in a graph with inputs float[batch, seq, 768] x and float[past, 4] p.
std::string type_of_y(const std::string& nodes, int opset = 17) {
  auto model =
      testing::model_of_text("<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) +
                             "]> g (float[batch, seq, 768] x, float[past, 4] p) => (float[] y) {" + nodes + "}");
  if (!model) return model.error().to_string();
  const auto report = infer_shapes(**model);
  if (!report) return report.error().to_string();
  return to_string((*model)->graph->find("y")->type);
}

// The same for the shape that a value of one dimension spells: y has that shape.
std::string shaped(const std::string& nodes) { return type_of_y(nodes + " y = ConstantOfShape(s)"); }

const std::string constants = R"(
    zero = Constant<value_int = 0>() one = Constant<value_int = 1>() two = Constant<value_int = 2>()
    l0 = Constant<value_ints = [0]>() l1 = Constant<value_ints = [1]>() l2 = Constant<value_ints = [2]>()
    minus = Constant<value_ints = [-1]>() head = Constant<value_ints = [12, 64]>()
    shape = Shape(x) batch = Gather(shape, zero) seq = Gather(shape, one) batch1 = Unsqueeze(batch, l0)
    seq1 = Unsqueeze(seq, l0) past = Shape<end = 1>(p)
)";

TEST(ValuePropagation, ShapesOfTransformers) {
  EXPECT_EQ(type_of_y(constants + "s = Concat<axis = 0>(batch1, seq1, head) y = Reshape(x, s)"),
            "float32[batch, seq, 12, 64]");
  EXPECT_EQ(type_of_y(constants + "s = Concat<axis = 0>(batch1, minus) y = Reshape(x, s)"), "float32[batch, 768*seq]");
  EXPECT_EQ(type_of_y(constants + "t = Mul(batch1, seq1) s = Concat<axis = 0>(t, minus) y = Reshape(x, s)"),
            "float32[batch*seq, 768]");
}

TEST(ValuePropagation, Arithmetic) {
  EXPECT_EQ(shaped(constants + "s = Add(seq1, past)"), "float32[past + seq]");
  EXPECT_EQ(shaped(constants + "a = Add(seq1, past) s = Sub(a, seq1)"), "float32[past]");
  EXPECT_EQ(shaped(constants + "s = Div(seq1, l2)"), "float32[floor(seq/2)]");
  EXPECT_EQ(shaped(constants + "a = Mul(seq1, l2) s = Div(a, l2)"), "float32[seq]");
  EXPECT_EQ(shaped(constants + "a = Mul(seq1, l2) b = Mod(a, l2) s = Add(b, l1)"), "float32[1]");
  EXPECT_EQ(shaped(constants + "a = Neg(seq1) b = Abs(a) s = Identity(b)"), "float32[seq]");
  EXPECT_EQ(shaped(constants + "a = Constant<value_ints = [512]>() s = Min(seq1, a)"), "float32[min(512, seq)]");
  EXPECT_EQ(shaped(constants + "a = Add(seq1, past) s = Max(seq1, a)"), "float32[past + seq]");
  EXPECT_EQ(shaped(constants + "a = Constant<value_ints = [-7]>() b = Div(a, l2) c = Neg(b) s = Identity(c)"),
            "float32[3]");  // towards zero, as in C
}

TEST(ValuePropagation, FloatsThatAreWhole) {
  EXPECT_EQ(shaped(constants + "a = Cast<to = 1>(seq1) f = Constant<value_float = 2.0>() b = Mul(a, f) c = Floor(b) "
                               "s = Cast<to = 7>(c)"),
            "float32[2*seq]");
  EXPECT_EQ(shaped(constants + "a = Cast<to = 1>(seq1) f = Constant<value_float = 2.5>() b = Mul(a, f) "
                               "s = Cast<to = 7>(b)"),
            "float32[unk__0]");
  EXPECT_EQ(shaped(R"(a = Constant<value = float[1] {1369.0}>() h = Constant<value = float {0.5}>() b = Pow(a, h)
                      s = Cast<to = 7>(b))"),
            "float32[37]");
}

// How torch writes x.expand(batch, -1, 768): the -1 is replaced by 1 where the target says -1.
TEST(ValuePropagation, ExpandToOnesWhereTheTargetIsMinusOne) {
  EXPECT_EQ(type_of_y(constants + R"(
      cls = Constant<value = float[1, 1, 3] {1, 2, 3}>()
      raw = Concat<axis = 0>(batch1, minus, minus) three = Constant<value_ints = [3]>()
      ones = ConstantOfShape<value = int64[1] {1}>(three)
      m = Mul(ones, minus) where = Equal(raw, m) target = Where(where, ones, raw) y = Expand(cls, target))"),
            "float32[batch, 1, 3]");
}

// How torch expands a buffer of token types: its first seq elements to [batch, seq], which are 4 at most.
TEST(ValuePropagation, ExpandOfTheFirstElementsOfABuffer) {
  EXPECT_EQ(type_of_y(constants + R"(
      buffer = Constant<value = float[1, 4] {1, 2, 3, 4}>() types = Slice(buffer, l0, seq1, l1)
      target = Concat<axis = 0>(batch1, seq1) y = Expand(types, target))"),
            "float32[batch, seq]");
}

TEST(ValuePropagation, Layout) {
  EXPECT_EQ(shaped(constants + "s = Slice(shape, l0, l2)"), "float32[batch, seq]");
  EXPECT_EQ(shaped(constants + "s = Slice(shape, minus, l0, l0, minus)"), "float32[768, seq]");
  EXPECT_EQ(shaped(constants + "a, b = Split<axis = 0>(head) s = Concat<axis = 0>(b, a)"), "float32[64, 12]");
  EXPECT_EQ(shaped(constants + "i = Constant<value_ints = [2, -3]>() s = Gather(shape, i)"), "float32[768, batch]");
  EXPECT_EQ(shaped(constants + "a = Unsqueeze(shape, l0) b = Transpose(a) s = Squeeze(b, l1)"),
            "float32[batch, seq, 768]");
  EXPECT_EQ(shaped(constants + "three = Constant<value_int = 3>() s = Range(one, three, one)"), "float32[1, 2]");
  EXPECT_EQ(shaped(constants + "a = Size(x) s = Unsqueeze(a, l0)"), "float32[768*batch*seq]");
  EXPECT_EQ(shaped(constants + "s = ReduceProd(shape)"), "float32[768*batch*seq]");
  EXPECT_EQ(shaped(constants + "s = Expand(seq1, l2)"), "float32[seq, seq]");
}

// How torch writes pads: reversed pairs, through a matrix.
TEST(ValuePropagation, PadsThroughAMatrix) {
  EXPECT_EQ(type_of_y(constants + R"(
      raw = Constant<value_ints = [0, 0, 1, 2, 0, 0]>() pair = Constant<value_ints = [-1, 2]>()
      end = Constant<value_ints = [-9223372036854775807]>()
      m = Reshape(raw, pair) r = Slice(m, minus, end, l0, minus) t = Transpose(r) pads = Reshape(t, minus)
      y = Pad(x, pads))"),
            "float32[batch, seq + 3, 768]");
}

TEST(ValuePropagation, WhatIsNotKnownIsNotGuessed) {
  EXPECT_EQ(shaped(constants + "a = Sub(seq1, past) s = Abs(a)"), "float32[unk__0]");
  EXPECT_EQ(shaped(constants + "s = Max(seq1, past)"), "float32[unk__0]");
  EXPECT_EQ(shaped(constants + "c = Equal(seq1, past) s = Where(c, l1, l2)"), "float32[unk__0]");
  EXPECT_EQ(shaped(constants + "s = Div(seq1, l0)"), "float32[unk__0]");
  // 300 does not fit int8.
  EXPECT_EQ(shaped("a = Constant<value_ints = [300]>() b = Cast<to = 3>(a) s = Cast<to = 7>(b)"), "float32[unk__0]");
}

TEST(SymbolicShapes, LengthsOfConcatSliceAndRange) {
  EXPECT_EQ(type_of_y(constants + "k = Constant<value = float[1, 4] {1, 2, 3, 4}>() y = Concat<axis = 0>(p, k)"),
            "float32[past + 1, 4]");
  EXPECT_EQ(type_of_y(constants + "y = Slice(x, l0, minus, l1)"), "float32[batch, seq - 1, 768]");
  EXPECT_EQ(type_of_y(constants + "big = Constant<value_ints = [9223372036854775807]>() y = Slice(x, minus, big, l1)"),
            "float32[batch, 1, 768]");
  EXPECT_EQ(type_of_y(constants + "big = Constant<value_ints = [9223372036854775807]>() y = Slice(x, l2, big, l1)"),
            "float32[batch, unk__0, 768]");  // seq may be 1: 0, not -1
  EXPECT_EQ(type_of_y(constants + "y = Slice(x, l0, seq1, l2)"), "float32[batch, seq, min(768, seq)]");
  EXPECT_EQ(type_of_y(constants + "y = Range(zero, seq, one)"), "int64[seq]");
  EXPECT_EQ(type_of_y(constants + "y = Range(zero, seq, two)"), "int64[floor((seq + 1)/2)]");
  EXPECT_EQ(type_of_y("y = Flatten<axis = 2>(x)"), "float32[batch*seq, 768]");
  EXPECT_EQ(type_of_y(constants + "r = Constant<value_ints = [1, 2, 1]>() y = Tile(x, r)"),
            "float32[batch, 2*seq, 768]");
}

// The positions of BERT: a slice of a table of 512, added to the words.
TEST(SymbolicShapes, TablesCutToTheLengthOfTheInput) {
  EXPECT_EQ(type_of_y(constants + R"(
      limit = Constant<value_ints = [1, 512, 768]>() table = ConstantOfShape(limit)
      rows = Slice(table, l0, seq1, l1) y = Add(x, rows))"),
            "float32[batch, seq, 768]");
}

std::string type_of_image(const std::string& nodes, int opset = 17) {
  auto model = testing::model_of_text("<ir_version: 8, opset_import: [\"\" : " + std::to_string(opset) +
                                      "]> g (float[1, 3, h, w] x, float[8, 3, 3, 3] k, float[3, 8, 2, 2] t) "
                                      "=> (float[] y) {" +
                                      nodes + "}");
  if (!model) return model.error().to_string();
  const auto report = infer_shapes(**model);
  if (!report) return report.error().to_string();
  return to_string((*model)->graph->find("y")->type);
}

TEST(SymbolicShapes, Windows) {
  EXPECT_EQ(type_of_image("y = Conv<pads = [1, 1, 1, 1]>(x, k)"), "float32[1, 8, h, w]");
  EXPECT_EQ(type_of_image("y = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, k)"),
            "float32[1, 8, floor((h + 1)/2), floor((w + 1)/2)]");
  EXPECT_EQ(type_of_image("y = Conv<auto_pad = \"SAME_UPPER\", strides = [2, 2]>(x, k)"),
            "float32[1, 8, floor((h + 1)/2), floor((w + 1)/2)]");
  EXPECT_EQ(type_of_image("y = Conv<dilations = [2, 1]>(x, k)"), "float32[1, 8, h - 4, w - 2]");
  EXPECT_EQ(type_of_image("y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)"),
            "float32[1, 3, floor(h/2), floor(w/2)]");
  EXPECT_EQ(type_of_image("y = ConvTranspose<strides = [2, 2]>(x, t)"), "float32[1, 8, 2*h, 2*w]");
  EXPECT_EQ(type_of_image("s = Constant<value = float[4] {1, 1, 2, 0.5}>() y = Resize(x, , s)"),
            "float32[1, 3, 2*h, floor(w/2)]");
}

}  // namespace
}  // namespace mk
