"""Writes the small models of this folder (onnx 1.23). They are committed; run it again only to change them."""
import json
import pathlib

import numpy as np
import onnx
from onnx import TensorProto as T, helper as h, numpy_helper as n

here = pathlib.Path(__file__).parent


def save(name, nodes, inputs, outputs, initializers=(), metadata=None, opset=17):
    graph = h.make_graph(nodes, name, inputs, outputs, list(initializers))
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", opset)], ir_version=8, producer_name="make_models")
    h.set_model_props(model, metadata or {})
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, here / f"{name}.onnx")


def value(name, kind, shape):
    return h.make_tensor_value_info(name, kind, shape)


# y = x @ w + b and the sum of y
w = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
b = np.array([0.5, -0.5], np.float32)
for name, scale in (("affine", 1.0), ("affine_off", 1.25)):
    save(name,
         [h.make_node("Gemm", ["x", "w", "b"], ["y"]), h.make_node("ReduceSum", ["y"], ["total"], keepdims=0)],
         [value("x", T.FLOAT, ["batch", 3])], [value("y", T.FLOAT, ["batch", 2]), value("total", T.FLOAT, [])],
         [n.from_array(w * np.float32(scale), "w"), n.from_array(b, "b")])

# Elements that are not float32
save("kinds",
     [h.make_node("Identity", ["text"], ["text_out"]), h.make_node("Cast", ["ids"], ["half_out"], to=T.FLOAT16),
      h.make_node("Not", ["flag"], ["flag_out"])],
     [value("text", T.STRING, ["n"]), value("ids", T.INT64, ["n"]), value("flag", T.BOOL, [])],
     [value("text_out", T.STRING, ["n"]), value("half_out", T.FLOAT16, ["n"]), value("flag_out", T.BOOL, [])])

# An output that is no tensor
save("sequence", [h.make_node("SequenceConstruct", ["x", "x"], ["pair"])], [value("x", T.FLOAT, [2])],
     [h.make_tensor_sequence_value_info("pair", T.FLOAT, [2])])

# A text model in small: ids of a table of 50 rows, a mask, and their ranges in the metadata
table = (np.arange(200, dtype=np.float32).reshape(50, 4) - 100) / 50
ranges = [{"name": "input_ids", "dtype": "int64", "shape": ["batch", "sequence"], "value_range": [0, 50]},
          {"name": "attention_mask", "dtype": "int64", "shape": ["batch", "sequence"], "value_range": [0, 2]}]
for name, metadata in (("tokens", {"winml.io.inputs": json.dumps(ranges)}), ("tokens_plain", {})):
    save(name,
         [h.make_node("Gather", ["table", "input_ids"], ["rows"]), h.make_node("Cast", ["attention_mask"], ["m"], to=T.FLOAT),
          h.make_node("Unsqueeze", ["m", "last"], ["m3"]), h.make_node("Mul", ["rows", "m3"], ["last_hidden_state"])],
         [value("input_ids", T.INT64, ["batch", "sequence"]), value("attention_mask", T.INT64, ["batch", "sequence"])],
         [value("last_hidden_state", T.FLOAT, ["batch", "sequence", 4])],
         [n.from_array(table, "table"), n.from_array(np.array([-1]), "last")], metadata)

# A batch that is fixed, and an output that is NaN wherever x is negative
save("sqrt", [h.make_node("Sqrt", ["x"], ["y"])], [value("x", T.FLOAT, [1, 4])], [value("y", T.FLOAT, [1, 4])])
save("abs_sqrt", [h.make_node("Abs", ["x"], ["a"]), h.make_node("Sqrt", ["a"], ["y"])],
     [value("x", T.FLOAT, [1, 4])], [value("y", T.FLOAT, [1, 4])])
