"""Section 4: conversion to float16."""
import numpy as np
import onnx
from onnx import TensorProto as T

from graphs import external, graph, model, node, normal, value
from judge import Wrong, all_of, numbers, ops, outputs, same_interface, says, valid
from rows import Case, row


def half(tolerance=5e-3):
    """Valid, the same interface, and the numbers of float16 with and without ONNX Runtime's optimizations."""
    return all_of(valid, same_interface, numbers(tolerance, ("none", "all")))


def has_half(name):
    def check(result):
        types = {t.name: t.data_type for t in result.model.graph.initializer}
        if T.FLOAT16 not in types.values():
            raise Wrong(f"{name} was not converted")
    return check


@row("F1", "float16", "an existing Cast to float keeps its target", "the Cast is retargeted, or cast again where a consumer needs it")
def f1():
    nodes = [node("Cast", "k", "f", to=T.FLOAT), node("Mul", "x f", "m"), node("MatMul", "m w", "y")]
    io = {"x": [2, 4], "k": (T.INT64, [2, 4])}, {"y": [2, 3]}
    feeds = [{"x": normal(2, 4), "k": np.arange(8, dtype=np.int64).reshape(2, 4)}]
    yield Case("multiplied", model(nodes, *io, {"w": normal(4, 3)}), feeds, all_of(half(), has_half("w")))
    nodes = [node("Cast", "k", "f", to=T.FLOAT), node("Mul", "x f", "m"), node("MatMul", "m w", "y"), node("CumSum", "f axis", "z")]
    yield Case("two-needs", model(nodes, io[0], {"y": [2, 3], "z": [2, 4]}, {"w": normal(4, 3), "axis": np.int64(1)}), feeds,
               half(), options={"float32_ops": ["CumSum"]})
    nodes = [node("Cast", "k", "z", to=T.FLOAT), node("Mul", "x z", "m"), node("MatMul", "m w", "y")]
    yield Case("output", model(nodes, io[0], {"y": [2, 3], "z": [2, 4]}, {"w": normal(4, 3)}), feeds, half())


@row("F2", "float16", "blocked nodes that take integers or doubles get float casts", "only float32 inputs are wrapped")
def f2():
    blocked = {"float32_ops": ["CumSum"]}
    axis = {"axis": np.int64(1)}
    big = np.int32([[2**25 + 1, 1, 3], [2**26 + 3, 5, 7]])
    nodes = [node("CumSum", "k axis", "c"), node("MatMul", "x w", "y")]
    yield Case("integers", model(nodes, {"k": (T.INT32, [2, 3]), "x": [2, 4]}, {"c": (T.INT32, [2, 3]), "y": [2, 3]}, axis | {"w": normal(4, 3)}),
               [{"k": big, "x": normal(2, 4)}], half(), options=blocked)
    doubles = np.float64([[1 + 1e-12, 2, 3]])
    nodes = [node("CumSum", "d axis", "c"), node("MatMul", "x w", "y")]

    def exact(result):
        half()(result)
        if not np.array_equal(outputs(result, "none")[0]["c"], np.cumsum(doubles, 1)):
            raise Wrong("the sum of doubles lost digits")
    yield Case("doubles", model(nodes, {"d": (T.DOUBLE, [1, 3]), "x": [2, 4]}, {"c": (T.DOUBLE, [1, 3]), "y": [2, 3]}, axis | {"w": normal(4, 3)}),
               [{"d": doubles, "x": normal(2, 4)}], exact, options=blocked)
    nodes = [node("Cast", "k", "f", to=T.FLOAT), node("CumSum", "f axis", "c"), node("Mul", "c w", "y")]
    yield Case("fed-by-cast", model(nodes, {"k": (T.INT64, [2, 3])}, {"y": [2, 3]}, axis | {"w": normal(3)}),
               [{"k": np.int64([[1, 2, 3], [4, 5, 6]])}], half(), options=blocked)


@row("F4", "float16", "nameless blocked nodes: colliding cast names", "names made from the tensors, unique")
def f4():
    nodes = [node("Mul", "x w", "a"), node("CumSum", "a axis", "b", name=""), node("Mul", "b w", "c"), node("CumSum", "c axis", "y", name="")]
    yield Case("two", model(nodes, {"x": [2, 4]}, {"y": [2, 4]}, {"w": normal(4), "axis": np.int64(1)}), [{"x": normal(2, 4)}], half(),
               options={"float32_ops": ["CumSum"]})
    nodes = [node("Mul", "x w", "a", name=""), node("CumSum", "a axis", "b", name=""), node("CumSum", "a axis0", "c", name=""), node("Add", "b c", "y", name="")]
    yield Case("one-tensor", model(nodes, {"x": [2, 4]}, {"y": [2, 4]}, {"w": normal(4), "axis": np.int64(1), "axis0": np.int64(0)}), [{"x": normal(2, 4)}], half(),
               options={"float32_ops": ["CumSum"]})


@row("F5", "float16", "casts for a branch placed in the main graph", "casts inside the branch, sorted; captured tensors keep their type for others")
def f5():
    then = graph([node("Mul", "r w", "ty")], {}, {"ty": [2, 4]}, name="then")
    other = graph([node("CumSum", "r axis", "ec"), node("Mul", "ec w", "ey")], {}, {"ey": [2, 4]}, name="else")
    nodes = [node("Mul", "x w", "r"), node("If", "c", "i", then_branch=then, else_branch=other), node("Add", "i r", "y")]
    feeds = [{"x": normal(2, 4), "c": np.array(c)} for c in (True, False)]
    io = {"x": [2, 4], "c": (T.BOOL, [])}, {"y": [2, 4]}
    yield Case("computed", model(nodes, *io, {"w": normal(4), "axis": np.int64(1)}), feeds, half(), options={"float32_ops": ["CumSum"]})
    then = graph([node("Mul", "x w", "ty")], {}, {"ty": [2, 4]}, name="then")
    other = graph([node("CumSum", "x axis", "ey")], {}, {"ey": [2, 4]}, name="else")
    nodes = [node("If", "c", "i", then_branch=then, else_branch=other), node("Mul", "x w", "r"), node("Add", "i r", "y")]
    yield Case("input", model(nodes, *io, {"w": normal(4), "axis": np.int64(1)}), feeds, half(), options={"float32_ops": ["CumSum"]})


@row("F7", "float16", "converting twice feeds nodes to themselves", "a no-op the second time")
def f7():
    nodes = [node("MatMul", "x w", "a"), node("CumSum", "a axis", "b"), node("Resize", "b _ scales", "c", mode="nearest"), node("Relu", "c", "y")]
    m = model(nodes, {"x": [2, 4]}, {"y": [4, 6]}, {"w": normal(4, 3), "axis": np.int64(1), "scales": np.float32([2, 2])})

    def same_again(result):
        half()(result)
        casts = result.count()["Cast"]
        if casts > 6:
            raise Wrong(f"{casts} Casts after the second time")
    yield Case("blocked", m, [{"x": normal(2, 4)}], same_again, options={"times": 2, "float32_ops": ["CumSum", "Resize"]})
    m = model([node("MatMul", "x w", "a"), node("Relu", "a", "y")], {"x": [2, 4]}, {"y": [2, 3]}, {"w": normal(4, 3)})
    yield Case("plain", m, [{"x": normal(2, 4)}], all_of(half(), ops(Cast=2, MatMul=1, Relu=1)), options={"times": 2})


@row("F9", "float16", "Cast to float16 and back merged though it rounds", "collapsed only where nothing is lost")
def f9():
    x = np.float32([[1.0003, 2.0011, 3.14159]])
    rounded = x.astype(np.float16).astype(np.float32)
    nodes = [node("Cast", "x", "h", to=T.FLOAT16), node("Cast", "h", "f", to=T.FLOAT), node("Sub", "x f", "y")]
    yield Case("rounding", model(nodes, {"x": [1, 3]}, {"y": [1, 3]}), [{"x": x}], all_of(valid, same_interface, numbers(1e-4)),
               wanted=[{"y": x - rounded}], options={"float32_ops": ["Sub"]})
    yield Case("rounding", model(nodes, {"x": [1, 3]}, {"y": [1, 3]}), [{"x": x}], right_difference, wanted=[{"y": x - rounded}], kind="optimize")
    nodes = [node("Cast", "x", "h", to=T.FLOAT16), node("Mul", "h h", "h2"), node("Cast", "h2", "f", to=T.FLOAT), node("CumSum", "f axis", "c"),
             node("Cast", "c", "g", to=T.FLOAT16), node("Add", "g h", "h3"), node("Cast", "h3", "y", to=T.FLOAT)]
    yield Case("islands", model(nodes, {"x": [1, 3]}, {"y": [1, 3]}, {"axis": np.int64(1)}), [{"x": x}], half(), options={"float32_ops": ["CumSum"]})


right_difference = all_of(valid, same_interface, numbers(1e-4))


@row("F10", "float16", "keep-io adds casts for initializers listed as inputs", "true inputs only")
def f10():
    m = model([node("MatMul", "x w", "a"), node("Add", "a b", "y")], {"x": [2, 4], "w": [4, 3], "b": [3]}, {"y": [2, 3]}, {"w": normal(4, 3), "b": normal(3)}, ir=3, opset=8)
    yield Case("ir3", m, [{"x": normal(2, 4)}], all_of(half(), ops(Cast=2), has_half("w")))


@row("F11", "float16", "a declared float32 output is lost to inference", "inputs and outputs are noted before anything changes")
def f11():
    x = [{"x": normal(2, 4)}]
    yield Case("plain", model([node("MatMul", "x w", "y")], {"x": [2, 4]}, {"y": [2, 3]}, {"w": normal(4, 3)}), x, all_of(half(), has_half("w")))
    nodes = [node("MatMul", "x w", "y"), node("Relu", "y", "z")]
    yield Case("output-used", model(nodes, {"x": [2, 4]}, {"y": [2, 3], "z": [2, 3]}, {"w": normal(4, 3)}, value_info=[value("y", T.FLOAT, [2, 3])]), x, half())
    nodes = [node("MatMul", "x w", "a"), node("CumSum", "a axis", "y")]
    yield Case("blocked-last", model(nodes, {"x": ["n", 4]}, {"y": ["n", 3]}, {"w": normal(4, 3), "axis": np.int64(1)}), x, half(), options={"float32_ops": ["CumSum"]})
    yield Case("through", model([node("Identity", "x", "y"), node("MatMul", "x w", "z")], {"x": [2, 4]}, {"y": [2, 4], "z": [2, 3]}, {"w": normal(4, 3)}), x, half())


rows_of_table, width = 530_000, 1024


def sparse_table(path, first, last):
    """A file of 2.17 GB whose first and last rows are not zero."""
    with open(path, "wb") as f:
        f.write(first.tobytes())
        f.seek((rows_of_table - 1) * width * 4)
        f.write(last.tobytes())


def table_model(first, last, **arguments):
    m = model([node("Gather", "table k", "g"), node("MatMul", "g w", "y")], {"k": (T.INT64, [3])}, {"y": [3, 4]},
              {"table": external("table", T.FLOAT, [rows_of_table, width], "table.bin", rows_of_table * width * 4), "w": arguments.pop("w")})
    return m, {"table.bin": lambda path: sparse_table(path, first, last)}


@row("F13", "float16", "models above 2 GB fail to serialize", "weights are never serialized", large=True)
def f13():
    first, last, w = normal(width), normal(width), normal(width, 4, scale=0.1)
    m, files = table_model(first, last, w=w)
    k = np.int64([0, 7, rows_of_table - 1])
    y = np.stack([first, np.zeros(width, np.float32), last]) @ w
    yield Case("table", m, [{"k": k}], all_of(same_interface, has_half("table"), numbers(5e-3)), wanted=[{"y": y}], files=files, large=True, timeout=600,
               calibration=[])


@row("F14", "float16", "stale shapes: buffers of another size re-used", "stale value_info dropped")
def f14():
    nodes = [node("Conv", "x w1", "a", pads=[1, 1, 1, 1]), node("Resize", "a _ scales", "r", mode="linear"), node("Conv", "r w2", "y", pads=[1, 1, 1, 1])]
    constants = {"w1": normal(4, 3, 3, 3, scale=0.2), "w2": normal(2, 4, 3, 3, scale=0.2), "scales": np.float32([1, 1, 2, 2])}
    io = {"x": [1, 3, "h", "w"]}, {"y": [1, 2, "h2", "w2"]}
    clean = model(nodes, *io, constants)
    feeds = [{"x": normal(1, 3, s, s)} for s in (8, 12)]
    yield Case("clean", clean, feeds, half(1e-2))
    import judge
    import tempfile
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(clean, folder + "/m.onnx")
        wanted = judge.run(folder + "/m.onnx", feeds)
    stale = model(nodes, *io, constants, value_info=[value("a", T.FLOAT, [1, 4, 8, 8]), value("r", T.FLOAT, [1, 4, 16, 16])])
    yield Case("stale", stale, feeds, all_of(same_interface, numbers(1e-2, ("none", "all"))), wanted=wanted)


@row("F15", "float16", "values beyond float16 clipped silently", "clipped tensors are counted and named; masks become -65504 by rule")
def f15():
    w = np.float32([[1e5, 1e-9], [0.5, -0.25]])
    m = model([node("MatMul", "x big_weight", "y")], {"x": [2, 2]}, {"y": [2, 2]}, {"big_weight": w})
    yield Case("named", m, [{"x": np.float32([[1e-4, 0.5], [2e-4, 0.25]])}], all_of(valid, same_interface, says("big_weight")))
    mask = np.where(np.tril(np.ones((4, 4))), 0, np.finfo(np.float32).min).astype(np.float32)
    nodes = [node("MatMul", "x w", "a"), node("Add", "a mask", "b"), node("Softmax", "b", "y", axis=-1)]
    yield Case("mask", model(nodes, {"x": [4, 4]}, {"y": [4, 4]}, {"w": normal(4, 4), "mask": mask}), [{"x": normal(4, 4)}], half())
    nodes = [node("Sub", "one keep", "off"), node("Mul", "off lowest", "mask"), node("MatMul", "x w", "a"), node("Add", "a mask", "b"), node("Softmax", "b", "y", axis=-1)]
    constants = {"w": normal(4, 4), "one": np.float32(1), "lowest": np.float32(np.finfo(np.float32).min)}
    yield Case("mask-computed", model(nodes, {"x": [4, 4], "keep": [4, 4]}, {"y": [4, 4]}, constants),
               [{"x": normal(4, 4), "keep": np.tril(np.ones((4, 4), np.float32))}], half())
