// The heads of wav2vec 2.0 and its relatives.

#include <fmt/format.h>

#include "models/families.h"
#include "models/wav2vec2.h"
#include "nn/activation.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

Value weighted_states(const Scope& root, const std::vector<Value>& states) {
  const auto count = static_cast<std::int64_t>(states.size());
  std::vector<Value> parts;
  for (const Value& state : states) parts.push_back(unsqueeze(root, state, 1));
  if (!parts.front()) return {};
  Shape shape = parts.front().shape();
  shape[1] = Dim::known(count);
  const Value all = Op(root, "Concat", parts).with("axis", 1).out(parts.front().type(), std::move(shape));
  const Value weights = softmax(root, root.weight("layer_weights", {count}));
  return reduce(root, "ReduceSum", mul(root, all, reshape(root, weights, {count, 1, 1})), {1}, false);
}

namespace {

Scope base(const Scope& root, const Wav2Vec2Config& c) { return root(c.prefix, c.name("Model")); }

void expect_no_adapter(const Scope& root, const Wav2Vec2Config& c) {
  if (c.add_adapter)
    root.builder().fail({ErrorCode::unsupported,
                         fmt::format("{} has no form with an adapter after the encoder", root.module().class_name),
                         "add_adapter", "Its checkpoints have add_adapter false"});
}

// The last state, or a sum of all states with learned weights: [batch, frames, hidden_size].
Value classified_states(const Scope& root, const Wav2Vec2Config& c, const WaveInputs& in) {
  expect_no_adapter(root, c);
  const Wav2Vec2States states = wav2vec2_model(base(root, c), c, in, c.use_weighted_layer_sum);
  if (!c.use_weighted_layer_sum) return states.last;
  return weighted_states(root, states.all);
}

Outputs frame_classifier(const Scope& root, const Wav2Vec2Config& c, const WaveInputs& in) {
  return {linear(root["classifier"], classified_states(root, c, in), c.num_labels)};
}

// Over the frames: mean and standard deviation, [batch, 2 * width].
Value statistics(const Scope& s, Value x) {
  if (!x) return {};
  const Value mean = reduce_mean(s, x, {1}, true), from_mean = sub(s, x, mean);
  const Value squares = reduce(s, "ReduceSum", mul(s, from_mean, from_mean), {1}, false);
  const Dim frames = x.dim(1);
  const Value variance = frames.is_known() ? div(s, squares, static_cast<double>(frames.value - 1))
                                           : div(s, squares, sub(s, cast(s, size(s, x, 1), x.type()), 1));
  return concat(s, {reshape(s, mean, {keep, rest}), unary(s, "Sqrt", variance)}, -1);
}

// Snyder et al. 2018, "X-Vectors": a time-delay network over the frames.
Outputs x_vector(const Scope& root, const Wav2Vec2Config& c, const WaveInputs& in) {
  if (c.tdnn_dim.size() != c.tdnn_kernel.size() || c.tdnn_dim.size() != c.tdnn_dilation.size()) {
    root.builder().fail({ErrorCode::malformed, "tdnn_dim, tdnn_kernel and tdnn_dilation differ in length",
                         "config.json", "Give each layer one value of each"});
    return {};
  }
  Value x = linear(root["projector"], classified_states(root, c, in), c.tdnn_dim.front());
  for (std::size_t i = 0; i < c.tdnn_dim.size(); ++i) {
    if (!x) return {};
    const Scope layer = root("tdnn", static_cast<std::int64_t>(i), "TDNNLayer");
    const std::int64_t from = x.dim(2).value, kernel = c.tdnn_kernel[i];
    // A row of the matrix has the channels of each step after the other: [to, kernel, from].
    const Value matrix = layer["kernel"].weight("weight", {c.tdnn_dim[i], kernel * from});
    const Value weight = transpose(layer, reshape(layer, matrix, {keep, kernel, from}), {0, 2, 1});
    const Value y = conv1d(layer["kernel"], transpose(layer, x, {0, 2, 1}), weight,
                           {.channels = c.tdnn_dim[i], .kernel = kernel, .dilation = c.tdnn_dilation[i]});
    x = activation(layer, "activation", "relu", transpose(layer, y, {0, 2, 1}));
  }
  const Value embeddings = linear(root["feature_extractor"], statistics(root, x), c.xvector_output_dim);
  return {linear(root["classifier"], embeddings, c.xvector_output_dim), embeddings};
}

// Emotion as numbers (audeering's wav2vec2-large-robust-12-ft-emotion-msp-dim): pooled states, and a head on them.
Outputs regression(const Scope& root, const Wav2Vec2Config& c, const WaveInputs& in) {
  expect_no_adapter(root, c);
  const Value states = wav2vec2_model(base(root, c), c, in).last;
  Value pooled;
  if (c.pooling_mode == "mean" || c.pooling_mode == "sum" || c.pooling_mode == "max")
    pooled = reduce(root,
                    c.pooling_mode == "mean"  ? "ReduceMean"
                    : c.pooling_mode == "sum" ? "ReduceSum"
                                              : "ReduceMax",
                    states, {1}, false);
  else
    root.builder().fail({ErrorCode::unsupported, fmt::format("frames cannot be pooled by \"{}\"", c.pooling_mode),
                         "pooling_mode", "They can by mean, sum and max"});
  const Scope head = root("classifier", "RegressionHead");
  const Value x = unary(head, "Tanh", linear(head["dense"], pooled, c.hidden_size));
  return {pooled, linear(head["out_proj"], x, c.num_labels)};
}

}  // namespace

Outputs wav2vec2_hidden_states(const Scope& root, const Wav2Vec2Config& c, const WaveInputs& in) {
  return {wav2vec2_model(root, c, in).last};
}

Outputs wav2vec2_ctc(const Scope& root, const Wav2Vec2Config& c, const WaveInputs& in) {
  return {linear(root["lm_head"], wav2vec2_model(base(root, c), c, in).last, c.vocab_size)};
}

Outputs wav2vec2_classifier(const Scope& root, const Wav2Vec2Config& c, const WaveInputs& in) {
  const Value x = linear(root["projector"], classified_states(root, c, in), c.classifier_proj_size);
  return {linear(root["classifier"], reduce_mean(root, x, {1}, false), c.num_labels)};
}

const Family wav2vec2{
    .model_type = "wav2vec2",
    .stem = "Wav2Vec2",
    .prefix = "wav2vec2",
    .inputs = {"input_values"},
    .default_inputs = wave_inputs,
    .heads =
        {
            {"feature-extraction", "Model", {"last_hidden_state"}, head<wav2vec2_hidden_states>},
            {"automatic-speech-recognition", "ForCTC", {"logits"}, head<wav2vec2_ctc>},
            {"audio-classification", "ForSequenceClassification", {"logits"}, head<wav2vec2_classifier>},
            {"audio-classification", "ForSpeechClassification", {"hidden_states", "logits"}, head<regression>},
            {"audio-frame-classification", "ForAudioFrameClassification", {"logits"}, head<frame_classifier>},
            {"audio-xvector", "ForXVector", {"logits", "embeddings"}, head<x_vector>},
        },
};

const Family wav2vec2_emotion_regression{
    .model_type = "wav2vec2_emotion_regression",
    .stem = "Wav2Vec2",
    .prefix = "wav2vec2",
    .inputs = {"input_values"},
    .default_inputs = wave_inputs,
    .heads = {{"audio-classification", "ForSpeechClassification", {"hidden_states", "logits"}, head<regression>}},
};

}  // namespace mk::models
