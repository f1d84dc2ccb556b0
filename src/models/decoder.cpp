#include "models/decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/text.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

const std::vector<std::string_view> decoder_inputs{
    "input_ids",   "attention_mask", "position_ids", "past_key_values.{}.key", "past_key_values.{}.value",
    "past_{}_key", "past_{}_value"};

namespace {

constexpr std::string_view batch_name = "batch_size", length_name = "sequence_length",
                           past_name = "past_sequence_length", total_name = "past_sequence_length + sequence_length";

bool agree(const Dim& a, const Dim& b) { return !a.is_known() || !b.is_known() || a.value == b.value; }

void refuse_shape(const Scope& root, Value value, std::string_view expected) {
  root.builder().fail(
      {ErrorCode::usage,
       fmt::format("{} has shape {}, expected {}", value.ir()->name(), to_string(value.shape()), expected),
       "input_tensors", "Leave its shape to the model, or give it one that fits"});
}

void read_cache(HeadContext& context, Cache& cache, std::string_view key, std::string_view value) {
  for (std::int64_t layer = 0;; ++layer) {
    const Value k = context.input(fmt::format(fmt::runtime(key), layer)),
                v = context.input(fmt::format(fmt::runtime(value), layer));
    if (!k && !v) return;
    cache.keys.push_back(k);
    cache.values.push_back(v);
  }
}

}  // namespace

DecoderInputs DecoderInputs::read(const Scope& root, HeadContext& context) {
  DecoderInputs in;
  in.input_ids = context.input("input_ids");
  in.attention_mask = context.input("attention_mask");
  in.position_ids = context.input("position_ids");
  read_cache(context, in.cache, "past_key_values.{}.key", "past_key_values.{}.value");
  if (in.cache.empty()) {
    read_cache(context, in.cache, "past_{}_key", "past_{}_value");
    in.cache.sliding = !in.cache.empty();
  }
  Builder& b = root.builder();
  if (!in.input_ids) {
    b.fail({ErrorCode::usage, fmt::format("{} needs input_ids among its inputs", root.module().class_name),
            "input_tensors", "Add it"});
    return in;
  }
  for (const Value& value : {in.input_ids, in.attention_mask, in.position_ids}) {
    if (!value) continue;
    if (value.type() != DataType::int32 && value.type() != DataType::int64)
      b.fail({ErrorCode::usage,
              fmt::format("{} is {}, expected int32 or int64", value.ir()->name(), name_of(value.type())),
              "input_tensors", "Change its dtype"});
    if (value.rank() != 2) refuse_shape(root, value, "two axes");
  }
  if (!b.ok()) return in;
  const Value mask = in.attention_mask, positions = in.position_ids;
  if (mask && !agree(mask.dim(0), in.input_ids.dim(0))) refuse_shape(root, mask, "the batch of input_ids");
  if (positions && (!agree(positions.dim(1), in.input_ids.dim(1)) ||
                    (positions.dim(0).value != 1 && !agree(positions.dim(0), in.input_ids.dim(0)))))
    refuse_shape(root, positions, "that of input_ids");
  if (in.cache.empty()) {
    if (mask && !agree(mask.dim(1), in.input_ids.dim(1))) refuse_shape(root, mask, "that of input_ids");
    return in;
  }
  if (!mask) {
    b.fail({ErrorCode::usage, "a graph with a cache needs attention_mask among its inputs", "input_tensors", "Add it"});
    return in;
  }
  in.cache.total = mask.dim(1);
  return in;
}

bool DecoderInputs::has_cache_for(const Scope& s, std::int64_t layers, std::int64_t key_heads,
                                  std::int64_t head_size) const {
  if (cache.empty()) return true;
  Builder& b = s.builder();
  if (static_cast<std::int64_t>(cache.keys.size()) != layers)
    b.fail({ErrorCode::usage, fmt::format("the cache has {} layers, and the model {}", cache.keys.size(), layers),
            "input_tensors", "Give the past of every layer"});
  for (const auto* side : {&cache.keys, &cache.values})
    for (const Value& past : *side) {
      if (!past) {
        b.fail({ErrorCode::usage, "the cache has keys and values in different numbers", "input_tensors",
                "Give the past of every layer"});
        return false;
      }
      const Dim total = cache.sliding ? past.dim(2) : cache.total;
      const bool fits = past.rank() == 4 && is_float(past.type()) && agree(past.dim(0), input_ids.dim(0)) &&
                        agree(past.dim(1), Dim::known(key_heads)) && agree(past.dim(3), Dim::known(head_size)) &&
                        agree(total, cache.total);
      const bool long_enough = !past.dim(2).is_known() || !input_ids.dim(1).is_known() ||
                               (cache.sliding ? past.dim(2).value >= input_ids.dim(1).value
                                              : agree(Dim::known(past.dim(2).value + input_ids.dim(1).value), total));
      if (!fits || !long_enough) refuse_shape(s, past, fmt::format("[batch, {}, past, {}]", key_heads, head_size));
    }
  return b.ok();
}

Value DecoderInputs::positions(const Scope& s) const {
  return position_ids ? position_ids : columns_of(s, input_ids, attention_mask);
}

std::int64_t DecoderInputs::longest() const {
  if (position_ids && !cache.sliding) return 0;  // the user's own
  const Dim columns = attention_mask ? attention_mask.dim(1) : input_ids.dim(1);
  return position_ids || !columns.is_known() ? 0 : columns.value;
}

namespace {

struct Lengths {
  std::int64_t tokens = 0, cache = 0;
};

Result<Lengths> pair_lengths(const InputRequest& request, const DecoderLimits& limits) {
  constexpr std::int64_t prefill_tokens = 64;
  const auto asked = [&](const char* key, std::int64_t otherwise) {
    const auto found = request.shapes.values.find(key);
    return found == request.shapes.values.end() ? otherwise : found->second;
  };
  Lengths lengths;
  lengths.cache = asked("max_cache_len", limits.positions);
  lengths.tokens = request.task == prefill_task
                       ? asked("seq_len", asked("sequence_length", std::min(prefill_tokens, lengths.cache)))
                       : 1;
  const std::string& name = request.config.config().name();
  if (lengths.cache < 1 || (limits.bounded && lengths.cache > limits.positions))
    return fail(ErrorCode::usage,
                fmt::format("max_cache_len is {}, and the model takes 1 to {}", lengths.cache, limits.positions), name);
  if (lengths.tokens < 1 || lengths.tokens > lengths.cache)
    return fail(ErrorCode::usage,
                fmt::format("seq_len is {}, and the cache has {} slots", lengths.tokens, lengths.cache), name,
                "Ask for a shorter step or a longer cache with --shape-config");
  return lengths;
}

std::vector<InputSpec> pair_specs(const InputRequest& request, const DecoderLimits& limits, const Lengths& lengths) {
  const std::int64_t batch = request.shapes.batch_size;
  std::vector<InputSpec> inputs{
      {"input_ids",
       DataType::int32,
       static_shape({batch, lengths.tokens}),
       ValueRange{0, static_cast<double>(limits.vocabulary)},
       {}},
      {"attention_mask", DataType::int64, static_shape({batch, lengths.cache}), ValueRange{0, 2}, {}}};
  if (limits.takes_positions)
    inputs.push_back({"position_ids",
                      DataType::int32,
                      static_shape({1, lengths.tokens}),
                      ValueRange{0, static_cast<double>(limits.positions)},
                      {}});
  for (std::int64_t layer = 0; layer < limits.layers; ++layer)
    for (const char* part : {"key", "value"})
      inputs.push_back({fmt::format("past_{}_{}", layer, part),
                        DataType::float32,
                        static_shape({batch, limits.key_heads, lengths.cache, limits.head_size}),
                        ValueRange{0, 1},
                        {}});
  return inputs;
}

std::vector<InputSpec> with_past_specs(const DecoderLimits& limits) {
  const auto named = [](std::string_view name) { return Dim::symbolic(std::string(name)); };
  const Dim batch = named(batch_name), length = named(length_name), past = named(past_name), total = named(total_name);
  const std::int64_t tokens = std::clamp<std::int64_t>(limits.positions / 2, 1, 8);
  const std::int64_t before = std::clamp<std::int64_t>(limits.positions - tokens, 0, 8);
  std::vector<InputSpec> inputs{
      {"input_ids",
       DataType::int64,
       {batch, length},
       ValueRange{0, static_cast<double>(limits.vocabulary)},
       {1, tokens}},
      {"attention_mask", DataType::int64, {batch, total}, ValueRange{0, 2}, {1, before + tokens}}};
  if (limits.takes_positions)
    inputs.push_back({"position_ids",
                      DataType::int64,
                      {batch, length},
                      ValueRange{0, static_cast<double>(limits.positions)},
                      {1, tokens}});
  for (std::int64_t layer = 0; layer < limits.layers; ++layer)
    for (const char* part : {"key", "value"})
      inputs.push_back({fmt::format("past_key_values.{}.{}", layer, part),
                        DataType::float32,
                        {batch, Dim::known(limits.key_heads), past, Dim::known(limits.head_size)},
                        ValueRange{0, 1},
                        {1, limits.key_heads, before, limits.head_size}});
  return inputs;
}

}  // namespace

Result<std::vector<InputSpec>> decoder_input_specs(const InputRequest& request, const DecoderLimits& limits) {
  if (!request.config.status()) return tl::make_unexpected(request.config.status().error());
  if (request.task == with_past_task) return with_past_specs(limits);
  if (request.head.outputs.size() == 1 || request.head.outputs[1].find("{}") == std::string_view::npos)
    return text_input_specs(request, {limits.vocabulary, limits.positions, 0});
  MK_TRY(const Lengths lengths, pair_lengths(request, limits));
  return pair_specs(request, limits, lengths);
}

std::vector<Head> generation_heads(std::string_view causal, BuildHead build, bool prefill_is_a_task) {
  const std::vector<std::string_view> step{"logits", "present_{}_key", "present_{}_value"};
  return {{with_past_task, causal, {"logits", "present.{}.key", "present.{}.value"}, build},
          {prefill_task, causal, step, build, nullptr, !prefill_is_a_task},
          {generate_task, causal, step, build, nullptr, !prefill_is_a_task}};
}

std::vector<Composite> generation_composites(std::string_view causal) {
  return {{{"text-generation"}, {{"decoder_prefill", prefill_task, causal}, {"decoder_gen", generate_task, causal}}}};
}

Outputs with_cache(Value logits, const Cache& cache) {
  Outputs outputs{logits};
  outputs.insert(outputs.end(), cache.present.begin(), cache.present.end());
  return outputs;
}

}  // namespace mk::models
