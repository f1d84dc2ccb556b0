// A head's function, run over a checkpoint: inputs before it, outputs and the account of weights after it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "models/families.h"
#include "nn/ops.h"

namespace mk {
namespace {

using models::Chosen;
using models::ConfigReader;
using models::HeadContext;

// Of the operators that the building blocks emit: below 13 axes are attributes of more of them.
constexpr std::int64_t oldest_opset = 13, newest_opset = 28;

Status check_options(const BuildOptions& options, DataType float_type) {
  if (options.opset < oldest_opset || options.opset > newest_opset)
    return fail(ErrorCode::usage, fmt::format("opset {} is not one that can be exported", options.opset),
                "opset_version", fmt::format("Opsets {} to {} can", oldest_opset, newest_opset));
  switch (float_type) {
    case DataType::float32:
    case DataType::float16:
    case DataType::bfloat16:
      return {};
    default:
      return fail(ErrorCode::usage, fmt::format("weights cannot be exported as {}", name_of(float_type)), "",
                  "They can as float32, float16 and bfloat16");
  }
}

// More elements than any memory has, so that sizes computed from it stay within int64.
bool is_too_large(const Shape& shape) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  std::int64_t elements = 1;
  for (const Dim& dim : shape) {
    if (dim.value > most / elements) return true;
    if (dim.value > 0) elements *= dim.value;
  }
  return false;
}

Status add_inputs(nn::Builder& builder, const nn::Scope& root, HeadContext& context,
                  std::span<const InputSpec> inputs) {
  const auto& known = context.family.inputs;
  for (const InputSpec& input : inputs) {
    if (std::none_of(known.begin(), known.end(),
                     [&](std::string_view pattern) { return models::matches(pattern, input.name); }))
      return fail(ErrorCode::usage, fmt::format("{} has no input {}", root.module().class_name, input.name), "",
                  fmt::format("Its inputs are {}", fmt::join(known, ", ")));
    if (context.inputs.contains(input.name))
      return fail(ErrorCode::usage, fmt::format("the input {} is there twice", input.name), "input_tensors",
                  "Name each input once");
    if (is_too_large(input.shape))
      return fail(ErrorCode::usage, fmt::format("the input {} is too large: {}", input.name, to_string(input.shape)),
                  "input_tensors", "Choose a smaller batch or smaller shapes");
    for (const Dim& dim : input.shape)
      if (dim.value == 0 || (!dim.is_known() && !dim.is_symbolic()))
        return fail(ErrorCode::usage, fmt::format("the input {} has shape {}", input.name, to_string(input.shape)), "",
                    "Give each axis a size of 1 or more, or a name where it is dynamic");
    context.inputs[input.name] = builder.input(input.name, input.type, input.shape);
  }
  for (auto& [name, value] : context.inputs)
    if (is_float(value.type())) value = nn::cast(root, value, builder.float_type());
  return {};
}

// "config.json says hidden_size 384": the field that an expected size comes from, where one differs.
std::string field_of(const nn::Weights& weights, const ModelConfig& config) {
  const auto mismatch = weights.first_mismatch();
  if (!mismatch) return {};
  for (std::size_t axis = 0; axis < mismatch->expected.size(); ++axis) {
    const std::int64_t expected = mismatch->expected[axis];
    if (axis < mismatch->found.size() && mismatch->found[axis] == expected) continue;
    for (const auto& [key, value] : config.json().items())
      if (value.is_number_integer() && value == expected && !key.ends_with("_id"))
        return fmt::format("{} says {} {}; ", config.name(), key, expected);
  }
  return {};
}

// What to do about weights that are missing or misshapen.
std::string advice(const nn::Weights& weights, const ModelConfig& config, const Chosen& found) {
  const std::string base = std::string(found.family->prefix) + ".";
  const bool no_head = !found.head->is_base() && !weights.missing().empty() && !weights.first_mismatch() &&
                       std::none_of(weights.missing().begin(), weights.missing().end(),
                                    [&](const std::string& name) { return name.starts_with(base); });
  if (no_head)
    return fmt::format("The checkpoint has no head for {}; it can be exported for {}", found.head->task,
                       found.family->heads.front().task);
  return field_of(weights, config) + "is the checkpoint of another model? `winml inspect -m DIR` lists its tensors";
}

}  // namespace

nn::Value models::HeadContext::input(std::string_view name) const {
  const auto found = inputs.find(name);
  return found == inputs.end() ? nn::Value() : found->second;
}

Result<BuiltGraph> build_graph(const ModelConfig& config, const HeadChoice& choice, const Checkpoint& checkpoint,
                               std::span<const InputSpec> inputs, const BuildOptions& options) {
  const DataType float_type = options.float_type.value_or(DataType::float32);
  MK_CHECK(check_options(options, float_type));
  MK_TRY(const Chosen found, models::find_head(config, choice));

  BuiltGraph built;
  built.model = std::make_unique<Model>();
  built.model->set_opset("", options.opset);
  built.model->graph->name = choice.class_name;
  nn::Weights weights(checkpoint, float_type, found.family->prefix, found.head->is_base());
  if (options.assume_weights) weights.assume_missing();
  nn::Builder builder(*built.model->graph, weights,
                      {options.opset, options.hierarchy_tags, float_type, options.keep_quantized, options.mask_value});
  const nn::Scope root = builder.root(choice.class_name);
  HeadContext context{*found.family, choice.task, ConfigReader(config), {}};
  MK_CHECK(add_inputs(builder, root, context, inputs));

  const models::Outputs outputs = found.head->build(root, context);
  if (Status status = builder.status(); !status) {
    Error error = std::move(status).error();
    if (error.code == ErrorCode::malformed && error.hint.empty()) error.hint = advice(weights, config, found);
    return tl::make_unexpected(std::move(error));
  }
  if (options.progress != nullptr) {
    MK_TRY(const auto ties, weights.ties_that_differ());
    for (const auto& [name, original] : ties)
      options.progress->warn(fmt::format(
          "{} differs from {} in the checkpoint, but the configuration ties them: {} is used for both, as transformers "
          "does. Where that is wrong, set tie_word_embeddings to false in {}",
          name, original, original, config.name()));
  }
  MK_TRY(const std::vector<std::string> names, output_names(config, choice));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const nn::Value output = is_float(outputs[i].type()) ? nn::cast(root, outputs[i], DataType::float32) : outputs[i];
    builder.output(output, names[i]);
  }

  for (const nn::Module& module : builder.modules())
    built.modules.push_back({module.path, module.class_name, module.plain ? std::string() : module.tag, module.plain});
  const auto is_contributed = [](const Node* node) { return node->domain == "com.microsoft"; };
  const auto& nodes = built.model->graph->nodes();
  if (options.keep_quantized && std::any_of(nodes.begin(), nodes.end(), is_contributed))
    built.model->set_opset("com.microsoft", 1);
  built.unused = weights.unused();
  built.tied = weights.tied();
  built.parameter_count = weights.parameter_count();
  return built;
}

}  // namespace mk
