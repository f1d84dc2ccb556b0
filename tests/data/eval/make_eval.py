#!/usr/bin/env python3
"""Make a classifier of plain colours and a folder of images for it, and what ONNX Runtime and numpy say of them.

    make_eval.py      (writes into its own folder; needs onnx, onnxruntime, numpy, pillow)

The score of a class is a weighted sum of the mean red, green and blue; classes 3 to 6 are shades of red, so that a green
image labelled red is still among the best five and a red one labelled green is not. Some images are mislabelled.
"""
import json, pathlib
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper
from PIL import Image

out = pathlib.Path(__file__).parent
weights = np.zeros((3, 7), np.float32)
weights[0, [0, 3, 4, 5, 6]] = [1, .9, .8, .7, .6]
weights[1, 1] = weights[2, 2] = 1


def model(name, batch, kind=TensorProto.FLOAT, more=0):
    cast = [helper.make_node("Cast", ["pixel_values"], ["x"], to=TensorProto.FLOAT)]
    nodes = cast + [helper.make_node("ReduceMean", ["x"], ["mean"], axes=[2, 3], keepdims=0), helper.make_node("MatMul", ["mean", "weights"], ["logits"])]
    graph = helper.make_graph(nodes, "colours", [helper.make_tensor_value_info("pixel_values", kind, [batch, 3, 4, 4])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [batch, 7])], [onnx.numpy_helper.from_array(weights + np.float32(more), "weights")])
    folder = out / name
    folder.mkdir(exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "model.onnx")
    names = ["Red", "green", "blue", "rose", "ruby", "rust", "wine"]
    (folder / "config.json").write_text(json.dumps({"architectures": ["ViTForImageClassification"], "model_type": "vit", "id2label": {str(i): n for i, n in enumerate(names)}, "label2id": {n: i for i, n in enumerate(names)}}, indent=2) + "\n")
    (folder / "preprocessor_config.json").write_text(json.dumps({"image_processor_type": "ViTImageProcessor", "size": {"height": 4, "width": 4}, "do_normalize": False}, indent=2) + "\n")


model("free", "batch"); model("fixed", 3); model("half", "batch", TensorProto.FLOAT16); model("other", "batch", more=0.01)
red, green, blue = (255, 0, 0), (0, 255, 0), (0, 0, 255)
images = {"red": [red, (200, 40, 30), green], "green": [green, red], "BLUE": [blue, green]}  # names differ in case from the model's
for split, content in {"test": images, "train": {"red": [red], "green": [green], "BLUE": [blue]}}.items():
    for label, colours in content.items():
        for i, colour in enumerate(colours):
            path = out / "images" / split / label / f"{i}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4, 4), colour).save(path)

session = onnxruntime.InferenceSession(out / "free" / "model.onnx")
ids = {"red": 0, "green": 1, "BLUE": 2}
ranks = []
for label, colours in images.items():
    for colour in colours:
        x = np.asarray(Image.new("RGB", (4, 4), colour), np.float32).transpose(2, 0, 1)[None] / 255
        order = np.argsort(-session.run(None, {"pixel_values": x})[0][0], kind="stable")
        ranks.append(list(order).index(ids[label]))
expected = {"samples": len(ranks), "accuracy": float(np.mean(np.array(ranks) < 1)), "top_5": float(np.mean(np.array(ranks) < 5))}
(out / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")
print(ranks, expected)
