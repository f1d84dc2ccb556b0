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
#include "published_models.h"
#include "runtime/session.h"
#include "testing/testing.h"

namespace mk {
namespace {

using onnx::TensorProto;

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

class RealModel : public ::testing::TestWithParam<PublishedModel> {};

TEST_P(RealModel, SurvivesReadingAndWriting) {
  const PublishedModel& c = GetParam();
  const Path path = c.path();
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

INSTANTIATE_TEST_SUITE_P(Packages, RealModel, ::testing::ValuesIn(published_models()), title_of);

}  // namespace
}  // namespace mk
