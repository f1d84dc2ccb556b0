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
