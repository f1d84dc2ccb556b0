// Encoders with a decoder, as the pair of graphs that they are exported as: decoded token by token over the cache, the
// logits are PyTorch's of all tokens at once.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "golden_case.h"
#include "graph/verifier.h"
#include "testing/testing.h"

namespace mk::golden {
namespace {

using Tensors = std::map<std::string, HostTensor>;

struct Graph {
  std::vector<InputSpec> inputs;
  BuiltGraph built;
};

Result<Graph> graph_of(const Case& c, const ModelConfig& config, const HeadChoice& head, const ShapeRequest& shapes,
                       std::int64_t opset) {
  MK_TRY(const Checkpoint checkpoint, Checkpoint::open(c.folder));
  Graph graph;
  MK_TRY(graph.inputs, default_inputs(config, head, shapes));
  BuildOptions options;
  options.opset = opset;
  MK_TRY(graph.built, build_graph(config, head, checkpoint, graph.inputs, options));
  return graph;
}

Result<Tensors> run(const Graph& graph, const Tensors& have) {
  std::vector<HostTensor> inputs;
  for (const InputSpec& spec : graph.inputs) {
    const auto found = have.find(spec.name);
    if (found == have.end()) return fail(ErrorCode::failed, "the case has no " + spec.name);
    MK_TRY(HostTensor tensor, converted(found->second, spec.type));
    inputs.push_back(std::move(tensor));
  }
  return golden::run(*graph.built.model, inputs);
}

// [batch, steps, ...] -> [batch, 1, ...] of one step.
HostTensor step_of(const HostTensor& all, std::int64_t step) {
  HostTensor one = all;
  one.dims[1] = 1;
  const auto steps = static_cast<std::size_t>(all.dims[1]), batch = static_cast<std::size_t>(all.dims[0]);
  const std::size_t bytes = all.data.size() / (steps * batch);
  one.data.resize(bytes * batch);
  for (std::size_t row = 0; row < batch; ++row)
    std::memcpy(one.data.data() + row * bytes, all.data.data() + (row * steps + static_cast<std::size_t>(step)) * bytes,
                bytes);
  return one;
}

// Puts the slot [batch, heads, 1, size] into the cache: at its place, or last where the cache slides.
void remember(HostTensor& past, const HostTensor& slot, std::int64_t step, bool slides) {
  const auto size = static_cast<std::size_t>(past.dims[3]), capacity = static_cast<std::size_t>(past.dims[2]);
  const std::size_t at = slides ? capacity - 1 : static_cast<std::size_t>(step);
  const auto from = slot.values<float>();
  const auto to = past.values<float>();
  for (std::size_t row = 0; row < from.size() / size; ++row) {
    float* const slots = to.data() + row * capacity * size;
    if (slides) std::memmove(slots, slots + size, (capacity - 1) * size * sizeof(float));
    std::memcpy(slots + at * size, from.data() + row * size, size * sizeof(float));
  }
}

HostTensor mask_of(std::int64_t batch, std::int64_t capacity, std::int64_t step, bool slides) {
  std::vector<std::int64_t> ones(static_cast<std::size_t>(batch * capacity));
  for (std::int64_t row = 0; row < batch; ++row)
    for (std::int64_t slot = 0; slot < capacity; ++slot)
      ones[static_cast<std::size_t>(row * capacity + slot)] = slides ? slot >= capacity - step - 1 : slot <= step;
  return host_tensor<std::int64_t>("decoder_attention_mask", DataType::int64, {batch, capacity}, ones);
}

class PairTest : public ::testing::TestWithParam<Path> {
 protected:
  void expect_pytorchs(std::int64_t opset) {
    ASSERT_OK_AND(const Case c, read_case(GetParam()));
    ASSERT_OK_AND(const ModelConfig config, ModelConfig::read(c.folder));
    const std::vector<CompositeChoice> pairs = composites(config.model_type());
    ASSERT_FALSE(pairs.empty());
    ASSERT_EQ(pairs.front().components.size(), 2u);

    Tensors have;
    for (const HostTensor& input : c.inputs) have[input.name] = input;
    if (!have.contains("decoder_input_ids")) {
      have["decoder_input_ids"] = have.at("input_ids");
      have["decoder_input_ids"].name = "decoder_input_ids";
      have.erase("input_ids");
    }
    const HostTensor ids = have.at("decoder_input_ids");
    const std::int64_t batch = ids.dims[0];
    ShapeRequest shapes{.batch_size = batch, .values = {}};
    if (have.contains("input_ids")) shapes.values["sequence_length"] = have.at("input_ids").dims[1];

    const auto& parts = pairs.front().components;
    ASSERT_OK_AND(const Graph encoder, graph_of(c, config, parts[0].head, shapes, opset));
    ASSERT_OK_AND(const Graph decoder, graph_of(c, config, parts[1].head, shapes, opset));
    ASSERT_OK(check_onnx(*encoder.built.model));
    ASSERT_OK(check_onnx(*decoder.built.model));
    ASSERT_OK_AND(Tensors states, run(encoder, have));
    have["encoder_hidden_states"] = states.at("encoder_hidden_states");

    bool slides = true;
    std::int64_t capacity = 0;
    for (const InputSpec& input : decoder.inputs) {
      slides &= input.name != "cache_position";
      if (!input.name.starts_with("past_")) continue;
      capacity = input.shape[2].value;
      std::vector<std::int64_t> dims;
      for (const Dim& dim : input.shape) dims.push_back(dim.value);
      ASSERT_OK_AND(have[input.name], zero_tensor(input.name, input.type, dims));
    }
    const auto want =
        std::find_if(c.outputs.begin(), c.outputs.end(), [](const auto& o) { return o.name == "logits"; });
    ASSERT_NE(want, c.outputs.end());
    for (std::int64_t step = 0; step < ids.dims[1]; ++step) {
      have["decoder_input_ids"] = step_of(ids, step);
      have["decoder_attention_mask"] = mask_of(batch, capacity, step, slides);
      have["cache_position"] = host_tensor<std::int64_t>("cache_position", DataType::int64, {1}, std::vector{step});
      ASSERT_OK_AND(const Tensors got, run(decoder, have));
      EXPECT_EQ(difference(got.at("logits"), step_of(*want, step), c.atol, c.rtol), "") << "step " << step;
      for (auto& [name, past] : have)
        if (name.starts_with("past_")) remember(past, got.at("present_" + name.substr(5)), step, slides);
    }
  }
};

TEST_P(PairTest, StepsAreTheWhole) { expect_pytorchs(17); }
TEST_P(PairTest, StepsAreTheWholeAtAnOldOpset) { expect_pytorchs(13); }

std::string test_name(const ::testing::TestParamInfo<Path>& info) {
  std::string name = to_utf8(info.param.filename());
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Pairs, PairTest, ::testing::ValuesIn(case_folders("pair_cases")), test_name);

}  // namespace
}  // namespace mk::golden
