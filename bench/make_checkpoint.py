#!/usr/bin/env python3
"""Write a random checkpoint, streamed: config.json, model.safetensors (float32), and preprocessor_config.json of models that take images.

    make_checkpoint.py OUT [--kind bert|resnet|convnext] [--hidden N] [--layers N] [--heads N] [--vocab N]

The defaults are BERT-base's (440 MB); --hidden 2560 --layers 18 --heads 40 gives about 6 GB. resnet is shaped as ResNet-50, convnext as
ConvNeXt-T. Convolutions and their norms are drawn so that activations keep their magnitude from layer to layer.
"""
import argparse
import array
import json
import math
import pathlib
import random
import struct

ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
ap.add_argument("out", type=pathlib.Path)
ap.add_argument("--kind", choices=("bert", "resnet", "convnext"), default="bert")
ap.add_argument("--hidden", type=int, default=768)
ap.add_argument("--layers", type=int, default=12)
ap.add_argument("--heads", type=int, default=12)
ap.add_argument("--vocab", type=int, default=30522)
a = ap.parse_args()

# name: (shape, standard deviation) or (shape, standard deviation, mean)
tensors = {}


def linear(name, rows, columns, deviation=0.02):
    tensors[name + ".weight"], tensors[name + ".bias"] = ([rows, columns], deviation), ([rows], deviation)


def norm(name, size, deviation=0.02, mean=0.0):
    tensors[name + ".weight"], tensors[name + ".bias"] = ([size], deviation, mean), ([size], 0.02)


def bert():
    h, inner = a.hidden, 4 * a.hidden
    tensors["bert.embeddings.word_embeddings.weight"] = [a.vocab, h], 0.02
    tensors["bert.embeddings.position_embeddings.weight"] = [512, h], 0.02
    tensors["bert.embeddings.token_type_embeddings.weight"] = [2, h], 0.02
    norm("bert.embeddings.LayerNorm", h)
    for i in range(a.layers):
        p = f"bert.encoder.layer.{i}."
        for name, rows, columns in [("attention.self.query", h, h), ("attention.self.key", h, h), ("attention.self.value", h, h),
                                    ("attention.output.dense", h, h), ("intermediate.dense", inner, h), ("output.dense", h, inner)]:
            linear(p + name, rows, columns)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            norm(p + name, h)
    linear("cls.predictions.transform.dense", h, h)
    norm("cls.predictions.transform.LayerNorm", h)
    tensors["cls.predictions.bias"] = [a.vocab], 0.02
    return {"architectures": ["BertForMaskedLM"], "model_type": "bert", "vocab_size": a.vocab, "hidden_size": h, "num_hidden_layers": a.layers,
            "num_attention_heads": a.heads, "intermediate_size": inner, "hidden_act": "gelu", "max_position_embeddings": 512, "type_vocab_size": 2,
            "layer_norm_eps": 1e-12, "pad_token_id": 0}


def resnet():
    depths, sizes = [3, 4, 6, 3], [256, 512, 1024, 2048]

    def block(name, out, into, side, gain=1.0):
        tensors[name + ".convolution.weight"] = [out, into, side, side], math.sqrt(2 / (into * side * side))
        norm(name + ".normalization", out, 0.05, gain)
        tensors[name + ".normalization.running_mean"], tensors[name + ".normalization.running_var"] = ([out], 0.02), ([out], 0.02, 1.0)

    block("resnet.embedder.embedder", 64, 3, 7)
    into = 64
    for s, (depth, out) in enumerate(zip(depths, sizes)):
        for i in range(depth):
            p = f"resnet.encoder.stages.{s}.layers.{i}."
            if i == 0:
                block(p + "shortcut", out, into, 1, 0.5)
            block(p + "layer.0", out // 4, into, 1)
            block(p + "layer.1", out // 4, out // 4, 3)
            block(p + "layer.2", out, out // 4, 1, 0.3)
            into = out
    linear("classifier.1", 1000, into)
    return {"architectures": ["ResNetForImageClassification"], "model_type": "resnet", "num_channels": 3, "embedding_size": 64, "hidden_sizes": sizes, "depths": depths,
            "layer_type": "bottleneck", "hidden_act": "relu", "downsample_in_first_stage": False, "downsample_in_bottleneck": False} | labels()


def convnext():
    depths, sizes = [3, 3, 9, 3], [96, 192, 384, 768]

    def convolution(name, out, into, side):
        tensors[name + ".weight"], tensors[name + ".bias"] = ([out, into, side, side], math.sqrt(1 / (into * side * side))), ([out], 0.02)

    convolution("convnext.embeddings.patch_embeddings", 96, 3, 4)
    norm("convnext.embeddings.layernorm", 96, 0.05, 1.0)
    for s, (depth, size) in enumerate(zip(depths, sizes)):
        p = f"convnext.encoder.stages.{s}."
        if s:
            norm(p + "downsampling_layer.0", sizes[s - 1], 0.05, 1.0)
            convolution(p + "downsampling_layer.1", size, sizes[s - 1], 2)
        for i in range(depth):
            q = f"{p}layers.{i}."
            tensors[q + "layer_scale_parameter"] = [size], 0.02, 0.2
            convolution(q + "dwconv", size, 1, 7)
            norm(q + "layernorm", size, 0.05, 1.0)
            linear(q + "pwconv1", 4 * size, size, math.sqrt(1 / size))
            linear(q + "pwconv2", size, 4 * size, math.sqrt(1 / size) / 2)
    norm("convnext.layernorm", sizes[-1], 0.05, 1.0)
    linear("classifier", 1000, sizes[-1])
    return {"architectures": ["ConvNextForImageClassification"], "model_type": "convnext", "num_channels": 3, "patch_size": 4, "num_stages": 4, "hidden_sizes": sizes, "depths": depths,
            "hidden_act": "gelu", "layer_norm_eps": 1e-12, "layer_scale_init_value": 1e-6, "image_size": 224} | labels()


def labels():
    return {"id2label": {str(i): f"LABEL_{i}" for i in range(1000)}, "label2id": {f"LABEL_{i}": i for i in range(1000)}}


config = {"bert": bert, "resnet": resnet, "convnext": convnext}[a.kind]()
header, offset = {"__metadata__": {"format": "pt"}}, 0
for name, (shape, *_) in tensors.items():
    size = 4 * math.prod(shape)
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + size]}
    offset += size
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
a.out.mkdir(parents=True, exist_ok=True)
(a.out / "config.json").write_text(json.dumps(config, indent=2))
if a.kind != "bert":
    (a.out / "preprocessor_config.json").write_text(json.dumps({
        "image_processor_type": "ConvNextImageProcessor", "do_resize": True, "size": {"shortest_edge": 224}, "crop_pct": 0.875, "resample": 3, "do_rescale": True,
        "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}, indent=2))
rng = random.Random(0)
normal = array.array("f", (rng.gauss(0, 1) for _ in range(1 << 18)))
scaled = {}
with open(a.out / "model.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text)
    for i, (shape, deviation, *mean) in enumerate(tensors.values()):
        key = deviation, *mean
        if key not in scaled:
            scaled[key] = array.array("f", (v * deviation + sum(mean) for v in normal))
        block, left = memoryview(scaled[key]), math.prod(shape)
        start = i * 7919 % len(block)
        while left > 0:
            n = min(left, len(block) - start)
            f.write(block[start:start + n])
            left, start = left - n, 0
print(f"{a.out}: {len(tensors)} tensors, {(a.out / 'model.safetensors').stat().st_size / 1e6:.0f} MB")
