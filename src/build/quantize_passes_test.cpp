#include "build/quantize_passes.h"

#include "testing/testing.h"

namespace mk {
namespace {

TEST(QuantizePasses, PrecisionsAsTheSpecNamesThem) {
  QuantConfig base;
  base.per_channel = true;
  struct Row {
    const char *precision, *mode, *weight, *activation;
  };
  for (const Row& row : {Row{"auto", "static", "uint8", "uint8"}, Row{"int8", "static", "uint8", "uint8"},
                         Row{"INT16", "static", "int16", "uint16"}, Row{"w8a8", "static", "uint8", "uint8"},
                         Row{"W8A16", "static", "uint8", "uint16"}, Row{"w16a8", "static", "int16", "uint8"},
                         Row{"w16a16", "static", "int16", "uint16"}, Row{"fp16", "fp16", "uint8", "uint8"},
                         Row{"dynamic", "dynamic", "uint8", "uint8"}, Row{"int4", "rtn", "uint8", "uint8"},
                         Row{"w4a32", "rtn", "uint8", "uint8"}}) {
    ASSERT_OK_AND(const auto passes, quantize_passes(row.precision, base));
    ASSERT_EQ(passes.size(), 1u) << row.precision;
    EXPECT_EQ(passes[0].mode, row.mode) << row.precision;
    EXPECT_EQ(passes[0].weight_type, row.weight) << row.precision;
    EXPECT_EQ(passes[0].activation_type, row.activation) << row.precision;
    EXPECT_TRUE(passes[0].per_channel);
  }
}

TEST(QuantizePasses, FourBitsWithEightAndSixteen) {
  ASSERT_OK_AND(const auto half, quantize_passes("w4a16", {}));
  ASSERT_EQ(half.size(), 2u);
  EXPECT_EQ(half[0].mode, "rtn");
  EXPECT_EQ(half[0].rtn_bits, 4);
  EXPECT_EQ(half[1].mode, "fp16");
  ASSERT_OK_AND(const auto eight, quantize_passes("w4a8", {}));
  ASSERT_EQ(eight.size(), 1u);
  EXPECT_EQ(eight[0].rtn_accuracy_level, 4);
}

TEST(QuantizePasses, WhatIsNoPrecision) {
  for (const char* precision : {"fp32", "banana", "w3a8", "w8a32", ""}) {
    const auto passes = quantize_passes(precision, {});
    ASSERT_FALSE(passes) << precision;
    EXPECT_EQ(passes.error().code, ErrorCode::usage);
  }
}

}  // namespace
}  // namespace mk
