#include "models/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

TextInputs TextInputs::read(const Scope& root, HeadContext& context) {
  TextInputs in{context.input("input_ids"), context.input("attention_mask"), context.input("token_type_ids"),
                context.input("position_ids")};
  Builder& b = root.builder();
  const int rank = context.task == "multiple-choice" ? 3 : 2;
  if (in.input_ids && in.input_ids.rank() != rank)
    b.fail({ErrorCode::usage,
            fmt::format("input_ids has shape {}, expected {}", to_string(in.input_ids.shape()),
                        rank == 3 ? "[batch, choices, sequence]" : "[batch, sequence]"),
            "", ""});
  if (!in.input_ids)
    b.fail({ErrorCode::usage, fmt::format("{} needs input_ids among its inputs", root.module().class_name), "", ""});
  for (const Value& value : {in.input_ids, in.token_type_ids, in.position_ids})
    if (value && value.type() != DataType::int32 && value.type() != DataType::int64)
      b.fail({ErrorCode::usage,
              fmt::format("{} is {}, expected int32 or int64", value.ir()->name(), name_of(value.type())), "", ""});
  for (const Value& value : {in.attention_mask, in.token_type_ids, in.position_ids}) {
    if (!value) continue;
    bool same = value.rank() == in.input_ids.rank();
    for (int axis = 0; same && axis < value.rank(); ++axis) {
      const Dim a = value.dim(axis), c = in.input_ids.dim(axis);
      same = !a.is_known() || !c.is_known() || a.value == c.value;
    }
    if (!same)
      b.fail({ErrorCode::usage,
              fmt::format("{} has shape {}, expected that of input_ids, {}", value.ir()->name(),
                          to_string(value.shape()), to_string(in.input_ids.shape())),
              "", ""});
  }
  return in;
}

TextInputs TextInputs::flattened(const Scope& s) const {
  const auto rows = [&](Value x) { return x ? flatten(s, x, 2) : x; };
  return {rows(input_ids), rows(attention_mask), rows(token_type_ids), rows(position_ids)};
}

Result<std::vector<InputSpec>> text_input_specs(const InputRequest& request, const TextLimits& limits) {
  constexpr std::int64_t longest_default = 1024, default_choices = 4;
  if (!request.config.status()) return tl::make_unexpected(request.config.status().error());
  if (limits.positions < 1)
    return fail(ErrorCode::malformed, "max_position_embeddings leaves no position for a token",
                request.config.config().name());

  const auto asked = [&](const char* key, std::int64_t otherwise) {
    const auto found = request.shapes.values.find(key);
    return found == request.shapes.values.end() ? otherwise : found->second;
  };
  const std::int64_t length = asked("sequence_length", std::min(limits.positions, longest_default));
  const std::int64_t choices = asked("num_choices", default_choices);
  if (length < 1 || length > limits.positions)
    return fail(ErrorCode::usage,
                fmt::format("sequence_length is {}, and the model takes 1 to {}", length, limits.positions),
                request.config.config().name());
  if (choices < 1) return fail(ErrorCode::usage, fmt::format("num_choices is {}, expected 1 or more", choices));

  Shape shape = static_shape({request.shapes.batch_size, length});
  if (request.task == "multiple-choice") shape.insert(shape.begin() + 1, Dim::known(choices));
  const auto spec = [&](const char* name, std::int64_t values) {
    return InputSpec{name, DataType::int32, shape, ValueRange{0, static_cast<double>(values)}};
  };
  std::vector<InputSpec> inputs{spec("input_ids", limits.vocabulary), spec("attention_mask", 2)};
  if (limits.token_types > 0) inputs.push_back(spec("token_type_ids", limits.token_types));
  return inputs;
}

Value token_positions(const Scope& s, Value input_ids, std::int64_t padding) {
  if (!input_ids) return {};
  const Value is_padding = equal(s, input_ids, s.builder().scalar(input_ids.type(), static_cast<double>(padding)));
  const Value token = cast(s, unary(s, "Not", is_padding), DataType::int32);
  return add(s, mul(s, cumsum(s, token, 1), token), static_cast<double>(padding));
}

Outputs token_logits(const Scope& root, Value hidden, std::int64_t labels) {
  return {linear(root["classifier"], hidden, labels)};
}

Outputs span_logits(const Scope& root, Value hidden, std::int64_t labels) {
  if (labels != 2)
    root.builder().fail(
        {ErrorCode::malformed,
         fmt::format("question answering has a start and an end, and the configuration {} labels", labels),
         "config.json", "Set num_labels to 2"});
  const Value logits = linear(root["qa_outputs"], hidden, labels);
  return {take(root, logits, -1, 0), take(root, logits, -1, 1)};
}

Outputs choice_logits(const Scope& root, Value logits, Value input_ids) {
  if (!logits) return {};
  const Dim choices = input_ids.dim(1);
  if (choices.is_known()) return {reshape(root, logits, {rest, choices.value})};
  const Value sizes = concat(root, {root.builder().integers({rest}), size(root, input_ids, 1)}, 0);
  return {Op(root, "Reshape", {logits, sizes}).out(logits.type(), {input_ids.dim(0), choices})};
}

}  // namespace mk::models
