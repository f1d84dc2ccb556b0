#!/usr/bin/env python3
"""GGUF files for the tests: tests/data/gguf.

    make_gguf.py OUT CASES

Needs gguf, numpy and safetensors (made with gguf 0.19). CASES is tests/data/decoder_cases. `blocks.gguf` has a tensor of
each type, blocks.safetensors what the gguf package makes of it; the others are golden cases, converted as llama.cpp's
convert_hf_to_gguf.py does.
"""
import json
import pathlib
import sys

import gguf
import numpy as np
from safetensors.numpy import load_file, save_file

OUT, CASES = (pathlib.Path(a) for a in sys.argv[1:3])
OUT.mkdir(parents=True, exist_ok=True)
Q = gguf.GGMLQuantizationType


def blocks():
    rng = np.random.default_rng(3)
    writer, values = gguf.GGUFWriter(OUT / "blocks.gguf", "llama"), {}
    for kind in ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"):
        plain = rng.standard_normal((3, 512)).astype(np.float32)
        if kind.endswith("_K"):  # any bytes are blocks; their halves must be small numbers
            size = gguf.GGML_QUANT_SIZES[Q[kind]][1]
            raw = rng.integers(0, 256, (3, 2 * size), dtype=np.uint8).reshape(-1, size)
            at = size - 2 if kind == "Q6_K" else 0
            raw[:, at:at + 2] = rng.uniform(0.001, 0.02, (len(raw), 1)).astype(np.float16).view(np.uint8)
            if kind != "Q6_K":
                raw[:, 2:4] = rng.uniform(0.001, 0.02, (len(raw), 1)).astype(np.float16).view(np.uint8)
            data = raw.reshape(3, 2 * size)
        elif kind == "F32":
            data = plain
        elif kind == "F16":
            data = plain.astype(np.float16)
        else:
            data = gguf.quants.quantize(plain, Q[kind])
        writer.add_tensor(kind, data, raw_dtype=Q[kind])
        values[kind] = gguf.quants.dequantize(np.asarray(data), Q[kind]).astype(np.float32).reshape(3, 512)
    finish(writer)
    save_file(values, OUT / "blocks.safetensors")


def finish(writer):
    writer.write_header_to_file(); writer.write_kv_data_to_file(); writer.write_tensors_to_file(); writer.close()


def in_pairs(weight, heads):
    shape = (heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:])
    return np.ascontiguousarray(weight.reshape(shape).swapaxes(1, 2).reshape(weight.shape))


def model(case, architecture):
    folder = CASES / case
    config, tensors = json.loads((folder / "config.json").read_text()), load_file(folder / "model.safetensors")
    writer = gguf.GGUFWriter(OUT / f"{architecture}.gguf", architecture)
    layers = config.get("num_hidden_layers", config.get("n_layer"))
    writer.add_block_count(layers)
    writer.add_context_length(config.get("max_position_embeddings", config.get("n_positions")))
    writer.add_embedding_length(config.get("hidden_size", config.get("n_embd")))
    writer.add_head_count(config.get("num_attention_heads", config.get("n_head")))
    writer.add_bos_token_id(1); writer.add_eos_token_id(2)
    if architecture == "gpt2":
        writer.add_feed_forward_length(4 * config["n_embd"])
        writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    else:
        writer.add_feed_forward_length(config["intermediate_size"])
        writer.add_head_count_kv(config["num_key_value_heads"])
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
        writer.add_rope_freq_base(config["rope_theta"])
        writer.add_key_length(config["head_dim"]); writer.add_value_length(config["head_dim"])
    if architecture == "gemma2":
        writer.add_attn_logit_softcapping(config["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(config["final_logit_softcapping"])
        writer.add_sliding_window(config["sliding_window"])
    names = gguf.get_tensor_name_map(getattr(gguf.MODEL_ARCH, architecture.upper()), layers)
    for name, tensor in tensors.items():
        if name == "lm_head.weight" and config.get("tie_word_embeddings", architecture != "llama"):
            continue
        if architecture == "llama" and "q_proj" in name:
            tensor = in_pairs(tensor, config["num_attention_heads"])
        if architecture == "llama" and "k_proj" in name:
            tensor = in_pairs(tensor, config["num_key_value_heads"])
        if architecture == "gemma2" and name.endswith("norm.weight"):
            tensor = tensor + 1
        if architecture == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
            tensor = np.ascontiguousarray(tensor.T)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), tensor)
    finish(writer)


blocks()
model("llama.text-generation.biases", "llama")
model("gemma2.text-generation", "gemma2")
model("gpt2.text-generation", "gpt2")
