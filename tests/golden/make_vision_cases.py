#!/usr/bin/env python3
"""Golden cases of models of images, with options that few checkpoints have: tests/data/option_cases.

    make_vision_cases.py OUT [NAME]

As make_option_cases.py; those of the timm library need it too (made with timm 1.0.31).
"""
import json
import pathlib
import sys

import torch
import transformers as tf
from make_option_cases import describe, make_case, redraw
from safetensors.torch import save_file

VIT = dict(hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=19, num_channels=1, num_labels=3)
DINO = {k: v for k, v in VIT.items() if k != "intermediate_size"}
SWIN = dict(embed_dim=8, depths=[2, 2], num_heads=[2, 4], num_labels=3)

# name -> class, options, shape of the image
CASES = {
    "beit.image-classification.other-size": ("BeitForImageClassification", {**VIT, "image_size": 32, "patch_size": 8, "use_absolute_position_embeddings": True, "use_relative_position_bias": True, "layer_scale_init_value": 0}, (2, 1, 24, 43)),
    "beit.image-feature-extraction.shared-other-size": ("BeitModel", {**VIT, "image_size": 32, "patch_size": 8, "use_shared_relative_position_bias": True, "use_mean_pooling": False, "hidden_act": "relu"}, (1, 1, 48, 24)),
    "beit.image-feature-extraction.oblong": ("BeitModel", {**VIT, "image_size": [16, 24], "patch_size": 4, "use_shared_relative_position_bias": True, "use_relative_position_bias": True}, (1, 1, 16, 24)),
    "beit.image-classification.pruned": ("BeitForImageClassification", {**VIT, "image_size": 16, "patch_size": 4, "pruned_heads": {0: [1]}}, (1, 1, 16, 16)),
    "dinov2.image-classification.other-size": ("Dinov2ForImageClassification", {**DINO, "image_size": 32, "patch_size": 8, "mlp_ratio": 3, "use_swiglu_ffn": True, "use_mask_token": False}, (2, 1, 24, 43)),
    "dinov2.image-feature-extraction.pruned": ("Dinov2Model", {**DINO, "image_size": 16, "patch_size": 4, "qkv_bias": False, "pruned_heads": {1: [0, 2]}, "hidden_act": "silu"}, (1, 1, 16, 16)),
    "dinov2_with_registers.image-classification.smaller": ("Dinov2WithRegistersForImageClassification", {**DINO, "image_size": 48, "patch_size": 8, "num_register_tokens": 2}, (1, 1, 24, 32)),
    "dinov2_with_registers.image-feature-extraction.larger": ("Dinov2WithRegistersModel", {**DINO, "image_size": 24, "patch_size": 8, "num_register_tokens": 1}, (2, 1, 40, 56)),
    "swin.image-classification.padded": ("SwinForImageClassification", {**SWIN, "image_size": 32, "patch_size": 2, "window_size": 5, "mlp_ratio": 1.5, "hidden_act": "relu"}, (2, 3, 31, 45)),
    "swinv2.image-feature-extraction.small": ("Swinv2Model", {**SWIN, "image_size": [24, 16], "patch_size": 4, "window_size": 7}, (1, 3, 24, 24)),
    "swin2sr.image-to-image.direct": ("Swin2SRForImageSuperResolution", dict(image_size=16, embed_dim=8, depths=[2], num_heads=[2], window_size=4, upscale=3, upsampler="pixelshuffledirect", resi_connection="3conv", num_channels=1), (2, 1, 12, 16)),
    "swin2sr.image-to-image.same": ("Swin2SRForImageSuperResolution", dict(image_size=16, embed_dim=8, depths=[1], num_heads=[2], window_size=4, upscale=1, upsampler="", img_range=255.0), (1, 3, 8, 8)),
    "convnextv2.image-classification.odd": ("ConvNextV2ForImageClassification", dict(hidden_sizes=[4, 6, 8], depths=[2, 1, 1], num_stages=3, num_labels=3, hidden_act="silu", num_channels=1, patch_size=2), (2, 1, 31, 23)),
}

# name -> class, network, its arguments, shape of the image
TIMM = {
    "timm_wrapper.image-classification.vit": ("TimmWrapperForImageClassification", "vit_tiny_patch16_224", dict(depth=2, embed_dim=24, num_heads=3, img_size=32, patch_size=8), (2, 3, 32, 32)),
    "timm_wrapper.image-classification.convnext-conv": ("TimmWrapperForImageClassification", "convnext_atto", dict(depths=[1, 1, 1, 1], dims=[8, 12, 16, 20]), (1, 3, 64, 64)),
    "timm_wrapper.image-feature-extraction.convnextv2": ("TimmWrapperModel", "convnextv2_tiny", dict(depths=[1, 1, 1, 1], dims=[8, 12, 16, 20]), (1, 3, 64, 64)),
}


def make_timm_case(folder, class_name, network, arguments, shape):
    generator = torch.Generator().manual_seed(sum(map(ord, folder.name)))
    model_class = getattr(tf, class_name)
    made = model_class(tf.TimmWrapperConfig(architecture=network, model_args=arguments, num_labels=5))
    redraw(made, generator)
    made.save_pretrained(folder)
    model = model_class.from_pretrained(folder).eval()
    inputs = {"pixel_values": torch.rand(shape, generator=generator) * 2 - 1}
    with torch.no_grad():
        result = model(**inputs)
    outputs = {name: result[name].contiguous() for name in ("logits", "last_hidden_state") if name in result}
    save_file(inputs, folder / "inputs.safetensors")
    save_file(outputs, folder / "outputs.safetensors")
    rows = [[path, type(m).__name__, type(m).__module__.startswith("torch.nn")] for path, m in model.named_modules()]
    (folder / "modules.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    case = {"name": folder.name, "model_type": "timm_wrapper", "task": folder.name.split(".")[1],
            "architecture": class_name, "inputs": describe(inputs), "outputs": describe(outputs),
            "atol": 2e-4, "rtol": 2e-4, "made_with": {"torch": torch.__version__, "transformers": tf.__version__}}
    (folder / "case.json").write_text(json.dumps(case, indent=1) + "\n")


def main():
    out, only = pathlib.Path(sys.argv[1]) / "option_cases", (sys.argv[2] if len(sys.argv) > 2 else "")
    for name, (class_name, options, shape) in CASES.items():
        if only in name:
            make_case(out / name, class_name, options, shape, None)
    for name, row in TIMM.items():
        if only in name:
            make_timm_case(out / name, *row)


if __name__ == "__main__":
    main()
