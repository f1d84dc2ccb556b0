// Models are made by the onnx library's own protobuf classes, which are the oracle; malformed ones by hand.

#include "graph/onnx_reader.h"

#include <onnx/onnx_pb.h>

#include <cstring>
#include <functional>

#include "graph/onnx_writer.h"
#include "graph/wire_format.h"
#include "testing/testing.h"
#include "testing/warnings.h"

namespace mk {
namespace {

using onnx::AttributeProto;
using onnx::TensorProto;
using testing::Warnings;

onnx::ModelProto small_model() {
  onnx::ModelProto model;
  model.set_ir_version(10);
  auto* opset = model.add_opset_import();
  opset->set_domain("");
  opset->set_version(17);
  model.mutable_graph()->set_name("g");
  return model;
}

void declare(onnx::ValueInfoProto* value, const std::string& name, std::initializer_list<std::int64_t> dims) {
  value->set_name(name);
  auto* type = value->mutable_type()->mutable_tensor_type();
  type->set_elem_type(TensorProto::FLOAT);
  for (const std::int64_t dim : dims) type->mutable_shape()->add_dim()->set_dim_value(dim);
}

onnx::NodeProto* add_node(onnx::GraphProto* graph, const std::string& op, std::vector<std::string> inputs,
                          std::vector<std::string> outputs) {
  auto* node = graph->add_node();
  node->set_op_type(op);
  node->set_name(op + "_" + std::to_string(graph->node_size()));
  for (const auto& input : inputs) node->add_input(input);
  for (const auto& output : outputs) node->add_output(output);
  return node;
}

Result<std::unique_ptr<Model>> read(std::string_view bytes, const ReadOptions& options = {}) {
  return read_onnx(std::as_bytes(std::span(bytes)), {}, options);
}
Result<std::unique_ptr<Model>> read(const onnx::ModelProto& model, const ReadOptions& options = {}) {
  return read(model.SerializeAsString(), options);
}

std::vector<std::uint8_t> bytes_of(const Tensor& tensor) {
  auto bytes = read_all(*tensor.data);
  EXPECT_TRUE(bytes.has_value());
  std::vector<std::uint8_t> result(bytes->size());
  std::memcpy(result.data(), bytes->data(), result.size());
  return result;
}

TEST(OnnxReader, ReadsNodesValuesAndFacts) {
  auto proto = small_model();
  proto.set_producer_name("someone");
  auto* entry = proto.add_metadata_props();
  entry->set_key("k");
  entry->set_value("v");
  auto* graph = proto.mutable_graph();
  declare(graph->add_input(), "x", {2, 3});
  graph->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(0)->set_dim_param("n");
  declare(graph->add_output(), "z", {2, 3});
  declare(graph->add_value_info(), "y", {2, 3});
  graph->mutable_value_info(0)->set_doc_string("middle");
  auto* first = add_node(graph, "Clip", {"x", "", "max"}, {"y"});
  first->set_domain("my.domain");
  add_node(graph, "Softmax", {"y"}, {"z"});
  auto* axis = graph->mutable_node(1)->add_attribute();
  axis->set_name("axis");
  axis->set_type(AttributeProto::INT);
  axis->set_i(-1);
  auto* max = graph->add_initializer();
  max->set_name("max");
  max->set_data_type(TensorProto::FLOAT);
  max->add_float_data(6.0f);

  ASSERT_OK_AND(auto model, read(proto));
  EXPECT_EQ(model->producer_name, "someone");
  EXPECT_EQ(*find(model->metadata, "k"), "v");
  EXPECT_EQ(model->opset(), 17);
  const Graph& g = *model->graph;
  ASSERT_EQ(g.node_count(), 2u);
  const Node& clip = *g.nodes().front();
  EXPECT_EQ(clip.domain, "my.domain");
  EXPECT_EQ(clip.input(1), nullptr);
  EXPECT_EQ(clip.input(2)->initializer()->type, DataType::float32);
  EXPECT_EQ(to_string(g.inputs()[0]->type), "float32[n, 3]");
  EXPECT_EQ(g.find("y")->doc_string, "middle");
  EXPECT_EQ(g.find("y")->producer(), &clip);
  EXPECT_EQ(g.find("y")->uses().front().node, g.nodes().back());
  EXPECT_EQ(g.nodes().back()->integer("axis", 0), -1);
  EXPECT_TRUE(g.find("z")->is_graph_output());
}

// How each type is stored in the typed fields: onnx.proto3, the comments of TensorProto.
struct TypedCase {
  TensorProto::DataType type;
  std::vector<std::int64_t> dims;
  std::vector<std::int32_t> int32s;
  std::vector<std::uint8_t> bytes;
};

TEST(OnnxReader, TypedFieldsBecomePackedBytes) {
  const TypedCase cases[] = {
      {TensorProto::INT8, {3}, {-1, 2, -128}, {0xff, 0x02, 0x80}},
      {TensorProto::UINT8, {2}, {255, 1}, {0xff, 0x01}},
      {TensorProto::BOOL, {2}, {1, 0}, {1, 0}},
      {TensorProto::INT16, {1}, {-2}, {0xfe, 0xff}},
      {TensorProto::UINT16, {1}, {65535}, {0xff, 0xff}},
      {TensorProto::INT32, {1}, {-3}, {0xfd, 0xff, 0xff, 0xff}},
      {TensorProto::FLOAT16, {2}, {0x3c00, 0xbc00}, {0x00, 0x3c, 0x00, 0xbc}},
      {TensorProto::BFLOAT16, {1}, {0x3f80}, {0x80, 0x3f}},
      {TensorProto::FLOAT8E4M3FN, {1}, {0x38}, {0x38}},
      {TensorProto::INT4, {3}, {0x21, 0x0f}, {0x21, 0x0f}},
      {TensorProto::UINT2, {5}, {0xe4, 0x01}, {0xe4, 0x01}},
      // numpy_helper: 1, 8, 63, 31 -> 0x201, little end first, 6 bits each.
      {TensorProto::FLOAT6E2M3, {4}, {1, 8, 63, 31}, {0x01, 0xf2, 0x7f}},
      {TensorProto::FLOAT6E3M2, {2}, {63, 63}, {0xff, 0x0f}},
  };
  for (const TypedCase& c : cases) {
    auto proto = small_model();
    auto* tensor = proto.mutable_graph()->add_initializer();
    tensor->set_name("t");
    tensor->set_data_type(c.type);
    for (const auto dim : c.dims) tensor->add_dims(dim);
    for (const auto value : c.int32s) tensor->add_int32_data(value);
    ASSERT_OK_AND(auto model, read(proto));
    EXPECT_EQ(bytes_of(*model->graph->find("t")->initializer()), c.bytes) << c.type;
  }
}

TEST(OnnxReader, WideTypedFields) {
  auto proto = small_model();
  const auto add = [&](const char* name, TensorProto::DataType type) {
    auto* tensor = proto.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    tensor->add_dims(1);
    return tensor;
  };
  add("i64", TensorProto::INT64)->add_int64_data(-5);
  add("u32", TensorProto::UINT32)->add_uint64_data(0xfffffffe);
  add("u64", TensorProto::UINT64)->add_uint64_data(1ull << 63);
  add("f64", TensorProto::DOUBLE)->add_double_data(0.5);
  auto* complex = add("c64", TensorProto::COMPLEX64);
  complex->add_float_data(1.0f);
  complex->add_float_data(2.0f);
  add("s", TensorProto::STRING)->add_string_data("text");
  add("raw", TensorProto::INT32)->set_raw_data(std::string("\x07\0\0\0", 4));
  auto* empty = add("empty", TensorProto::FLOAT);
  empty->set_dims(0, 0);

  ASSERT_OK_AND(auto model, read(proto));
  const auto tensor = [&](const char* name) { return model->graph->find(name)->initializer(); };
  EXPECT_EQ(*integer_values(*tensor("i64")), std::vector<std::int64_t>{-5});
  EXPECT_EQ(*integer_values(*tensor("u32")), std::vector<std::int64_t>{0xfffffffe});
  EXPECT_EQ(*number_values(*tensor("u64")), std::vector<double>{0x1p63});
  EXPECT_EQ(*number_values(*tensor("f64")), std::vector<double>{0.5});
  EXPECT_EQ(bytes_of(*tensor("c64")), (std::vector<std::uint8_t>{0, 0, 0x80, 0x3f, 0, 0, 0, 0x40}));
  EXPECT_EQ(tensor("s")->strings, std::vector<std::string>{"text"});
  EXPECT_EQ(*integer_values(*tensor("raw")), std::vector<std::int64_t>{7});
  EXPECT_EQ(tensor("empty")->data->size(), 0u);
}

// A model whose one initializer is `tensor` on the wire.
std::string with_tensor(std::string_view tensor) {
  std::string graph;
  append_bytes(graph, 2, "g");
  append_bytes(graph, 5, tensor);
  std::string model = "\x08\x0a";
  append_bytes(model, 7, graph);
  return model;
}

TEST(OnnxReader, UnpackedAndSplitFieldsAreAccepted) {
  // dims packed, data_type 1, float_data once by itself and once packed.
  std::string tensor("\x0a\x02\x01\x02\x10\x01", 6);
  append_bytes(tensor, 8, "t");
  tensor += std::string("\x25\0\0\x80\x3f", 5);
  append_bytes(tensor, 4, std::string_view("\0\0\0\x40", 4));
  ASSERT_OK_AND(auto model, read(with_tensor(tensor)));
  EXPECT_EQ(*number_values(*model->graph->find("t")->initializer()), (std::vector<double>{1, 2}));
}

TEST(OnnxReader, LargeDataStaysInTheFile) {
  auto proto = small_model();
  auto* large = proto.mutable_graph()->add_initializer();
  large->set_name("large");
  large->set_data_type(TensorProto::FLOAT);
  large->add_dims(256);
  std::string bytes(1024, 'x');
  bytes[5] = 'y';
  large->set_raw_data(bytes);
  auto* small = proto.mutable_graph()->add_initializer();
  small->set_name("small");
  small->set_data_type(TensorProto::UINT8);
  small->add_dims(1023);
  small->set_raw_data(std::string(1023, 'z'));
  testing::TemporaryFolder folder;
  ASSERT_OK_AND(auto model, read_onnx(folder.write("m.onnx", proto.SerializeAsString())));
  const Tensor& tensor = *model->graph->find("large")->initializer();
  ASSERT_TRUE(tensor.data->file_range());
  EXPECT_EQ(bytes_of(tensor)[5], 'y');
  EXPECT_TRUE(model->graph->find("small")->initializer()->data->in_memory());
}

// Past what protobuf can hold, and without its payload being read: the file is a hole.
TEST(OnnxReader, ModelsPastTwoGigabytes) {
  constexpr std::uint64_t bytes = 5'000'000'000;
  const auto tag_and_length = [](std::uint32_t field, std::uint64_t length) {
    std::string text;
    append_varint(text, wire_tag(field, Wire::bytes));
    append_varint(text, length);
    return text;
  };
  std::string tensor = "\x08";
  append_varint(tensor, bytes);
  tensor += "\x10\x02";  // uint8
  append_bytes(tensor, 8, "w");
  tensor += tag_and_length(9, bytes);
  const std::uint64_t tensor_bytes = tensor.size() + bytes;
  const std::string initializer = tag_and_length(5, tensor_bytes);
  testing::TemporaryFolder folder;
  const std::string head = "\x08\x0a" + tag_and_length(7, initializer.size() + tensor_bytes) + initializer + tensor;
  const Path path = folder.write("m.onnx", head);
  std::error_code code;
  std::filesystem::resize_file(path, head.size() + bytes, code);
  if (code) GTEST_SKIP() << "no files of this size here: " << code.message();
  ASSERT_OK_AND(auto model, read_onnx(path));
  const Tensor& w = *model->graph->find("w")->initializer();
  ASSERT_TRUE(w.data->file_range());
  EXPECT_EQ(w.data->file_range()->offset, head.size());
  EXPECT_EQ(w.data->size(), bytes);
}

TEST(OnnxReader, SubgraphsCapture) {
  auto proto = small_model();
  auto* graph = proto.mutable_graph();
  declare(graph->add_input(), "x", {2});
  graph->add_input()->set_name("c");
  declare(graph->add_output(), "y", {2});
  auto* node = add_node(graph, "If", {"c"}, {"y"});
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto* attribute = node->add_attribute();
    attribute->set_name(branch);
    attribute->set_type(AttributeProto::GRAPH);
    attribute->mutable_g()->set_name(branch);
    add_node(attribute->mutable_g(), "Neg", {"x"}, {std::string(branch) + "_y"});
    declare(attribute->mutable_g()->add_output(), std::string(branch) + "_y", {2});
  }
  ASSERT_OK_AND(auto model, read(proto));
  const Value* x = model->graph->find("x");
  ASSERT_EQ(x->uses().size(), 2u);
  EXPECT_EQ(x->uses()[0].node->op_type, "Neg");
  EXPECT_EQ(x->uses()[0].node->graph()->parent(), model->graph->nodes().front());
}

TEST(OnnxReader, FunctionsKeepReferencesAndOpsets) {
  auto proto = small_model();
  auto* function = proto.add_functions();
  function->set_name("Scale");
  function->set_domain("local");
  function->add_input("x");
  function->add_output("y");
  function->add_attribute("alpha");
  auto* fallback = function->add_attribute_proto();
  fallback->set_name("beta");
  fallback->set_type(AttributeProto::FLOAT);
  fallback->set_f(0.0f);
  function->add_opset_import()->set_version(13);
  auto* node = function->add_node();
  node->set_op_type("LeakyRelu");
  node->add_input("x");
  node->add_output("y");
  auto* alpha = node->add_attribute();
  alpha->set_name("alpha");
  alpha->set_type(AttributeProto::FLOAT);
  alpha->set_ref_attr_name("alpha");
  ASSERT_OK_AND(auto model, read(proto));
  ASSERT_EQ(model->functions.size(), 1u);
  const Function& read_back = model->functions.front();
  EXPECT_EQ(read_back.opset_imports.front().second, 13);
  EXPECT_EQ(read_back.attribute_names, std::vector<std::string>{"alpha"});
  EXPECT_EQ(std::get<float>(read_back.attribute_defaults.front().value), 0.0f);
  EXPECT_EQ(read_back.body->nodes().front()->attribute("alpha")->reference, "alpha");
}

// onnx.proto allows it, if nobody is known to use it.
TEST(OnnxReader, FunctionsMayHaveGraphsAsDefaults) {
  auto proto = small_model();
  auto* function = proto.add_functions();
  function->set_name("Either");
  function->set_domain("local");
  function->add_output("y");
  function->add_opset_import()->set_version(17);
  auto* one = function->add_node();
  one->set_op_type("Constant");
  one->add_output("y");
  auto* value = one->add_attribute();
  value->set_name("value_float");
  value->set_type(AttributeProto::FLOAT);
  value->set_f(1);
  auto* branch = function->add_attribute_proto();
  branch->set_name("branch");
  branch->set_type(AttributeProto::GRAPH);
  branch->mutable_g()->set_name("inner");
  declare(branch->mutable_g()->add_input(), "x", {2});
  add_node(branch->mutable_g(), "Neg", {"x"}, {"z"});
  declare(branch->mutable_g()->add_output(), "z", {2});
  ASSERT_OK_AND(auto model, read(proto));
  const auto& graph = std::get<std::unique_ptr<Graph>>(model->functions[0].attribute_defaults[0].value);
  EXPECT_EQ(graph->nodes().front()->op_type, "Neg");
  EXPECT_EQ(to_string(graph->outputs()[0]->type), "float32[2]");
  ASSERT_OK_AND(const std::string written, serialize_onnx(*model));
  onnx::ModelProto again;
  ASSERT_TRUE(again.ParseFromString(written));
  EXPECT_EQ(again.functions(0).attribute_proto(0).g().node(0).op_type(), "Neg");
  branch->mutable_g()->mutable_node(0)->set_input(0, "nowhere");
  EXPECT_EQ(read(proto).error().code, ErrorCode::malformed);
}

// No version of ONNX has other fields there: what is dropped is told.
TEST(OnnxReader, UnknownFieldsWithoutAPlaceAreTold) {
  auto proto = small_model();
  proto.mutable_opset_import(0)->mutable_unknown_fields()->append("\x48\x01");  // field 9, varint
  auto* entry = proto.add_metadata_props();
  entry->set_key("k");
  entry->mutable_unknown_fields()->append(std::string("\x4a\x02hi", 4));  // field 9, bytes
  declare(proto.mutable_graph()->add_input(), "x", {2, 3});
  auto* shape = proto.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  for (auto& dim : *shape->mutable_dim()) dim.mutable_unknown_fields()->append("\x48\x01");
  Warnings warnings;
  ASSERT_OK_AND(auto model, read(proto, {.progress = &warnings}));
  EXPECT_EQ(to_string(model->graph->find("x")->type), "float32[2, 3]");
  EXPECT_EQ(
      warnings.messages,
      (std::vector<std::string>{"model in memory: field 9 of a dimension is not known and is left out, 2 times",
                                "model in memory: field 9 of a metadata entry is not known and is left out, 1 times",
                                "model in memory: field 9 of an opset import is not known and is left out, 1 times"}));
}

TEST(OnnxReader, TheInitializerWinsOverTheDeclaredInput) {
  auto proto = small_model();
  declare(proto.mutable_graph()->add_input(), "w", {2});
  auto* tensor = proto.mutable_graph()->add_initializer();
  tensor->set_name("w");
  tensor->set_data_type(TensorProto::FLOAT);
  tensor->add_dims(256);
  tensor->set_raw_data(std::string(1024, '\0'));
  Warnings warnings;
  ASSERT_OK_AND(auto model, read(proto, {.progress = &warnings}));
  EXPECT_EQ(to_string(model->graph->find("w")->type), "float32[256]");
  EXPECT_TRUE(model->graph->find("w")->is_graph_input());
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_NE(warnings.messages[0].find("float32[2]"), std::string::npos);
}

TEST(OnnxReader, NegativeDimensionsAreUnknown) {
  auto proto = small_model();
  declare(proto.mutable_graph()->add_input(), "x", {-1, 4});
  ASSERT_OK_AND(auto model, read(proto));
  EXPECT_EQ(to_string(model->graph->find("x")->type), "float32[?, 4]");
}

TEST(OnnxReader, UnsortedNodesAreSortedAndCyclesNamed) {
  auto proto = small_model();
  auto* graph = proto.mutable_graph();
  declare(graph->add_input(), "x", {2});
  add_node(graph, "Neg", {"y"}, {"z"});
  add_node(graph, "Abs", {"x"}, {"y"});
  Warnings warnings;
  ASSERT_OK_AND(auto model, read(proto, {.progress = &warnings}));
  EXPECT_EQ(model->graph->nodes().front()->op_type, "Abs");
  EXPECT_EQ(warnings.messages.size(), 1u);
  graph->mutable_node(1)->set_input(0, "z");
  const auto cyclic = read(proto);
  ASSERT_FALSE(cyclic.has_value());
  EXPECT_NE(cyclic.error().to_string().find("cycle"), std::string::npos);
}

// What each kind of damage is called, and that it is called by name.
struct Damage {
  const char* what;
  std::function<void(onnx::ModelProto&)> inflict;
  const char* expected;
};

TEST(OnnxReader, DamageIsNamed) {
  const auto tensor = [](onnx::ModelProto& m) {
    auto* t = m.mutable_graph()->add_initializer();
    t->set_name("w");
    t->set_data_type(TensorProto::FLOAT);
    return t;
  };
  const Damage cases[] = {
      {"undefined input", [](auto& m) { add_node(m.mutable_graph(), "Neg", {"nowhere"}, {"q"}); },
       "nowhere is not defined by any node, input or initializer (model in memory, node Neg_2)"},
      {"two producers", [](auto& m) { add_node(m.mutable_graph(), "Neg", {"x"}, {"y"}); },
       "y is defined twice (model in memory, node Neg_2)"},
      {"undefined output", [](auto& m) { declare(m.mutable_graph()->add_output(), "q", {1}); }, "its output \"q\""},
      {"two inputs", [](auto& m) { declare(m.mutable_graph()->add_input(), "x", {1}); }, "two graph inputs named x"},
      {"two initializers",
       [&](auto& m) {
         tensor(m)->add_float_data(1);
         tensor(m)->add_float_data(1);
       },
       "two initializers named w"},
      {"no data", [&](auto& m) { tensor(m); }, "no data (byte"},
      {"short data", [&](auto& m) { tensor(m)->set_raw_data("abc"); }, "3 bytes of data where the shape says 4 (byte"},
      {"two kinds of data",
       [&](auto& m) {
         auto* t = tensor(m);
         t->add_float_data(1);
         t->set_raw_data("abcd");
       },
       "more than one field"},
      {"wrong field", [&](auto& m) { tensor(m)->add_int32_data(1); }, "float32 data in the field of another type"},
      {"unknown type",
       [&](auto& m) {
         auto* t = tensor(m);
         t->mutable_unknown_fields()->append("\x10\x63");
       },
       "element type 99"},
      {"negative dim", [&](auto& m) { tensor(m)->add_dims(-2); }, "a dimension of -2"},
      {"overflow",
       [&](auto& m) {
         auto* t = tensor(m);
         for (int i = 0; i < 3; ++i) t->add_dims(1ll << 40);
       },
       "product passes 64 bits"},
      {"attribute twice",
       [](auto& m) {
         for (int i = 0; i < 2; ++i) {
           auto* a = m.mutable_graph()->mutable_node(0)->add_attribute();
           a->set_name("alpha");
           a->set_type(AttributeProto::INT);
         }
       },
       "alpha is there twice (model in memory, node Neg_1)"},
      {"attribute of another type",
       [](auto& m) {
         auto* a = m.mutable_graph()->mutable_node(0)->add_attribute();
         a->set_name("alpha");
         a->set_type(AttributeProto::INT);
         a->set_f(1);
       },
       "the type is INT but the value a FLOAT"},
      {"old", [](auto& m) { m.set_ir_version(2); }, "IR version 2 is too old"},
      {"no version", [](auto& m) { m.clear_ir_version(); }, "no IR version"},
  };
  for (const Damage& damage : cases) {
    auto proto = small_model();
    declare(proto.mutable_graph()->add_input(), "x", {2});
    add_node(proto.mutable_graph(), "Neg", {"x"}, {"y"});
    damage.inflict(proto);
    const auto model = read(proto);
    ASSERT_FALSE(model.has_value()) << damage.what;
    EXPECT_NE(model.error().to_string().find(damage.expected), std::string::npos)
        << damage.what << ": " << model.error().to_string();
  }
}

TEST(OnnxReader, EveryTruncationIsAnError) {
  auto proto = small_model();
  auto* graph = proto.mutable_graph();
  declare(graph->add_input(), "x", {2, 3});
  auto* node = add_node(graph, "Softmax", {"x"}, {"y"});
  auto* axis = node->add_attribute();
  axis->set_name("axis");
  axis->set_type(AttributeProto::INT);
  axis->set_i(-1);
  declare(graph->add_output(), "y", {2, 3});
  auto* w = graph->add_initializer();
  w->set_name("w");
  w->set_data_type(TensorProto::DOUBLE);
  w->add_double_data(1);
  const std::string whole = proto.SerializeAsString();
  ASSERT_OK(read(whole));
  testing::TemporaryFolder folder;
  int accepted = 0;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const bool from_memory = read(whole.substr(0, length)).has_value();
    EXPECT_EQ(read_onnx(folder.write("m.onnx", whole.substr(0, length))).has_value(), from_memory) << length;
    accepted += from_memory ? 1 : 0;
  }
  // The opset import is the last field; without it, the file is a model too.
  EXPECT_LE(accepted, 1);
}

TEST(OnnxReader, HostileLengthsAndDepth) {
  EXPECT_NE(read(std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10)).error().to_string().find("length"),
            std::string::npos);
  EXPECT_FALSE(read(std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12)).has_value());
  EXPECT_FALSE(read(std::string("\x07", 1)).has_value());
  // Graphs in graphs, a thousand deep.
  std::string graph;
  for (int depth = 0; depth < 1000; ++depth) {
    std::string attribute;
    append_bytes(attribute, 6, graph);
    std::string node;
    append_bytes(node, 5, attribute);
    graph.clear();
    append_bytes(graph, 1, node);
  }
  std::string model = "\x08\x0a";
  append_bytes(model, 7, graph);
  const auto result = read(model);
  ASSERT_FALSE(result.has_value());
  EXPECT_NE(result.error().to_string().find("nested more than"), std::string::npos);
}

TEST(OnnxReader, OtherFilesAreRecognised) {
  testing::TemporaryFolder folder;
  const auto message = [&](std::string_view content) {
    const auto model = read_onnx(folder.write("m.onnx", content));
    return model ? std::string() : model.error().to_string();
  };
  EXPECT_NE(message("version https://git-lfs.github.com/spec/v1\noid sha256:1\n").find("Run git lfs pull"),
            std::string::npos);
  EXPECT_NE(message("").find("empty"), std::string::npos);
  EXPECT_NE(message("<!DOCTYPE html>").find("web page"), std::string::npos);
  EXPECT_NE(message("just text").find("Is it an ONNX file"), std::string::npos);
  EXPECT_EQ(read_onnx(folder / "nothing").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace mk
