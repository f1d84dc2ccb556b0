// LayoutLM (Xu et al. 2019): BERT with embeddings of each token's box.

#include <fmt/format.h>

#include <algorithm>

#include "models/families.h"
#include "models/layout.h"
#include "nn/layers.h"
#include "nn/ops.h"

namespace mk::models {

using namespace nn;

LayoutInputs LayoutInputs::read(const Scope& root, HeadContext& context) {
  LayoutInputs in{TextInputs::read(root, context), context.input("bbox"), context.input("pixel_values")};
  Builder& b = root.builder();
  const Value ids = in.text.input_ids;
  if (!b.ok()) return in;
  bool fits = in.bbox && in.bbox.rank() == 3 && in.bbox.dim(2).value == 4 &&
              (in.bbox.type() == DataType::int32 || in.bbox.type() == DataType::int64);
  for (int axis = 0; fits && axis < 2; ++axis)
    fits = !in.bbox.dim(axis).is_known() || !ids.dim(axis).is_known() || in.bbox.dim(axis) == ids.dim(axis);
  if (!fits)
    b.fail({ErrorCode::usage,
            in.bbox ? fmt::format("bbox is {} {}, expected integers [batch, sequence, 4]", name_of(in.bbox.type()),
                                  to_string(in.bbox.shape()))
                    : fmt::format("{} needs bbox among its inputs", root.module().class_name),
            "", ""});
  return in;
}

Value LayoutInputs::edge(const Scope& s, int side) const { return take(s, bbox, 2, side); }

Result<std::vector<InputSpec>> layout_input_specs(const InputRequest& request, const TextLimits& limits,
                                                  std::int64_t coordinates) {
  constexpr std::int64_t normalized = 1001;
  MK_TRY(auto inputs, text_input_specs(request, limits));
  Shape shape = inputs.front().shape;
  shape.push_back(Dim::known(4));
  inputs.push_back({"bbox", DataType::int32, std::move(shape),
                    ValueRange{0, static_cast<double>(std::min(coordinates, normalized))}});
  return inputs;
}

namespace {

struct LayoutLMConfig : BertConfig {
  std::int64_t max_2d_position_embeddings = 1024;

  static LayoutLMConfig read(const Family& family, ConfigReader& fields) {
    LayoutLMConfig c{BertConfig::read(family, fields)};
    c.position_embedding_type = "absolute";  // there is no other
    c.max_2d_position_embeddings = fields.size("max_2d_position_embeddings", c.max_2d_position_embeddings);
    return c;
  }
};

Value embeddings(const Scope& s, const LayoutLMConfig& c, const LayoutInputs& in) {
  const std::int64_t width = c.hidden_size, coordinates = c.max_2d_position_embeddings;
  Value x = embedding(s["word_embeddings"], in.text.input_ids, c.vocab_size, width);
  x = add(s, x, c.positions(s, c, in.text));
  const Value left = in.edge(s, 0), top = in.edge(s, 1), right = in.edge(s, 2), bottom = in.edge(s, 3);
  const auto spatial = [&](const char* name, Value at) { return embedding(s[name], at, coordinates, width); };
  x = add(s, x, spatial("x_position_embeddings", left));
  x = add(s, x, spatial("y_position_embeddings", top));
  x = add(s, x, spatial("x_position_embeddings", right));
  x = add(s, x, spatial("y_position_embeddings", bottom));
  x = add(s, x, spatial("h_position_embeddings", sub(s, bottom, top)));
  x = add(s, x, spatial("w_position_embeddings", sub(s, right, left)));
  const Scope types = s["token_type_embeddings"];
  x = add(s, x,
          in.text.token_type_ids ? embedding(types, in.text.token_type_ids, c.type_vocab_size, width)
                                 : s.builder().rows(types.parameter("weight", {c.type_vocab_size, width}), 0, 1));
  return bert_norm(s, c, x);
}

Value layoutlm_model(const Scope& s, const LayoutLMConfig& c, const LayoutInputs& in) {
  return bert_encoder(s, c, embeddings(s("embeddings", c.name("Embeddings")), c, in), in.text.attention_mask);
}

Value base(const Scope& root, const LayoutLMConfig& c, const LayoutInputs& in) {
  return layoutlm_model(bert_base(root, c), c, in);
}

Outputs hidden_states(const Scope& root, const LayoutLMConfig& c, const LayoutInputs& in) {
  return {layoutlm_model(root, c, in)};
}

Outputs masked_lm(const Scope& root, const LayoutLMConfig& c, const LayoutInputs& in) {
  bert_lm_ties(root, c);
  return bert_lm_head(root, c, base(root, c, in));
}

Outputs sequence_classifier(const Scope& root, const LayoutLMConfig& c, const LayoutInputs& in) {
  return bert_pooled_classifier(root, c, base(root, c, in));
}

Outputs token_classifier(const Scope& root, const LayoutLMConfig& c, const LayoutInputs& in) {
  return token_logits(root, base(root, c, in), c.num_labels);
}

Outputs question_answering(const Scope& root, const LayoutLMConfig& c, const LayoutInputs& in) {
  return span_logits(root, base(root, c, in), c.num_labels);
}

Result<std::vector<InputSpec>> default_inputs(InputRequest& request) {
  const LayoutLMConfig c = LayoutLMConfig::read(request.family, request.config);
  // A question and its document are of one type here.
  const std::int64_t types = request.task == "question-answering" ? 1 : c.type_vocab_size;
  return layout_input_specs(request, {c.vocab_size, c.max_position_embeddings, types}, c.max_2d_position_embeddings);
}

}  // namespace

const Family layoutlm{
    .model_type = "layoutlm",
    .stem = "LayoutLM",
    .prefix = "layoutlm",
    .inputs = {"input_ids", "attention_mask", "token_type_ids", "position_ids", "bbox"},
    .default_inputs = default_inputs,
    .heads =
        {
            {"feature-extraction", "Model", {"last_hidden_state"}, head<hidden_states>},
            {"fill-mask", "ForMaskedLM", {"logits"}, head<masked_lm>},
            {"text-classification", "ForSequenceClassification", {"logits"}, head<sequence_classifier>},
            {"token-classification", "ForTokenClassification", {"logits"}, head<token_classifier>},
            {"question-answering", "ForQuestionAnswering", {"start_logits", "end_logits"}, head<question_answering>},
        },
};

}  // namespace mk::models
