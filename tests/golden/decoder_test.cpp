// Golden cases of decoders: the open graph with an empty past and for the token after it, and the pair of static graphs
// over a cache that slides, give what PyTorch gives.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "golden_case.h"
#include "graph/verifier.h"
#include "testing/testing.h"

namespace mk::golden {
namespace {

using Inputs = std::map<std::string, HostTensor>;

class DecoderTest : public ::testing::TestWithParam<Path> {
 protected:
  void SetUp() override {
    ASSERT_OK_AND(case_, read_case(GetParam()));
    generates_ = case_.task == "text-generation-with-past";
    if (!generates_) return;
    step_inputs_ = by_name("step_inputs.safetensors");
    step_logits_ = by_name("step_outputs.safetensors").at("logits");
  }

  Inputs by_name(const char* file) {
    Inputs result;
    auto tensors = read_tensors(case_.folder / file);
    EXPECT_TRUE(tensors);
    if (tensors)
      for (HostTensor& tensor : *tensors) result[tensor.name] = tensor;
    return result;
  }

  // A graph of a head with the architecture's own inputs; shapes as asked for.
  Result<BuiltGraph> own_graph(const HeadChoice& head, const ShapeRequest& shapes, BuildOptions options = {}) {
    MK_TRY(const ModelConfig config, ModelConfig::read(case_.folder));
    MK_TRY(const Checkpoint checkpoint, Checkpoint::open(case_.folder));
    MK_TRY(const auto inputs, default_inputs(config, head, shapes));
    return build_graph(config, head, checkpoint, inputs, options);
  }

  // What the graph takes of these, in its types; zeros of no or of the given length where it is a past that they lack.
  static std::vector<HostTensor> fitting(const Model& model, const Inputs& have, std::int64_t batch) {
    std::vector<HostTensor> result;
    for (const Value* input : model.graph->inputs()) {
      const auto found = have.find(input->name());
      if (found != have.end()) {
        auto tensor = converted(found->second, input->type.element);
        EXPECT_TRUE(tensor) << input->name();
        if (tensor) result.push_back(*tensor);
        result.back().name = input->name();
        continue;
      }
      const Shape& shape = *input->type.shape;
      std::vector<std::int64_t> dims{batch, shape[1].value, std::max<std::int64_t>(0, shape[2].value), shape[3].value};
      const auto size = static_cast<std::size_t>(dims[0] * dims[1] * dims[2] * dims[3]) * sizeof(float);
      result.push_back({input->name(), DataType::float32, dims, std::vector<std::byte>(size), {}});
    }
    return result;
  }

  // Logits where the mask has tokens: those of the padding are nobody's.
  void expect_logits(HostTensor got, HostTensor want, const HostTensor* mask, double looser = 1) const {
    if (mask && got.dims == want.dims) {
      const auto width = static_cast<std::size_t>(got.dims[2]);
      for (std::size_t row = 0; row < mask->values<std::int32_t>().size(); ++row)
        if (mask->values<std::int32_t>()[row] == 0)
          std::memcpy(got.data.data() + row * width * sizeof(float), want.data.data() + row * width * sizeof(float),
                      width * sizeof(float));
    }
    EXPECT_EQ(difference(got, want, looser * case_.atol, looser * case_.rtol), "");
  }

  const HostTensor& input(std::string_view name) const {
    return *std::find_if(case_.inputs.begin(), case_.inputs.end(), [&](const auto& one) { return one.name == name; });
  }
  Inputs first_inputs() const {
    Inputs result;
    for (const HostTensor& one : case_.inputs) result[one.name] = one;
    return result;
  }

  HeadChoice with_past() const {
    const ModelConfig config = ModelConfig::read(case_.folder).value();
    return choose_head(config, case_.task).value();
  }

  void expect_both_steps(const BuildOptions& options, double looser = 1) {
    ASSERT_OK_AND(const BuiltGraph built, own_graph(with_past(), {}, options));
    ASSERT_OK(verify(*built.model));
    ASSERT_OK(check_onnx(*built.model));
    ASSERT_OK_AND(const auto first, run(*built.model, fitting(*built.model, first_inputs(), 2)));
    expect_logits(first.at("logits"), case_.outputs.front(), &input("attention_mask"), looser);
    ASSERT_OK_AND(const auto second, run(*built.model, fitting(*built.model, step_inputs_, 2)));
    expect_logits(second.at("logits"), step_logits_, nullptr, looser);
  }

  Case case_;
  bool generates_ = false;
  Inputs step_inputs_;
  HostTensor step_logits_;
};

std::string test_name(const ::testing::TestParamInfo<Path>& info) {
  std::string name = to_utf8(info.param.filename());
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

TEST_P(DecoderTest, ResultsArePyTorchs) {
  if (generates_) return expect_both_steps({});
  ASSERT_OK_AND(const BuiltGraph built, build(case_));
  ASSERT_OK(verify(*built.model));
  ASSERT_OK(check_onnx(*built.model));
  ASSERT_OK_AND(const auto got, run(*built.model, case_.inputs));
  for (const HostTensor& want : case_.outputs) {
    ASSERT_TRUE(got.contains(want.name)) << want.name;
    if (want.name == "last_hidden_state")
      expect_logits(got.at(want.name), want, &input("attention_mask"));
    else
      EXPECT_EQ(difference(got.at(want.name), want, case_.atol, case_.rtol), "");
  }
}

TEST_P(DecoderTest, OldAndNewOpsetsGiveTheSame) {
  if (!generates_) return;
  for (const std::int64_t opset : {13, 23}) expect_both_steps({.opset = opset});
}

TEST_P(DecoderTest, HalfPrecisionIsClose) {
  if (generates_) expect_both_steps({.float_type = DataType::float16}, 100);
}

TEST_P(DecoderTest, TagsAreTheModuleTrees) {
  ASSERT_OK_AND(const BuiltGraph built, generates_ ? own_graph(with_past(), {}) : build(case_));
  for (const Node* node : built.model->graph->nodes()) {
    const std::string* tag = find(node->metadata, "winml.hierarchy.tag");
    ASSERT_TRUE(tag) << node->name;
    EXPECT_NE(std::count(case_.tags.begin(), case_.tags.end(), *tag), 0) << node->name << " has " << *tag;
  }
  EXPECT_TRUE(built.unused.empty()) << built.unused.front();
}

// The first tokens by the graph for many, the next by the one for one, over a cache of four slots to spare.
TEST_P(DecoderTest, ThePairGivesTheSame) {
  if (!generates_) return;
  const auto choices = composites(with_past().model_type);
  ASSERT_EQ(choices.size(), 1U);
  ASSERT_EQ(choices[0].components.size(), 2U);
  EXPECT_EQ(choices[0].components[0].name, "decoder_prefill");
  EXPECT_EQ(choices[0].components[1].name, "decoder_gen");
  const std::int64_t length = input("input_ids").dims[1], slots = std::min<std::int64_t>(length + 4, 16);
  if (length > 12) return;  // beyond what the model has positions for
  const ShapeRequest shapes{.batch_size = 1, .values = {{"seq_len", length}, {"max_cache_len", slots}}};
  ASSERT_OK_AND(const BuiltGraph prefill, own_graph(choices[0].components[0].head, shapes));
  ASSERT_OK_AND(const BuiltGraph next, own_graph(choices[0].components[1].head, shapes));
  for (const BuiltGraph* built : {&prefill, &next}) {
    ASSERT_OK(check_onnx(*built->model));
    for (const Node* node : built->model->graph->nodes()) EXPECT_NE(node->op_type, "Shape") << node->name;
  }

  // The first sequence has no padding; the last `filled` slots are taken.
  const auto mask_of = [&](std::int64_t filled) {
    std::vector<std::int64_t> mask(static_cast<std::size_t>(slots));
    std::fill(mask.end() - filled, mask.end(), 1);
    const auto bytes = std::as_bytes(std::span(mask));
    return HostTensor{"attention_mask", DataType::int64, {1, slots}, {bytes.begin(), bytes.end()}, {}};
  };
  const auto first_row = [](HostTensor tensor) {
    tensor.data.resize(tensor.data.size() / static_cast<std::size_t>(tensor.dims[0]));
    tensor.dims[0] = 1;
    return tensor;
  };
  Inputs have;
  for (const HostTensor& one : case_.inputs) have[one.name] = first_row(one);
  have["attention_mask"] = mask_of(length);
  ASSERT_OK_AND(auto first, run(*prefill.model, fitting(*prefill.model, have, 1)));
  expect_logits(first.at("logits"), first_row(case_.outputs.front()), nullptr);

  Inputs then;
  for (const auto& [name, tensor] : step_inputs_) then[name] = first_row(tensor);
  then["attention_mask"] = mask_of(length + 1);
  for (const HostTensor& past : fitting(*next.model, then, 1)) {
    if (!past.name.starts_with("past_")) continue;
    HostTensor filled = past;
    const HostTensor& fresh = first.at("present_" + past.name.substr(5));
    const std::size_t head = static_cast<std::size_t>(slots * past.dims[3]) * sizeof(float);
    const std::size_t part = static_cast<std::size_t>(length * past.dims[3]) * sizeof(float);
    for (std::size_t h = 0; h < static_cast<std::size_t>(past.dims[1]); ++h)
      std::memcpy(filled.data.data() + (h + 1) * head - part, fresh.data.data() + h * part, part);
    then[past.name] = filled;
  }
  ASSERT_OK_AND(const auto second, run(*next.model, fitting(*next.model, then, 1)));
  expect_logits(second.at("logits"), first_row(step_logits_), nullptr);
  EXPECT_EQ(second.at("present_0_key").dims[2], 1);
}

INSTANTIATE_TEST_SUITE_P(Cases, DecoderTest, ::testing::ValuesIn(case_folders("decoder_cases")), test_name);

std::string refusal(const std::string& fields) {
  const std::string text = R"({"model_type": "llama", "num_hidden_layers": 1, )" + fields + "}";
  const auto config = ModelConfig::parse(text, "config.json");
  if (!config) return config.error().message;
  const auto head = choose_head(*config, "text-generation-with-past");
  const auto inputs = default_inputs(*config, *head, {});
  return inputs ? "none" : inputs.error().message;
}

TEST(DecoderConfigTest, WhatCannotBeBuiltIsNamed) {
  EXPECT_EQ(refusal(R"("num_attention_heads": 6, "num_key_value_heads": 4)"),
            "num_attention_heads 6 is not a multiple of num_key_value_heads 4");
  EXPECT_EQ(refusal(R"("rope_scaling": {"rope_type": "spiral"})"), "rope_scaling has the kind \"spiral\"");
  EXPECT_EQ(refusal(R"("rope_scaling": {"rope_type": "linear"})"), "rope_scaling has no factor above 0");
  EXPECT_EQ(refusal(R"("head_dim": 7)"), "heads of 7 cannot rotate in 7 dimensions with rope_theta 10000");
  EXPECT_EQ(refusal(R"("rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1]})"),
            "rope_scaling has 1 numbers in long_factor, expected 64");
}

}  // namespace
}  // namespace mk::golden
