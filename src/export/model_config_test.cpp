#include "export/model_config.h"

#include "testing/testing.h"

namespace mk {
namespace {

using testing::TemporaryFolder;

std::string type_of(const Path& folder, std::string_view model) {
  const auto config = read_model_config(folder, model);
  return config ? config->model_type() : config.error().to_string();
}

TEST(ReadModelConfig, TellsTheTypeFromNamesWhereTheFileDoesNot) {
  TemporaryFolder folder;
  folder.write("my-roberta/config.json", R"({"architectures": ["RobertaModel"]})");
  folder.write("mine/config.json", R"({"architectures": ["RobertaModel"]})");
  folder.write("bert/config.json", R"({"architectures": ["RobertaModel"]})");
  folder.write("vit/config.json", R"({"model_type": "deit"})");
  EXPECT_EQ(type_of(folder / "my-roberta", to_utf8(folder / "my-roberta")), "roberta");
  EXPECT_EQ(type_of(folder / "mine", to_utf8(folder / "mine")), "");
  EXPECT_EQ(type_of(folder / "mine", "org/roberta-copy@main"), "roberta");
  EXPECT_EQ(type_of(folder / "bert", to_utf8(folder / "bert")), "");
  EXPECT_EQ(type_of(folder / "vit", to_utf8(folder / "vit")), "deit");
  EXPECT_FALSE(read_model_config(folder / "none", "none"));
}

}  // namespace
}  // namespace mk
