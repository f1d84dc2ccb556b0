#!/usr/bin/env python3
"""More golden cases in the layout of make_processors.py: crops larger than the picture, the older forms of fields, classes that
only model_type names. `model_type` in case.json is what config.json would say.

    make_more.py        (writes into its own folder; made with transformers 4.57.6, Pillow 13.0.0, numpy; needs no torch)
"""
import json, pathlib
import numpy as np, transformers as tf
from PIL import Image, ImageOps
from safetensors.numpy import save_file

out = pathlib.Path(__file__).parent
old = dict(image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])
cases = {
    "pad-odd": (tf.BitImageProcessor, {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 20}, "crop_size": {"height": 33, "width": 26}}, None),
    "pad-even": (tf.DeiTImageProcessor, {"image_processor_type": "DeiTImageProcessor", "size": {"height": 11, "width": 30}, "crop_size": {"height": 16, "width": 17}}, None),
    "no-resize": (tf.BeitImageProcessor, {"image_processor_type": "BeitImageProcessor", "do_resize": False, "crop_size": {"height": 40, "width": 60}}, None),
    "numbers": (tf.ConvNextImageProcessor, {"feature_extractor_type": "ConvNextFeatureExtractor", "size": 60, "crop_pct": None, "resample": 3, **old}, None),
    "number-square": (tf.ViTImageProcessor, {"feature_extractor_type": "ViTFeatureExtractor", "size": 30, "resample": 2, "do_normalize": False}, None),
    "number-shortest": (tf.BitImageProcessor, {"image_processor_type": "BitImageProcessorFast", "size": 25, "crop_size": 24, "do_rescale": False}, None),
    "defaults": (tf.ConvNextImageProcessor, {"size": {"shortest_edge": 31}}, "resnet"),
    "pair": (tf.ViTImageProcessor, {"size": [20, 35], "rescale_factor": 0.5, "image_mean": 0.25, "image_std": 0.75}, "vit"),
    "box": (tf.ViTImageProcessor, {"image_processor_type": "ViTImageProcessor", "size": {"height": 17, "width": 29}, "resample": 4}, None),
    "hamming": (tf.ViTImageProcessor, {"image_processor_type": "ViTImageProcessor", "size": {"height": 41, "width": 19}, "resample": 5}, None),
}
for name, (kind, config, model_type) in cases.items():
    for picture in ("wide.png", "tall.png"):
        image = ImageOps.exif_transpose(Image.open(out / "images" / picture)).convert("RGB")
        values = kind.from_dict(dict(config))(images=image, return_tensors="np")["pixel_values"].astype(np.float32)
        folder = out / "cases" / f"{name}.{picture.replace('.', '-')}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "preprocessor_config.json").write_text(json.dumps(config, indent=2) + "\n")
        save_file({"pixel_values": np.ascontiguousarray(values)}, folder / "outputs.safetensors")
        case = {"name": folder.name, "input": f"images/{picture}", "outputs": {"pixel_values": list(values.shape)}}
        (folder / "case.json").write_text(json.dumps(case | ({"model_type": model_type} if model_type else {}), indent=1) + "\n")
