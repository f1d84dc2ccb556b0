#include "base/path.h"

#include "testing/testing.h"

namespace mk {
namespace {

TEST(Path, KeepsUtf8) { EXPECT_EQ(to_utf8(path_from_utf8("modèle/模型.onnx")), "modèle/模型.onnx"); }

TEST(Path, ExpandsTheHomeFolder) {
  EXPECT_EQ(path_from_utf8("~"), home_folder());
  EXPECT_EQ(path_from_utf8("~/a/b"), home_folder() / "a" / "b");
  EXPECT_EQ(path_from_utf8("~other/a"), Path("~other/a"));
  EXPECT_EQ(path_from_utf8("a/~"), Path("a/~"));
}

TEST(Path, AppendsASuffixToTheWholeName) {
  EXPECT_EQ(with_suffix("out/m.onnx", ".data"), Path("out/m.onnx.data"));
  EXPECT_EQ(with_suffix("m", ".onnx"), Path("m.onnx"));
}

TEST(Path, KnowsWhatStaysInside) {
  EXPECT_TRUE(stays_inside("a.data"));
  EXPECT_TRUE(stays_inside("a/b..c/..d"));
  EXPECT_FALSE(stays_inside(""));
  EXPECT_FALSE(stays_inside("/etc/passwd"));
  EXPECT_FALSE(stays_inside(".."));
  EXPECT_FALSE(stays_inside("a/../../b"));
  EXPECT_FALSE(stays_inside(Path(std::string("a\0b", 3))));
}

}  // namespace
}  // namespace mk
