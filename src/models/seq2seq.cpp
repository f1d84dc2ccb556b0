#include "models/seq2seq.h"

#include <fmt/format.h>

#include <algorithm>

#include "nn/ops.h"

namespace mk::models {

using namespace nn;

namespace {

void expect(const Scope& root, bool holds, const std::string& message) {
  if (!holds)
    root.builder().fail({ErrorCode::usage, message, "", "`winml inspect` shows the inputs that the decoder has"});
}

bool fits(const Value& value, int rank, bool integers) {
  return value.rank() == rank &&
         (integers ? value.type() == DataType::int32 || value.type() == DataType::int64 : is_float(value.type()));
}

bool is(const Dim& dim, std::int64_t size) { return !dim.is_known() || dim.value == size; }

bool alike(const Dim& a, const Dim& b) { return !a.is_known() || !b.is_known() || a.value == b.value; }

std::string described(const Value& value) {
  return fmt::format("{} is {}{}", value.ir()->name(), name_of(value.type()), to_string(value.shape()));
}

}  // namespace

StepInputs StepInputs::read(const Scope& root, HeadContext& context) {
  StepInputs in{context.input("decoder_input_ids"),
                context.input("encoder_hidden_states"),
                context.input("attention_mask"),
                context.input("decoder_attention_mask"),
                context.input("cache_position"),
                {},
                {}};
  for (const auto& [value, name] :
       {std::pair{in.input_ids, "decoder_input_ids"}, std::pair{in.encoder_states, "encoder_hidden_states"},
        std::pair{in.attention_mask, "decoder_attention_mask"}})
    expect(root, static_cast<bool>(value), fmt::format("the decoder needs {} among its inputs", name));
  if (!root.builder().ok()) return in;

  expect(root, fits(in.input_ids, 2, true), described(in.input_ids) + ", expected integers [batch, 1]");
  expect(root, fits(in.encoder_states, 3, false), described(in.encoder_states) + ", expected [batch, length, width]");
  expect(root, fits(in.attention_mask, 2, true),
         described(in.attention_mask) + ", expected integers [batch, capacity]");
  if (in.encoder_mask)
    expect(root,
           fits(in.encoder_mask, 2, true) && fits(in.encoder_states, 3, false) &&
               alike(in.encoder_mask.dim(1), in.encoder_states.dim(1)),
           described(in.encoder_mask) + ", expected integers [batch, length] of encoder_hidden_states");
  if (in.position)
    expect(root, fits(in.position, 1, true) && is(in.position.dim(0), 1),
           described(in.position) + ", expected an integer [1]");
  if (root.builder().ok())
    expect(root, in.input_ids.dim(1).is_known() && in.input_ids.dim(1).value == 1,
           described(in.input_ids) + ": the decoder takes one token at a time");
  for (std::size_t layer = 0; root.builder().ok(); ++layer) {
    const Value key = context.input(fmt::format("past_{}_key", layer)),
                value = context.input(fmt::format("past_{}_value", layer));
    if (!key && !value) break;
    in.keys.push_back(key), in.values.push_back(value);
  }
  return in;
}

bool StepInputs::needs_position(const Scope& s) const {
  if (s.builder().ok()) expect(s, static_cast<bool>(position), "the decoder needs cache_position among its inputs");
  return s.builder().ok();
}

StepCache StepInputs::cache(const Scope& s, std::int64_t layers, std::int64_t heads, std::int64_t size) const {
  expect(s, static_cast<std::int64_t>(keys.size()) == layers,
         fmt::format("the inputs have a cache of {} layers, and the decoder has {}", keys.size(), layers));
  for (const auto* list : {&keys, &values}) {
    for (std::size_t layer = 0; layer < list->size() && s.builder().ok(); ++layer) {
      const Value& past = (*list)[layer];
      if (!past) {
        expect(s, false, fmt::format("layer {} has a past key or a past value, not both", layer));
        continue;
      }
      expect(s,
             fits(past, 4, false) && is(past.dim(1), heads) && is(past.dim(3), size) &&
                 alike(past.dim(2), attention_mask.dim(1)),
             fmt::format("{}, expected [batch, {}, capacity, {}] with decoder_attention_mask's capacity",
                         described(past), heads, size));
    }
  }
  StepCache cache{keys, values, {}, {}};
  if (!s.builder().ok()) return cache;
  cache.mask = position ? static_step_mask(s, attention_mask, position) : sliding_step_mask(s, attention_mask);
  return cache;
}

Result<std::vector<InputSpec>> step_input_specs(const InputRequest& request, const StepLimits& limits) {
  if (!request.config.status()) return tl::make_unexpected(request.config.status().error());
  const auto asked = [&](const char* key, std::int64_t otherwise) {
    const auto found = request.shapes.values.find(key);
    return found == request.shapes.values.end() ? otherwise : found->second;
  };
  const std::int64_t batch = request.shapes.batch_size;
  const std::int64_t capacity = asked("max_cache_len", limits.capacity);
  const std::int64_t length = limits.longest_states > 0 ? asked("sequence_length", limits.states) : limits.states;
  const std::string& where = request.config.config().name();
  if (capacity < 1 || (limits.bounded && capacity > limits.capacity))
    return fail(ErrorCode::usage,
                fmt::format("max_cache_len is {}, and the model takes 1 to {}", capacity, limits.capacity), where);
  if (length < 1 || (limits.longest_states > 0 && length > limits.longest_states))
    return fail(ErrorCode::usage,
                fmt::format("sequence_length is {}, and the model takes 1 to {}", length, limits.longest_states),
                where);

  const ValueRange flags{0, 2}, unit{0, 1};
  std::vector<InputSpec> inputs{
      {"decoder_input_ids", DataType::int32, static_shape({batch, 1}),
       ValueRange{0, static_cast<double>(limits.vocabulary)}},
      {"encoder_hidden_states", DataType::float32, static_shape({batch, length, limits.states_width}), unit}};
  if (limits.encoder_mask) inputs.push_back({"attention_mask", DataType::int64, static_shape({batch, length}), flags});
  inputs.push_back({"decoder_attention_mask", DataType::int64, static_shape({batch, capacity}), flags});
  if (!limits.sliding)
    inputs.push_back(
        {"cache_position", DataType::int64, static_shape({1}), ValueRange{0, static_cast<double>(capacity)}});
  const Shape past = static_shape({batch, limits.heads, capacity, limits.size});
  for (std::int64_t layer = 0; layer < limits.layers; ++layer) {
    inputs.push_back({fmt::format("past_{}_key", layer), DataType::float32, past, unit});
    inputs.push_back({fmt::format("past_{}_value", layer), DataType::float32, past, unit});
  }
  return inputs;
}

Outputs step_outputs(Value logits, const StepCache& cache) {
  Outputs outputs{logits};
  outputs.insert(outputs.end(), cache.present.begin(), cache.present.end());
  return outputs;
}

std::vector<std::string_view> pair_inputs() {
  return {"input_ids",      "attention_mask", "decoder_input_ids", "encoder_hidden_states", "decoder_attention_mask",
          "cache_position", "past_{}_key",    "past_{}_value"};
}

std::vector<std::string_view> step_output_names() { return {"logits", "present_{}_key", "present_{}_value"}; }

std::vector<Composite> pair_of(std::vector<std::string_view> tasks, std::string_view suffix, std::string_view encoder) {
  return {{std::move(tasks), {{"encoder", encoder, suffix}, {"decoder", decoder_task, suffix}}}};
}

}  // namespace mk::models
