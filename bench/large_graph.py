#!/usr/bin/env python3
"""Write a large prequantized graph as published inpainting models have: 18,001 nodes; 598 INT8, 606 FLOAT and 299 INT64 initializers.

    large_graph.py OUT.onnx

299 stages of 60 nodes: a dynamically quantized convolution with its rescaling, bias and reshape, then element-wise nodes; a tail of
element-wise nodes with 8 scalars; one Identity at the output.
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

stages, per_stage, total = 299, 60, 18_001
shape = [1, 3, 6, 6]
rng = np.random.default_rng(11)
nodes, constants = [], {}


def constant(name, array):
    constants[name] = np.asarray(array)
    return name


def apply(kind, *inputs, outputs=1, **attributes):
    names = [f"v{len(nodes)}_{i}" for i in range(outputs)]
    nodes.append(helper.make_node(kind, inputs, names, f"n{len(nodes)}", **attributes))
    return names if outputs > 1 else names[0]


def stage(x, k):
    start = len(nodes)
    q, scale, zero = apply("DynamicQuantizeLinear", x, outputs=3)
    weight = constant(f"weight{k}", rng.integers(-50, 50, (3, 3, 3, 3)).astype(np.int8))
    y = apply("ConvInteger", q, weight, zero, constant(f"weight_zero{k}", np.int8(0)), pads=[1] * 4)
    factor = apply("Mul", scale, constant(f"weight_scale{k}", np.float32(0.005)))
    y = apply("Mul", apply("Cast", y, to=TensorProto.FLOAT), factor)
    y = apply("Add", y, constant(f"bias{k}", rng.normal(0, 0.1, (1, 3, 1, 1)).astype(np.float32)))
    y = apply("Reshape", y, constant(f"shape{k}", np.int64(shape)))
    kinds = ["Sigmoid", "Tanh", "Relu"]
    while len(nodes) - start < per_stage:
        i = len(nodes) % 4
        y = apply(kinds[i], y) if i < 3 else apply("Add", y, "offset")
    return y


for name, number in (("offset", -0.25), ("low", -1), ("high", 1), ("a", 0.9), ("b", 0.05), ("c", 1.1), ("d", -0.1), ("e", 0.8)):
    constant(name, np.float32(number))
x = "image"
for k in range(stages):
    x = stage(x, k)
x = apply("Mul", apply("Add", apply("Mul", apply("Add", apply("Mul", apply("Clip", x, "low", "high"), "a"), "b"), "c"), "d"), "e")
while len(nodes) < total - 1:
    x = apply("Tanh", x)
nodes.append(helper.make_node("Identity", [x], ["out"], "last"))
io = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n in ("image", "out")]
graph = helper.make_graph(nodes, "large", io[:1], io[1:], [numpy_helper.from_array(v, n) for n, v in constants.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, sys.argv[1])
