#!/usr/bin/env python3
"""Golden cases of decoders: tests/data/decoder_cases.

    make_decoder_cases.py OUT [NAME]

Needs torch and transformers (made with torch 2.15.0, transformers 4.57.6). A case is a folder as make_option_cases.py
makes it; of text-generation-with-past also step_inputs and step_outputs: one token more, with the cache of those before.
"""
import json
import pathlib
import sys

import torch
import transformers as tf
from make_option_cases import describe, redraw
from safetensors.torch import save_file

LM = dict(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
          intermediate_size=19, max_position_embeddings=16, pad_token_id=0, bos_token_id=1, eos_token_id=2)
GPT2 = dict(vocab_size=40, n_embd=16, n_layer=2, n_head=4, n_positions=16, bos_token_id=1, eos_token_id=2)
OPT = dict(vocab_size=40, hidden_size=16, ffn_dim=19, num_hidden_layers=2, num_attention_heads=4,
           max_position_embeddings=16, word_embed_proj_dim=16)
WIDE = {**LM, "head_dim": 16}
LONG = {"rope_type": "longrope", "factor": 4.0, "short_factor": [1.0, 1.1], "long_factor": [2.0, 3.2]}

# name -> class, options, length
CASES = {
    "llama.text-generation": ("LlamaForCausalLM", {**WIDE, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}}, 9),
    "llama.text-generation.biases": ("LlamaForCausalLM", {**LM, "attention_bias": True, "mlp_bias": True, "rope_scaling": {"type": "linear", "factor": 3.0}, "num_key_value_heads": 4, "tie_word_embeddings": True}, 9),
    "llama.text-generation.dynamic": ("LlamaForCausalLM", {**LM, "rope_scaling": {"rope_type": "dynamic", "factor": 4.0}}, 20),
    "llama.text-generation.yarn": ("LlamaForCausalLM", {**WIDE, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8, "mscale": 0.7, "mscale_all_dim": 1.2, "truncate": False}}, 9),
    "llama.text-generation.longrope": ("LlamaForCausalLM", {**LM, "rope_scaling": LONG}, 20),
    "llama.text-classification": ("LlamaForSequenceClassification", {**LM, "num_labels": 3}, 9),
    "llama.token-classification": ("LlamaForTokenClassification", LM, 9),
    "llama.question-answering": ("LlamaForQuestionAnswering", LM, 9),
    "qwen2.text-generation": ("Qwen2ForCausalLM", {**LM, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}, 9),
    "qwen3.text-generation": ("Qwen3ForCausalLM", {**LM, "head_dim": 8, "attention_bias": True}, 9),
    "qwen3.feature-extraction": ("Qwen3Model", {**LM, "head_dim": 8}, 9),
    "mistral.text-generation": ("MistralForCausalLM", {**LM, "sliding_window": 5, "head_dim": 6}, 9),
    "phi3.text-generation": ("Phi3ForCausalLM", {**LM, "original_max_position_embeddings": 8, "rope_scaling": {k: LONG[k] for k in ("short_factor", "long_factor")} | {"type": "longrope"}, "sliding_window": 7}, 12),
    "phi3.text-generation.partial": ("Phi3ForCausalLM", {**LM, "partial_rotary_factor": 0.5, "num_key_value_heads": 4}, 9),
    "smollm3.text-generation": ("SmolLM3ForCausalLM", {**LM, "use_sliding_window": True, "sliding_window": 4, "no_rope_layer_interval": 2}, 9),
    "gemma.text-generation": ("GemmaForCausalLM", {**LM, "head_dim": 8}, 9),
    "gemma2.text-generation": ("Gemma2ForCausalLM", {**LM, "head_dim": 8, "sliding_window": 3, "attn_logit_softcapping": 2.0, "final_logit_softcapping": 1.0, "query_pre_attn_scalar": 4}, 9),
    "gemma3_text.text-generation": ("Gemma3ForCausalLM", {**LM, "head_dim": 8, "sliding_window": 3, "layer_types": ["sliding_attention", "full_attention"], "rope_scaling": {"rope_type": "linear", "factor": 8.0}}, 9),
    "gemma3_text.feature-extraction": ("Gemma3TextModel", {**LM, "head_dim": 8, "sliding_window": 4, "use_bidirectional_attention": True, "sliding_window_pattern": 2}, 9),
    "gpt2.text-generation": ("GPT2LMHeadModel", GPT2, 9),
    "gpt2.text-generation.scales": ("GPT2LMHeadModel", {**GPT2, "n_inner": 20, "activation_function": "relu", "scale_attn_by_inverse_layer_idx": True, "tie_word_embeddings": False}, 9),
    "gpt2.text-classification": ("GPT2ForSequenceClassification", {**GPT2, "pad_token_id": 7, "num_labels": 3}, 9),
    "opt.text-generation": ("OPTForCausalLM", OPT, 9),
    "opt.text-generation.norms-after": ("OPTForCausalLM", {**OPT, "do_layer_norm_before": False, "word_embed_proj_dim": 10, "activation_function": "gelu", "enable_bias": False}, 9),
    "opt.question-answering": ("OPTForQuestionAnswering", OPT, 9),
}


def run(model, **inputs):
    with torch.no_grad():
        return model(**inputs)


def make_case(folder, class_name, options, length):
    generator = torch.Generator().manual_seed(sum(map(ord, folder.name)))
    model_class = getattr(tf, class_name)
    made = model_class._from_config(model_class.config_class(**options), attn_implementation="eager")
    redraw(made, generator)
    made.tie_weights()
    made.save_pretrained(folder)
    model = model_class.from_pretrained(folder, attn_implementation="eager").eval()
    generates = ".text-generation" in folder.name
    padding = model.config.pad_token_id or 0
    ids = torch.randint(8, options["vocab_size"], (2, length), generator=generator)
    mask = torch.ones_like(ids)
    if generates:
        mask[-1, :3] = 0
    else:
        mask[-1, -3:] = 0
    ids[mask == 0] = padding
    inputs = {"input_ids": ids, "attention_mask": mask}
    places = {"position_ids": (mask.cumsum(-1) - 1).clamp(min=0)} if generates and not class_name.startswith("OPT") else {}
    outputs = {k: v.contiguous() for k, v in run(model, **inputs, **places, use_cache=False).items()}
    save_file({**inputs, **places}, folder / "inputs.safetensors")
    save_file(outputs, folder / "outputs.safetensors")
    if generates:  # a cache without a configuration keeps every position of every layer
        past = run(model, **inputs, **places, use_cache=True, past_key_values=tf.DynamicCache()).past_key_values
        step_in = {"input_ids": torch.tensor([[17], [23]]), "attention_mask": torch.cat([mask, torch.ones(2, 1).long()], -1)}
        if places:
            step_in["position_ids"] = step_in["attention_mask"].sum(-1, keepdim=True) - 1
        cached = {f"past_key_values.{i}.{part}": pair[j].clone().contiguous() for i, pair in enumerate(past.to_legacy_cache()) for j, part in enumerate(("key", "value"))}
        step = run(model, **step_in, past_key_values=past, use_cache=True)
        save_file({**step_in, **cached}, folder / "step_inputs.safetensors")
        save_file({"logits": step.logits.contiguous()}, folder / "step_outputs.safetensors")
    rows = [[path, type(m).__name__, type(m).__module__.startswith("torch.nn")] for path, m in model.named_modules()]
    (folder / "modules.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    task = folder.name.split(".")[1] + ("-with-past" if generates else "")
    case = {"name": folder.name, "model_type": model.config.model_type, "task": task, "architecture": class_name,
            "inputs": describe({**inputs, **places}), "outputs": describe(outputs), "atol": 2e-4, "rtol": 2e-4,
            "made_with": {"torch": torch.__version__, "transformers": tf.__version__}}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")
    (folder / "generation_config.json").unlink(missing_ok=True)


if __name__ == "__main__":
    for name, (class_name, options, length) in CASES.items():
        if len(sys.argv) < 3 or sys.argv[2] in name:
            make_case(pathlib.Path(sys.argv[1]) / "decoder_cases" / name, class_name, options, length)
            print("made", name, flush=True)
