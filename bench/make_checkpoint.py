#!/usr/bin/env python3
"""Write a random BERT-shaped checkpoint, streamed: config.json and model.safetensors (float32).

    make_checkpoint.py OUT [--hidden N] [--layers N] [--heads N] [--vocab N]

The defaults are BERT-base's (440 MB). --hidden 2560 --layers 18 --heads 40 gives about 6 GB.
"""
import argparse
import array
import json
import pathlib
import random
import struct

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument("out", type=pathlib.Path)
ap.add_argument("--hidden", type=int, default=768)
ap.add_argument("--layers", type=int, default=12)
ap.add_argument("--heads", type=int, default=12)
ap.add_argument("--vocab", type=int, default=30522)
a = ap.parse_args()
h, inner = a.hidden, 4 * a.hidden

shapes = {"bert.embeddings.word_embeddings.weight": [a.vocab, h], "bert.embeddings.position_embeddings.weight": [512, h],
          "bert.embeddings.token_type_embeddings.weight": [2, h], "bert.embeddings.LayerNorm.weight": [h], "bert.embeddings.LayerNorm.bias": [h]}
for i in range(a.layers):
    p = f"bert.encoder.layer.{i}."
    for name, rows, columns in [("attention.self.query", h, h), ("attention.self.key", h, h), ("attention.self.value", h, h),
                                ("attention.output.dense", h, h), ("intermediate.dense", inner, h), ("output.dense", h, inner)]:
        shapes[p + name + ".weight"], shapes[p + name + ".bias"] = [rows, columns], [rows]
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        shapes[p + name + ".weight"], shapes[p + name + ".bias"] = [h], [h]
shapes |= {"cls.predictions.transform.dense.weight": [h, h], "cls.predictions.transform.dense.bias": [h],
           "cls.predictions.transform.LayerNorm.weight": [h], "cls.predictions.transform.LayerNorm.bias": [h], "cls.predictions.bias": [a.vocab]}

header, offset = {"__metadata__": {"format": "pt"}}, 0
for name, shape in shapes.items():
    size = 4
    for d in shape:
        size *= d
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
    offset += size
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
a.out.mkdir(parents=True, exist_ok=True)
(a.out / "config.json").write_text(json.dumps({
    "architectures": ["BertForMaskedLM"], "model_type": "bert", "vocab_size": a.vocab, "hidden_size": h, "num_hidden_layers": a.layers,
    "num_attention_heads": a.heads, "intermediate_size": inner, "hidden_act": "gelu", "max_position_embeddings": 512, "type_vocab_size": 2,
    "layer_norm_eps": 1e-12, "pad_token_id": 0}, indent=2))
rng = random.Random(0)
block = array.array("f", (rng.gauss(0, 0.02) for _ in range(1 << 18))).tobytes()
with open(a.out / "model.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text)
    while offset > 0:
        n = min(offset, len(block))
        f.write(block[:n])
        offset -= n
print(f"{a.out}: {len(shapes)} tensors, {(a.out / 'model.safetensors').stat().st_size / 1e6:.0f} MB")
