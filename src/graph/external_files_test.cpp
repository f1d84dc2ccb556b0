#include "graph/external_files.h"

#include <cstring>

#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "testing/testing.h"

namespace mk {
namespace {

using Entries = std::vector<std::pair<std::string, std::string>>;

Tensor reference(std::string name, Entries entries) {
  Tensor tensor = make_tensor(std::move(name), DataType::int32, {1}, nullptr);
  tensor.external = std::move(entries);
  return tensor;
}

// A model of one tensor whose data is elsewhere.
std::string model_of(Entries entries) {
  Model model;
  model.graph->add_initializer(reference("w", std::move(entries)));
  return serialize_onnx(model).value_or(std::string());
}

std::int64_t value_of(const Model& model, const std::string& name) {
  const auto values = integer_values(*model.graph->find(name)->initializer());
  return values ? values->front() : -1;
}

TEST(ExternalFiles, MoreThanMayBeOpen) {
  testing::TemporaryFolder folder;
  constexpr int count = 130;
  Model model;
  for (int i = 0; i < count; ++i) {
    const std::string file = "data/w" + std::to_string(i);
    folder.write(file, std::string("....") + static_cast<char>(i) + std::string("\0\0\0", 3));
    model.graph->add_initializer(reference(
        "w" + std::to_string(i), {{"location", file}, {"offset", "4"}, {"length", "4"}, {"checksum", "0123"}}));
  }
  ASSERT_OK_AND(const std::string bytes, serialize_onnx(model));
  ASSERT_OK_AND(auto again, read_onnx(folder.write("m.onnx", bytes)));
  EXPECT_EQ(again->external_locations.size(), static_cast<std::size_t>(count));
  for (const int i : {0, 99, 100, 127}) {
    const Tensor& tensor = *again->graph->find("w" + std::to_string(i))->initializer();
    EXPECT_EQ(value_of(*again, tensor.name), i);
    EXPECT_TRUE(tensor.data->file_range());
    EXPECT_EQ(*find(tensor.external, "checksum"), "0123");
  }
  // All go to one file.
  Publication publication;
  ASSERT_OK(write_onnx(*again, folder / "out/m.onnx", publication, false, {.inline_below = 1}));
  ASSERT_OK(publication.commit());
  ASSERT_OK_AND(auto written, read_onnx(folder / "out/m.onnx"));
  EXPECT_EQ(written->external_locations, std::vector<std::string>{"m.onnx.data"});
  for (const int i : {0, 99, 100, 127}) EXPECT_EQ(value_of(*written, "w" + std::to_string(i)), i);
}

TEST(ExternalFiles, LocationsStayInTheFolder) {
  testing::TemporaryFolder folder;
  folder.write("w", "12345678");
  std::filesystem::create_directories(folder / "inner");
  for (const std::string& location : {std::string("../w"), to_utf8(folder / "w"), std::string("inner/../../w"),
                                      std::string("..\\w"), std::string("C:\\w"), std::string("w\0x", 3)}) {
    const auto model =
        read_onnx(folder.write("inner/m.onnx", model_of({{"location", location}})), {.require_external_data = false});
    ASSERT_FALSE(model.has_value()) << location;
    EXPECT_EQ(model.error().code, ErrorCode::malformed) << location;
    EXPECT_NE(model.error().where.find("tensor w"), std::string::npos) << model.error().to_string();
  }
}

TEST(ExternalFiles, ThroughLinksAndWithEitherSeparator) {
  testing::TemporaryFolder folder;
  folder.write("blobs/weights", std::string("\x07\0\0\0", 4));
  folder.write("blobs/model", model_of({{"location", "parts\\w.data"}}));
  std::filesystem::create_directories(folder / "snapshot/parts");
  std::error_code code;
  std::filesystem::create_symlink("../../blobs/weights", folder / "snapshot/parts/w.data", code);
  if (!code) std::filesystem::create_symlink("../blobs/model", folder / "snapshot/m.onnx", code);
  if (code) GTEST_SKIP() << "no symbolic links here";
  ASSERT_OK_AND(auto model, read_onnx(folder / "snapshot/m.onnx"));
  EXPECT_EQ(value_of(*model, "w"), 7);
}

TEST(ExternalFiles, WhatIsBrokenIsSaid) {
  testing::TemporaryFolder folder;
  folder.write("w", "123");
  const auto code_of = [&](Entries entries) {
    const auto model = read_onnx(folder.write("m.onnx", model_of(std::move(entries))));
    EXPECT_NE(model.error().where.find("tensor w"), std::string::npos) << model.error().to_string();
    return model.error().code;
  };
  EXPECT_EQ(code_of({{"location", "missing"}}), ErrorCode::not_found);
  EXPECT_EQ(code_of({{"location", "w"}}), ErrorCode::malformed);
  EXPECT_EQ(code_of({{"location", ""}}), ErrorCode::malformed);
  EXPECT_EQ(code_of({{"location", "w"}, {"offset", "-1"}}), ErrorCode::malformed);
  EXPECT_EQ(code_of({{"location", "w"}, {"offset", "0"}, {"length", "3"}}), ErrorCode::malformed);
  EXPECT_EQ(code_of({{"location", "w"}, {"offset", "18446744073709551615"}}), ErrorCode::malformed);

  ASSERT_OK_AND(auto model, read_onnx(folder.write("m.onnx", model_of({{"location", "missing"}})),
                                      {.require_external_data = false}));
  EXPECT_EQ(model->graph->find("w")->initializer()->data, nullptr);
  EXPECT_EQ(model->external_locations, std::vector<std::string>{"missing"});
}

}  // namespace
}  // namespace mk
