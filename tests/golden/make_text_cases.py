#!/usr/bin/env python3
"""Golden cases of text encoders with options that few checkpoints have: tests/data/option_cases.

    make_text_cases.py OUT [NAME]

As make_option_cases.py, for the families after BERT's.
"""
import json
import pathlib
import sys

import torch
import transformers as tf
from make_option_cases import TEXT, describe, inputs_of, redraw
from safetensors.torch import save_file

BOXES = dict(max_2d_position_embeddings=60)
PAGE = dict(max_2d_position_embeddings=1024, coordinate_size=3, shape_size=2, input_size=13, patch_size=4, num_channels=2)
MODERN = dict(vocab_size=40, hidden_size=16, num_hidden_layers=3, num_attention_heads=4, intermediate_size=19,
              max_position_embeddings=20, local_attention=4, global_attn_every_n_layers=2, pad_token_id=0, bos_token_id=1,
              eos_token_id=2, cls_token_id=1, sep_token_id=2, reference_compile=False)


def boxes(batch, length, most=59):
    corners = torch.randint(0, most + 1, (batch, length, 4), generator=torch.Generator().manual_seed(3))
    return {"bbox": torch.cat([torch.minimum(corners[..., :2], corners[..., 2:]), torch.maximum(corners[..., :2], corners[..., 2:])], -1)}


def boxes_and_page(batch, length):
    pixels = torch.rand(batch, 2, 13, 13, generator=torch.Generator().manual_seed(4)) * 2 - 1
    return {**boxes(batch, length, 1000), "pixel_values": pixels}


# name -> class, options, (batch, sequence) or (batch, choices, sequence), with token types or not.
CASES = {
    "albert.fill-mask.untied-groups": ("AlbertForMaskedLM", {**TEXT, "embedding_size": 12, "num_hidden_layers": 3, "num_hidden_groups": 2, "inner_group_num": 1, "tie_word_embeddings": False, "hidden_act": "gelu"}, (2, 7), True),
    "albert.feature-extraction.relative_key_query": ("AlbertModel", {**TEXT, "embedding_size": 16, "position_embedding_type": "relative_key_query", "layer_norm_eps": 1e-3}, (2, 9), True),
    "albert.multiple-choice.inner": ("AlbertForMultipleChoice", {**TEXT, "embedding_size": 8, "inner_group_num": 2, "type_vocab_size": 3}, (1, 3, 7), True),
    "albert.text-classification.pruned": ("AlbertForSequenceClassification", {**TEXT, "embedding_size": 8, "pruned_heads": {0: [1, 3]}, "num_labels": 1}, (2, 7), True),
    "electra.fill-mask.untied": ("ElectraForMaskedLM", {**TEXT, "embedding_size": 6, "tie_word_embeddings": False, "hidden_act": "silu", "layer_norm_eps": 1e-3}, (2, 7), True),
    "electra.feature-extraction.relative_key": ("ElectraModel", {**TEXT, "embedding_size": 16, "position_embedding_type": "relative_key"}, (2, 9), True),
    "electra.multiple-choice.mean": ("ElectraForMultipleChoice", {**TEXT, "embedding_size": 6, "summary_type": "mean", "summary_activation": "tanh"}, (2, 3, 7), True),
    "electra.multiple-choice.last": ("ElectraForMultipleChoice", {**TEXT, "embedding_size": 6, "summary_type": "cls_index", "summary_use_proj": False, "summary_activation": None}, (1, 2, 7), True),
    "electra.text-classification.pruned": ("ElectraForSequenceClassification", {**TEXT, "embedding_size": 6, "pruned_heads": {1: [0]}, "num_labels": 3}, (2, 7), True),
    "mpnet.feature-extraction.long": ("MPNetModel", {**TEXT, "max_position_embeddings": 152, "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 1, "layer_norm_eps": 1e-5}, (1, 150), False),
    "mpnet.fill-mask.untied": ("MPNetForMaskedLM", {**TEXT, "tie_word_embeddings": False, "hidden_act": "gelu_new", "relative_attention_num_buckets": 40}, (2, 9), False),
    "mpnet.multiple-choice.plain": ("MPNetForMultipleChoice", TEXT, (2, 2, 7), False),
    "deberta.feature-extraction.near": ("DebertaModel", {**TEXT, "relative_attention": True, "pos_att_type": "c2p|p2c", "max_relative_positions": 5, "position_biased_input": False, "embedding_size": 12, "type_vocab_size": 2}, (2, 11), True),
    "deberta.fill-mask.talking-heads": ("DebertaForMaskedLM", {**TEXT, "relative_attention": True, "pos_att_type": ["p2c"], "talking_head": True, "tie_word_embeddings": False, "hidden_act": "relu"}, (2, 7), False),
    "deberta.text-classification.plain": ("DebertaForSequenceClassification", {**TEXT, "pooler_hidden_act": "tanh", "layer_norm_eps": 1e-3, "num_labels": 1}, (2, 7), False),
    "deberta-v2.feature-extraction.far": ("DebertaV2Model", {**TEXT, "relative_attention": True, "pos_att_type": ["c2p"], "max_relative_positions": 30, "position_buckets": 8, "norm_rel_ebd": "none|layer_norm", "max_position_embeddings": 70, "conv_kernel_size": 5, "conv_groups": 2, "embedding_size": 12}, (1, 65), False),
    "deberta-v2.fill-mask.new-head": ("DebertaV2ForMaskedLM", {**TEXT, "relative_attention": True, "pos_att_type": "p2c", "legacy": False, "tie_word_embeddings": False, "type_vocab_size": 2}, (2, 7), True),
    "deberta-v2.multiple-choice.shared": ("DebertaV2ForMultipleChoice", {**TEXT, "relative_attention": True, "pos_att_type": ["c2p", "p2c"], "share_att_key": True, "position_buckets": 4, "pooler_hidden_act": "relu"}, (1, 3, 7), False),
    "layoutlm.fill-mask.untied": ("LayoutLMForMaskedLM", {**TEXT, **BOXES, "tie_word_embeddings": False, "hidden_act": "gelu_new"}, (2, 7), True, boxes),
    "layoutlm.text-classification.one-label": ("LayoutLMForSequenceClassification", {**TEXT, **BOXES, "num_labels": 1, "type_vocab_size": 3}, (1, 7), True, boxes),
    "layoutlmv3.token-classification.many": ("LayoutLMv3ForTokenClassification", {**TEXT, **PAGE, "num_labels": 11, "pad_token_id": 1}, (2, 7), False, boxes_and_page),
    "layoutlmv3.feature-extraction.text": ("LayoutLMv3Model", {**TEXT, **PAGE, "rel_pos_bins": 8, "rel_2d_pos_bins": 16, "max_rel_2d_pos": 40, "pad_token_id": 2}, (2, 7), True, boxes),
    "layoutlmv3.text-classification.no-space": ("LayoutLMv3ForSequenceClassification", {**TEXT, **PAGE, "has_spatial_attention_bias": False, "num_labels": 3}, (2, 7), False, boxes_and_page),
    "layoutlmv3.question-answering.no-bias": ("LayoutLMv3ForQuestionAnswering", {**TEXT, **PAGE, "has_relative_attention_bias": False, "has_spatial_attention_bias": False, "hidden_act": "relu"}, (1, 7), False, boxes_and_page),
    "modernbert.fill-mask.biases": ("ModernBertForMaskedLM", {**MODERN, "norm_bias": True, "attention_bias": True, "mlp_bias": True, "decoder_bias": False, "classifier_bias": True, "tie_word_embeddings": False, "hidden_activation": "silu"}, (2, 11), False),
    "modernbert.text-classification.mean": ("ModernBertForSequenceClassification", {**MODERN, "classifier_pooling": "mean", "classifier_activation": "relu", "local_rope_theta": None, "local_attention": 3}, (2, 11), False),
    "modernbert.multiple-choice.linear": ("ModernBertForMultipleChoice", {**MODERN, "global_attn_every_n_layers": 1, "rope_scaling": {"rope_type": "linear", "factor": 2.0}}, (1, 2, 9), False),
    "modernbert.feature-extraction.wide": ("ModernBertModel", {**MODERN, "local_attention": 100, "norm_eps": 1e-3, "global_rope_theta": 500.0}, (1, 9), False),
    "convbert.feature-extraction.plain": ("ConvBertModel", {**TEXT, "embedding_size": 16, "conv_kernel_size": 3}, (2, 9), True),
    "convbert.fill-mask.untied": ("ConvBertForMaskedLM", {**TEXT, "embedding_size": 12, "tie_word_embeddings": False, "head_ratio": 1, "conv_kernel_size": 5}, (2, 9), True),
    "convbert.text-classification.groups": ("ConvBertForSequenceClassification", {**TEXT, "intermediate_size": 18, "embedding_size": 16, "num_groups": 2, "hidden_act": "relu", "num_labels": 3}, (1, 9), True),
    "convbert.token-classification.one-head": ("ConvBertForTokenClassification", {**TEXT, "embedding_size": 16, "head_ratio": 9, "conv_kernel_size": 1, "num_labels": 5}, (2, 9), True),
    "convbert.question-answering.long-kernel": ("ConvBertForQuestionAnswering", {**TEXT, "embedding_size": 16, "conv_kernel_size": 9}, (2, 6), True),
    "convbert.multiple-choice.projected": ("ConvBertForMultipleChoice", {**TEXT, "embedding_size": 16, "summary_type": "first", "summary_use_proj": True, "summary_activation": "tanh"}, (1, 2, 7), True),
}


def make_case(folder, class_name, options, shape, types, extra=lambda batch, length: {}):
    generator = torch.Generator().manual_seed(sum(map(ord, folder.name)))
    model_class = getattr(tf, class_name)
    made = model_class._from_config(model_class.config_class(**options), attn_implementation="eager")
    redraw(made, generator)
    made.tie_weights()
    made.save_pretrained(folder)
    model = model_class.from_pretrained(folder, attn_implementation="eager").eval()
    inputs = inputs_of(shape, types, model.config.vocab_size, getattr(model.config, "pad_token_id", None) or 0, generator)
    inputs.update(extra(shape[0], shape[-1]))
    with torch.no_grad():
        result = model(**inputs)
    outputs = {k: v.contiguous() for k, v in result.items() if k != "pooler_output" and isinstance(v, torch.Tensor)}
    save_file(inputs, folder / "inputs.safetensors")
    save_file(outputs, folder / "outputs.safetensors")
    rows = [[path, type(m).__name__, type(m).__module__.startswith("torch.nn")] for path, m in model.named_modules()]
    (folder / "modules.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    case = {"name": folder.name, "model_type": model.config.model_type, "task": folder.name.split(".")[1],
            "architecture": class_name, "inputs": describe(inputs), "outputs": describe(outputs),
            "atol": 2e-4, "rtol": 2e-4, "made_with": {"torch": torch.__version__, "transformers": tf.__version__}}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def main():
    out, only = pathlib.Path(sys.argv[1]), (sys.argv[2] if len(sys.argv) > 2 else "")
    for name, spec in CASES.items():
        if only in name:
            make_case(out / "option_cases" / name, *spec)
            print("made", name, flush=True)


if __name__ == "__main__":
    main()
