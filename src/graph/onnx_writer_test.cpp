// What we write is read back by the onnx library's own protobuf classes, which are the oracle.

#include "graph/onnx_writer.h"

#include <onnx/onnx_pb.h>

#include <fstream>
#include <iterator>

#include "base/sha1.h"
#include "graph/onnx_reader.h"
#include "testing/testing.h"

namespace mk {
namespace {

using onnx::AttributeProto;
using onnx::TensorProto;

std::string content(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

onnx::ModelProto parsed(const std::string& bytes) {
  onnx::ModelProto proto;
  EXPECT_TRUE(proto.ParseFromString(bytes));
  return proto;
}

std::string value_of(const TensorProto& tensor, const std::string& key) {
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == key) return entry.value();
  }
  return {};
}

Tensor bytes_tensor(std::string name, std::size_t count, char fill) {
  return make_tensor(std::move(name), DataType::uint8, {static_cast<std::int64_t>(count)},
                     owned_bytes(std::vector<std::byte>(count, static_cast<std::byte>(fill))));
}

Model small_model() {
  Model model;
  model.set_opset("", 17);
  model.graph->name = "g";
  Value* x = model.graph->add_input("x", Type::tensor(DataType::float32, Shape{Dim::symbolic("n"), Dim::known(2)}));
  Value* y = model.graph->add_op("Neg", {x}, "y");
  model.graph->mark_output(y);
  y->type = x->type;
  return model;
}

Result<WrittenModel> write(const Model& model, const Path& path, const WriteOptions& options = {},
                           bool overwrite = false) {
  Publication publication;
  MK_TRY(auto written, write_onnx(model, path, publication, overwrite, options));
  MK_CHECK(publication.commit());
  return written;
}

// Every field that we know, in one model, byte for byte: the order of fields is protobuf's own.
TEST(OnnxWriter, ReadingAndWritingKeepsEveryByte) {
  onnx::ModelProto proto;
  proto.set_ir_version(10);
  proto.set_producer_name("p");
  proto.set_producer_version("1");
  proto.set_domain("d");
  proto.set_model_version(3);
  proto.set_doc_string("doc");
  for (const auto& [domain, version] : {std::pair("", 18), std::pair("local", 1)}) {
    auto* opset = proto.add_opset_import();
    opset->set_domain(domain);
    opset->set_version(version);
  }
  const auto set_entry = [](auto* entry) {
    entry->set_key("key");
    entry->set_value("value");
  };
  set_entry(proto.add_metadata_props());
  proto.add_training_info()->mutable_algorithm()->set_name("training");
  proto.add_configuration()->set_name("device");
  proto.mutable_unknown_fields()->append("\xa2\x06\x03xyz");

  auto* graph = proto.mutable_graph();
  graph->set_name("g");
  graph->set_doc_string("graph doc");
  set_entry(graph->add_metadata_props());
  auto* annotation = graph->add_quantization_annotation();
  annotation->set_tensor_name("y");
  set_entry(annotation->add_quant_parameter_tensor_names());

  const auto declare = [&](onnx::ValueInfoProto* value, const char* name) {
    value->set_name(name);
    auto* tensor = value->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(TensorProto::FLOAT);
    tensor->mutable_shape()->add_dim()->set_dim_value(0);
    tensor->mutable_shape()->add_dim()->set_dim_param("n");
    tensor->mutable_shape()->add_dim()->set_denotation("DATA_CHANNEL");
    value->mutable_type()->set_denotation("IMAGE");
    value->set_doc_string("value doc");
    set_entry(value->add_metadata_props());
  };
  declare(graph->add_input(), "x");
  declare(graph->add_output(), "z");
  declare(graph->add_value_info(), "y");
  auto* sequence = graph->add_input();
  sequence->set_name("seq");
  sequence->mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_tensor_type()->set_elem_type(1);
  auto* map = graph->add_input();
  map->set_name("map");
  map->mutable_type()->mutable_map_type()->set_key_type(7);
  map->mutable_type()->mutable_map_type()->mutable_value_type()->mutable_tensor_type()->set_elem_type(1);
  auto* optional = graph->add_input();
  optional->set_name("opt");
  optional->mutable_type()->mutable_optional_type()->mutable_elem_type()->mutable_sparse_tensor_type()->set_elem_type(
      1);
  auto* opaque = graph->add_input();
  opaque->set_name("opaque");
  opaque->mutable_type()->mutable_opaque_type()->set_name("kind");

  auto* node = graph->add_node();
  for (const char* input : {"x", "", "w"}) node->add_input(input);
  for (const char* output : {"y", "", "z"}) node->add_output(output);
  node->set_name("n");
  node->set_op_type("Op");
  node->set_domain("local");
  node->set_overload("o");
  node->set_doc_string("node doc");
  set_entry(node->add_metadata_props());
  node->add_device_configurations()->set_configuration_id("device");
  const auto attribute = [&](const char* name, AttributeProto::AttributeType type) {
    auto* a = node->add_attribute();
    a->set_name(name);
    a->set_type(type);
    a->set_doc_string("a");
    return a;
  };
  const auto fill = [&](TensorProto* tensor, const char* name) {
    tensor->set_name(name);
    tensor->add_dims(2);
    tensor->set_data_type(TensorProto::INT16);
    tensor->set_raw_data("abcd");
    tensor->set_doc_string("tensor doc");
    set_entry(tensor->add_metadata_props());
  };
  attribute("f", AttributeProto::FLOAT)->set_f(0);
  attribute("i", AttributeProto::INT)->set_i(-1);
  attribute("s", AttributeProto::STRING)->set_s("");
  fill(attribute("t", AttributeProto::TENSOR)->mutable_t(), "t");
  attribute("fs", AttributeProto::FLOATS)->add_floats(1);
  attribute("is", AttributeProto::INTS)->add_ints(1);
  attribute("none", AttributeProto::INTS);
  attribute("ss", AttributeProto::STRINGS)->add_strings("text");
  fill(attribute("ts", AttributeProto::TENSORS)->add_tensors(), "t");
  auto* inner = attribute("g", AttributeProto::GRAPH)->mutable_g();
  inner->set_name("inner");
  auto* inner_node = inner->add_node();
  inner_node->add_input("x");
  inner_node->add_output("inner_y");
  inner_node->set_op_type("Neg");
  inner->add_output()->set_name("inner_y");
  attribute("gs", AttributeProto::GRAPHS)->add_graphs()->set_name("other");
  attribute("tp", AttributeProto::TYPE_PROTO)->mutable_tp()->mutable_tensor_type()->set_elem_type(1);
  fill(attribute("sp", AttributeProto::SPARSE_TENSOR)->mutable_sparse_tensor()->mutable_values(), "v");

  fill(graph->add_initializer(), "w");
  auto* strings = graph->add_initializer();
  strings->set_name("strings");
  strings->add_dims(2);
  strings->set_data_type(TensorProto::STRING);
  strings->add_string_data("one");
  strings->add_string_data("");

  auto* function = proto.add_functions();
  function->set_name("F");
  function->set_domain("local");
  function->add_input("a");
  function->add_output("b");
  function->add_attribute("alpha");
  function->set_overload("o");
  function->set_doc_string("function doc");
  set_entry(function->add_metadata_props());
  auto* import = function->add_opset_import();
  import->set_domain("");
  import->set_version(18);
  auto* beta = function->add_attribute_proto();
  beta->set_name("beta");
  beta->set_type(AttributeProto::INT);
  beta->set_i(0);
  auto* body = function->add_node();
  body->add_input("a");
  body->add_output("b");
  body->set_op_type("LeakyRelu");
  auto* reference = body->add_attribute();
  reference->set_name("alpha");
  reference->set_type(AttributeProto::FLOAT);
  reference->set_ref_attr_name("alpha");
  declare(function->add_value_info(), "b");

  const std::string bytes = proto.SerializeAsString();
  ASSERT_OK_AND(auto model, read_onnx(std::as_bytes(std::span(bytes)), {}));
  ASSERT_OK_AND(const std::string written, serialize_onnx(*model));
  // Protobuf writes known fields in order and unknown ones last; ours are parsed to the same.
  EXPECT_EQ(parsed(written).SerializeAsString(), bytes);
  testing::TemporaryFolder folder;
  ASSERT_OK(write(*model, folder / "m.onnx"));
  EXPECT_EQ(content(folder / "m.onnx"), written);
}

TEST(OnnxWriter, SparseInitializersAndUnknownFieldsInTypes) {
  onnx::ModelProto proto;
  proto.set_ir_version(10);
  auto* graph = proto.mutable_graph();
  auto* sparse = graph->add_sparse_initializer();
  sparse->mutable_values()->set_name("s");
  sparse->mutable_values()->set_data_type(TensorProto::FLOAT);
  sparse->mutable_values()->add_dims(1);
  sparse->mutable_values()->add_float_data(4);
  sparse->mutable_indices()->set_data_type(TensorProto::INT64);
  sparse->mutable_indices()->add_dims(1);
  sparse->mutable_indices()->add_int64_data(2);
  sparse->add_dims(8);
  auto* node = graph->add_node();
  node->set_op_type("Neg");
  node->add_input("s");
  node->add_output("y");
  auto* input = graph->add_input();
  input->set_name("x");
  input->mutable_type()->mutable_tensor_type()->set_elem_type(1);
  input->mutable_type()->mutable_tensor_type()->mutable_unknown_fields()->append("\xa2\x06\x01q");
  const std::string bytes = proto.SerializeAsString();
  ASSERT_OK_AND(auto model, read_onnx(std::as_bytes(std::span(bytes)), {}));
  EXPECT_EQ(to_string(model->graph->find("s")->type), "float32[8]");
  model->graph->rename(model->graph->find("s"), "renamed");
  ASSERT_OK_AND(const std::string written, serialize_onnx(*model));
  sparse->mutable_values()->set_name("renamed");
  node->set_input(0, "renamed");
  EXPECT_EQ(parsed(written).SerializeAsString(), proto.SerializeAsString());
}

TEST(OnnxWriter, ExternalDataIsOneAlignedFileBesideTheModel) {
  Model model = small_model();
  model.graph->add_initializer(bytes_tensor("small", 1023, 's'));
  model.graph->add_initializer(bytes_tensor("a", 1025, 'a'));
  model.graph->add_initializer(bytes_tensor("b", 2000, 'b'));
  model.graph->add_initializer(bytes_tensor("large", 1u << 20, 'l'));
  testing::TemporaryFolder folder;
  ASSERT_OK_AND(auto written, write(model, folder / "out/m.onnx", {.external = ExternalData::always}));
  EXPECT_EQ(written.files, (std::vector<Path>{folder / "out/m.onnx", folder / "out/m.onnx.data"}));
  const auto proto = parsed(content(folder / "out/m.onnx"));
  const std::string data = content(folder / "out/m.onnx.data");
  EXPECT_EQ(written.bytes, data.size() + content(folder / "out/m.onnx").size());
  ASSERT_EQ(proto.graph().initializer_size(), 4);
  EXPECT_EQ(proto.graph().initializer(0).raw_data(), std::string(1023, 's'));
  std::uint64_t end = 0;
  for (int i = 1; i < 4; ++i) {
    const TensorProto& tensor = proto.graph().initializer(i);
    EXPECT_EQ(tensor.data_location(), TensorProto::EXTERNAL);
    EXPECT_EQ(value_of(tensor, "location"), "m.onnx.data");
    const std::uint64_t offset = std::stoull(value_of(tensor, "offset"));
    const std::uint64_t length = std::stoull(value_of(tensor, "length"));
    EXPECT_EQ(length, static_cast<std::uint64_t>(tensor.dims(0)));
    EXPECT_EQ(offset % (i == 3 ? 65536 : 64), 0u);
    EXPECT_GE(offset, end);
    end = offset + length;
    EXPECT_EQ(data.substr(offset, length), std::string(length, "sabl"[i]));
  }
  EXPECT_EQ(data.size(), end);
}

TEST(OnnxWriter, SharedBytesAreStoredOnce) {
  Model model = small_model();
  Tensor first = bytes_tensor("first", 4096, 'q');
  Tensor second = make_tensor("second", DataType::uint8, {64, 64}, first.data);
  model.graph->add_initializer(std::move(first));
  model.graph->add_initializer(std::move(second));
  testing::TemporaryFolder folder;
  ASSERT_OK(write(model, folder / "m.onnx", {.external = ExternalData::always}));
  EXPECT_EQ(content(folder / "m.onnx.data").size(), 4096u);
  // Also when they come from one range of a file.
  ASSERT_OK_AND(auto again, read_onnx(folder / "m.onnx"));
  ASSERT_OK(write(*again, folder / "n.onnx"));
  EXPECT_EQ(content(folder / "n.onnx.data").size(), 4096u);
}

TEST(OnnxWriter, AutomaticGoesBySizeAndOrigin) {
  Model model = small_model();
  model.graph->add_initializer(bytes_tensor("w", 5000, 'w'));
  testing::TemporaryFolder folder;
  ASSERT_OK(write(model, folder / "a.onnx"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.onnx.data"));
  const auto size = content(folder / "a.onnx").size();
  ASSERT_OK(write(model, folder / "b.onnx", {.external_threshold = size + 1}));
  EXPECT_FALSE(std::filesystem::exists(folder / "b.onnx.data"));
  ASSERT_OK(write(model, folder / "c.onnx", {.external_threshold = size}));
  EXPECT_TRUE(std::filesystem::exists(folder / "c.onnx.data"));
  ASSERT_OK_AND(auto from_external, read_onnx(folder / "c.onnx"));
  ASSERT_OK(write(*from_external, folder / "d.onnx"));
  EXPECT_TRUE(std::filesystem::exists(folder / "d.onnx.data"));
  ASSERT_OK(write(*from_external, folder / "e.onnx", {.external = ExternalData::never}));
  EXPECT_FALSE(std::filesystem::exists(folder / "e.onnx.data"));
  EXPECT_EQ(content(folder / "e.onnx"), content(folder / "a.onnx"));
}

TEST(OnnxWriter, AModelCanBeWrittenOverItself) {
  Model model = small_model();
  for (const char* name : {"a", "b"}) model.graph->add_initializer(bytes_tensor(name, 70000, *name));
  testing::TemporaryFolder folder;
  const Path path = folder / "m.onnx";
  ASSERT_OK(write(model, path, {.external = ExternalData::always}));
  ASSERT_OK_AND(auto again, read_onnx(path));
  again->graph->erase_unused(again->graph->find("a"));
  EXPECT_EQ(write(*again, path).error().code, ErrorCode::exists);
  ASSERT_OK(write(*again, path, {}, /*overwrite=*/true));
  EXPECT_EQ(content(folder / "m.onnx.data"), std::string(70000, 'b'));
  ASSERT_OK_AND(auto inline_model, read_onnx(path));
  ASSERT_OK(write(*inline_model, path, {.external = ExternalData::never}, /*overwrite=*/true));
  EXPECT_EQ(parsed(content(path)).graph().initializer(0).raw_data(), std::string(70000, 'b'));
}

TEST(OnnxWriter, ChecksumsAreOfTheNewFile) {
  Model model = small_model();
  Tensor tensor = bytes_tensor("w", 5000, 'w');
  tensor.external = {{"location", "old"}, {"checksum", "0000"}, {"future", "x"}};
  model.graph->add_initializer(std::move(tensor));
  testing::TemporaryFolder folder;
  ASSERT_OK(write(model, folder / "m.onnx", {.external = ExternalData::always}));
  ASSERT_OK_AND(auto file, File::open(folder / "m.onnx.data"));
  ASSERT_OK_AND(auto digest, sha1_hex(*file));
  const auto proto = parsed(content(folder / "m.onnx"));
  EXPECT_EQ(value_of(proto.graph().initializer(0), "checksum"), digest);
  EXPECT_EQ(value_of(proto.graph().initializer(0), "location"), "m.onnx.data");
}

TEST(OnnxWriter, MissingDataKeepsItsReference) {
  testing::TemporaryFolder folder;
  Model model = small_model();
  model.graph->add_initializer(bytes_tensor("w", 5000, 'w'));
  ASSERT_OK(write(model, folder / "m.onnx", {.external = ExternalData::always}));
  std::filesystem::rename(folder / "m.onnx.data", folder / "elsewhere");
  ASSERT_OK_AND(auto without, read_onnx(folder / "m.onnx", {.require_external_data = false}));
  ASSERT_OK(write(*without, folder / "n.onnx"));
  std::filesystem::rename(folder / "elsewhere", folder / "m.onnx.data");
  ASSERT_OK_AND(auto with, read_onnx(folder / "n.onnx"));
  EXPECT_EQ(with->graph->find("w")->initializer()->data->size(), 5000u);
  // A new data file of that name would be taken for the missing one.
  without->graph->add_initializer(bytes_tensor("v", 5000, 'v'));
  const auto result = write(*without, folder / "m.onnx", {}, true);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().message.find("tensor w"), std::string::npos);
}

TEST(OnnxWriter, LazyTensorsAreMadeWhenWritten) {
  testing::TemporaryFolder folder;
  Model model = small_model();
  std::vector<float> values(600 * 700);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  ASSERT_OK_AND(auto file, File::open(folder.write("weights", bytes)));
  const Bytes source = file_bytes({file, 0, file->size()});
  model.graph->add_initializer(make_tensor("t", DataType::float32, {700, 600}, transposed(source, 1, 600, 700, 4)));
  for (const ExternalData external : {ExternalData::always, ExternalData::never}) {
    ASSERT_OK(write(model, folder / "m.onnx", {.external = external}, true));
    ASSERT_OK_AND(auto again, read_onnx(folder / "m.onnx"));
    ASSERT_OK_AND(auto numbers, number_values(*again->graph->find("t")->initializer()));
    EXPECT_EQ(numbers[1], 700);
    EXPECT_EQ(numbers[600], 1);
    EXPECT_EQ(numbers.back(), 419999);
  }
}

TEST(OnnxWriter, WhatCannotBeWrittenIsNamed) {
  Model model = small_model();
  model.graph->add_initializer(make_tensor("w", DataType::float32, {2}, nullptr));
  testing::TemporaryFolder folder;
  const auto result = write(model, folder / "m.onnx");
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "tensor w has no data");
  EXPECT_FALSE(std::filesystem::exists(folder / "m.onnx"));
  // The data that cannot be read is named too, and nothing is left behind.
  model.graph->set_initializer(model.graph->find("w"),
                               make_tensor("w", DataType::float32, {2}, computed(8, [](std::span<std::byte>) -> Status {
                                             return fail(ErrorCode::failed, "broken", "source");
                                           })));
  EXPECT_EQ(write(model, folder / "m.onnx").error().message, "broken");
  EXPECT_FALSE(std::filesystem::exists(folder / "m.onnx"));
}

TEST(OnnxWriter, NewInitializersNeedIrVersion4) {
  Model model = small_model();
  model.ir_version = 3;
  ASSERT_OK_AND(auto bytes, serialize_onnx(model));
  EXPECT_EQ(parsed(bytes).ir_version(), 3);
  model.graph->add_initializer(bytes_tensor("w", 4, 'w'));
  ASSERT_OK_AND(bytes, serialize_onnx(model));
  EXPECT_EQ(parsed(bytes).ir_version(), 4);
  model.graph->mark_input(model.graph->find("w"));
  ASSERT_OK_AND(bytes, serialize_onnx(model));
  EXPECT_EQ(parsed(bytes).ir_version(), 3);
}

}  // namespace
}  // namespace mk
