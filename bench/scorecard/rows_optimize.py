"""Section 3: optimizers."""
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from graphs import external, graph, model, node, normal
from judge import Wrong, all_of, graphs_of, numbers, only_ops, ops, same_interface, valid
from rows import Case, row

right_numbers = all_of(valid, same_interface, numbers())


def layer_norm(gamma, shape, beta=None):
    nodes = [node("ReduceMean", "x", "m", axes=[-1]), node("Sub", "x m", "d"), node("Pow", "d two", "p"), node("ReduceMean", "p", "v", axes=[-1]),
             node("Add", "v eps", "e"), node("Sqrt", "e", "s"), node("Div", "d s", "n"), node("Mul", "n gamma", "t"), node("Add", "t beta", "y")]
    return model(nodes, {"x": shape}, {"y": shape},
                 {"two": np.float32(2), "eps": np.float32(1e-5), "gamma": gamma, "beta": normal(4) if beta is None else beta})


@row("O1", "optimize", "LayerNormalization fused though gamma is not of X's shape", "no fusion unless the shape is proven; the same numbers")
def o1():
    for label, gamma in (("gamma1", normal(1)), ("gamma21", normal(2, 1)), ("gamma24", normal(2, 4)), ("gamma4", normal(4))):
        for kind, shape in (("fixed", [2, 4]), ("dynamic", ["n", "m"])):
            yield Case(f"{label}-{kind}", layer_norm(gamma, shape), [{"x": normal(2, 4)}], right_numbers)
    yield Case("beta1", layer_norm(normal(4), [2, 4], normal(1)), [{"x": normal(2, 4)}], right_numbers)


@row("O2", "optimize", "SimplifiedLayerNormalization swallows a Mul that broadcasts", "y[1,2], not fused")
def o2():
    nodes = [node("Pow", "x two", "p"), node("ReduceMean", "p", "v", axes=[-1], keepdims=1), node("Add", "v eps", "e"), node("Sqrt", "e", "s"),
             node("Div", "x s", "n"), node("Mul", "n scale", "y")]
    constants = {"two": np.float32(2), "eps": np.float32(1e-5), "scale": np.float32([2, 3])}
    yield Case("fixed", model(nodes, {"x": [1, 1]}, {"y": [1, 2]}, constants), [{"x": np.float32([[4]])}], right_numbers,
               wanted=[{"y": np.float32([[2, 3]])}])
    yield Case("dynamic", model(nodes, {"x": ["n", "m"]}, {"y": ["n", "k"]}, constants), [{"x": np.float32([[4]])}], right_numbers,
               wanted=[{"y": np.float32([[2, 3]])}])


@row("O5", "optimize", "Dropout removed: its mask becomes the data", "an all-true mask, or no removal")
def o5():
    nodes = [node("Relu", "x", "r"), node("Dropout", "r ratio", "y mask")]
    m = model(nodes, {"x": [2, 3]}, {"y": [2, 3], "mask": (T.BOOL, [2, 3])}, {"ratio": np.float32(0.5)})
    x = normal(2, 3)
    yield Case("output", m, [{"x": x}], right_numbers, wanted=[{"y": np.maximum(x, 0), "mask": np.ones((2, 3), bool)}])
    nodes = [node("Dropout", "x", "d mask"), node("Cast", "mask", "f", to=T.FLOAT), node("Add", "d f", "y")]
    yield Case("used", model(nodes, {"x": [2, 3]}, {"y": [2, 3]}), [{"x": x}], right_numbers, wanted=[{"y": x + 1}])


def batch_norm(channels):
    return {"g": normal(channels) + 2, "bb": normal(channels), "mu": normal(channels), "var": np.abs(normal(channels)) + 0.5}


@row("O6", "optimize", "Conv+BatchNormalization folded at run time", "1 Conv with folded W and b")
def o6():
    nodes = [node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("BatchNormalization", "c g bb mu var", "y")]
    check = all_of(right_numbers, only_ops(Conv=1))
    yield Case("no-bias", model(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 4, 8, 8]}, {"w": normal(4, 3, 3, 3), **batch_norm(4)}), [{"x": normal(1, 3, 8, 8)}], check)
    nodes = [node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), node("BatchNormalization", "c g bb mu var", "y")]
    yield Case("bias", model(nodes, {"x": ["n", 3, 8, 8]}, {"y": ["n", 4, 8, 8]}, {"w": normal(4, 3, 3, 3), "b": normal(4), **batch_norm(4)}),
               [{"x": normal(2, 3, 8, 8)}], check)


@row("O7", "optimize", "two Conv+BN that share weights: duplicate initializer names", "fresh unique names")
def o7():
    nodes = [node("Conv", "x w", "c1", name="conv"), node("BatchNormalization", "c1 g bb mu var", "n1", name="bn"),
             node("Conv", "z w", "c2", name="conv"), node("BatchNormalization", "c2 g bb mu var", "n2", name="bn"), node("Add", "n1 n2", "y")]
    feeds = [{"x": normal(1, 3, 4, 4), "z": normal(1, 3, 4, 4)}]
    io = {"x": [1, 3, 4, 4], "z": [1, 3, 4, 4]}, {"y": [1, 4, 4, 4]}
    shared = model(nodes, *io, {"w": normal(4, 3, 1, 1), **batch_norm(4)})
    for i, n in enumerate(shared.graph.node):
        n.name = f"{n.name}{i}"
    yield Case("shared", shared, feeds, all_of(right_numbers, ops(BatchNormalization=0)))
    nameless = onnx.ModelProto.FromString(shared.SerializeToString())
    for n in nameless.graph.node:
        n.name = ""
    yield Case("nameless", nameless, feeds, right_numbers)
    taken = model([n for n in nameless.graph.node], *io, {"w": normal(4, 3, 1, 1), **batch_norm(4)})
    for old, new in (("w", "conv.weight"), ("n1", "conv.weight_bn"), ("n2", "conv.weight_1")):
        for n in taken.graph.node:
            n.input[:] = [new if i == old else i for i in n.input]
            n.output[:] = [new if o == old else o for o in n.output]
        for t in taken.graph.initializer:
            t.name = new if t.name == old else t.name
    yield Case("names-taken", taken, feeds, right_numbers)


@row("O9", "command", "a difference of 3.8e-6 reported as a bug", "the tolerance is stated, and the largest difference of every run reported")
def o9():
    nodes = [node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("BatchNormalization", "c g bb mu var", "y")]
    m = model(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 4, 8, 8]}, {"w": normal(4, 3, 3, 3), **batch_norm(4)})

    def command(winml, folder, output):
        return winml("optimize", "-m", folder / "model.onnx", "-o", output)

    def judge(result):
        right_numbers(result)
        r = result.report
        for key in ("max_abs_diff", "max_rel_diff", "tolerance"):
            if not isinstance(r.get(key), (int, float)):
                raise Wrong(f"the report has no {key}")
        if not 0 <= r["max_rel_diff"] <= r["tolerance"]:
            raise Wrong("the difference is above the tolerance")
    yield Case("report", m, [{"x": normal(1, 3, 8, 8)}], judge, options={"command": command})


def keeps_reference(name, location, length):
    def check(result):
        for t in result.model.graph.initializer:
            if t.data_location != T.EXTERNAL and t.raw_data:
                array = numpy_helper.to_array(t)
                if array.nbytes == length:
                    return
            fields = {e.key: e.value for e in t.external_data}
            if t.data_location == T.EXTERNAL and fields.get("location") and int(fields.get("length", length)) == length:
                return
        raise Wrong(f"the data of {name} is lost")
    return check


@row("O10", "optimize", "external data lost when a model is loaded without it", "references survive, nothing needs loading")
def o10():
    w = normal(64, 64)
    nodes = [node("Identity", "x", "i"), node("Sum", "i w", "s"), node("Identity", "s", "t"), node("Relu", "t", "y")]
    m = model(nodes, {"x": [64, 64]}, {"y": [64, 64]}, {"w": external("w", T.FLOAT, [64, 64], "weights.bin", w.nbytes)})
    x = normal(64, 64)
    wanted = [{"y": np.maximum(x + w, 0)}]
    yield Case("present", m, [{"x": x}], right_numbers, wanted=wanted, files={"weights.bin": w.tobytes()})

    def restored(result):
        (result.path.parent / "weights.bin").write_bytes(w.tobytes())
        try:
            right_numbers(result)
        finally:
            (result.path.parent / "weights.bin").unlink()
    yield Case("absent", m, [{"x": x}], restored, wanted=wanted)


@row("O12", "optimize", "fused Gemm has the attribute alpha twice", "attributes kept apart; the checker after each pass")
def o12():
    for alpha in (0.5, 2.0):
        nodes = [node("Gemm", "x w b", "g", alpha=alpha, beta=0.25), node("LeakyRelu", "g", "y", alpha=0.1)]
        yield Case(f"alpha{alpha}", model(nodes, {"x": [2, 4]}, {"y": [2, 3]}, {"w": normal(4, 3), "b": normal(3)}), [{"x": normal(2, 4)}], all_of(right_numbers, once))


def once(result):
    for g in graphs_of(result.model.graph):
        for n in g.node:
            names = [a.name for a in n.attribute]
            if len(set(names)) != len(names):
                raise Wrong(f"{n.op_type} {n.name} has an attribute twice")


@row("O13", "optimize", "SkipLayerNormalization in float16 loses the statistics", "float32 statistics; a numeric check before a fusion is accepted")
def o13():
    for label, scale in (("large", 3000.0), ("small", 1.0)):
        x, s = (normal(1, 4, 64, scale=scale).astype(np.float16) for _ in range(2))
        gamma, beta = (normal(64) + 1).astype(np.float16), normal(64).astype(np.float16)
        total = (x + s).astype(np.float64)
        y = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-5) * gamma + beta
        io = {"x": (T.FLOAT16, [1, 4, 64]), "s": (T.FLOAT16, [1, 4, 64])}, {"y": (T.FLOAT16, [1, 4, 64])}
        check = all_of(valid, same_interface, numbers(4e-3))
        nodes = [node("Add", "x s", "a"), node("LayerNormalization", "a gamma beta", "y", axis=-1, epsilon=1e-5)]
        yield Case(f"{label}-op", model(nodes, *io, {"gamma": gamma, "beta": beta}), [{"x": x, "s": s}], check, wanted=[{"y": y.astype(np.float16)}])
        nodes = [node("Add", "x s", "a16"), node("Cast", "a16", "a", to=T.FLOAT), node("ReduceMean", "a", "m", axes=[-1]), node("Sub", "a m", "d"),
                 node("Pow", "d two", "p"), node("ReduceMean", "p", "v", axes=[-1]), node("Add", "v eps", "e"), node("Sqrt", "e", "q"),
                 node("Div", "d q", "n"), node("Cast", "n", "n16", to=T.FLOAT16), node("Mul", "n16 gamma", "t"), node("Add", "t beta", "y")]
        constants = {"two": np.float32(2), "eps": np.float32(1e-5), "gamma": gamma, "beta": beta}
        yield Case(f"{label}-chain", model(nodes, *io, constants), [{"x": x, "s": s}], check, wanted=[{"y": y.astype(np.float16)}])


@row("O17", "optimize", "Identity removal: inner, at an output, from input to output", "the producer is renamed for an output; input to output stays")
def o17():
    x = normal(2, 3)
    io = {"x": [2, 3]}, {"y": [2, 3]}
    yield Case("inner", model([node("Relu", "x", "r"), node("Identity", "r", "i"), node("Neg", "i", "y")], *io), [{"x": x}],
               all_of(right_numbers, only_ops(Relu=1, Neg=1)))
    yield Case("output", model([node("Relu", "x", "r"), node("Identity", "r", "y")], *io), [{"x": x}], all_of(right_numbers, only_ops(Relu=1)))
    yield Case("through", model([node("Identity", "x", "y")], *io), [{"x": x}], all_of(right_numbers, only_ops(Identity=1)))
    two = model([node("Relu", "x", "r"), node("Identity", "r", "y"), node("Identity", "r", "z")], {"x": [2, 3]}, {"y": [2, 3], "z": [2, 3]})
    yield Case("two-outputs", two, [{"x": x}], right_numbers)


@row("O18", "optimize", "an output's symbol is lost; sub-graphs become invalid", "symbols kept, sub-graphs verified")
def o18():
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Unsqueeze", "n axes", "u"), node("Concat", "u rest", "t", axis=0), node("Reshape", "x t", "y")]
    constants = {"zero": np.int64(0), "axes": np.int64([0]), "rest": np.int64([2, 2])}
    yield Case("symbol", model(nodes, {"x": ["N", 4]}, {"y": ["N", 2, 2]}, constants), [{"x": normal(1, 4)}, {"x": normal(3, 4)}], right_numbers)
    then = graph([node("Identity", "r", "ti"), node("Mul", "ti w", "ty")], {}, {"ty": ["N", 4]}, name="then")
    other = graph([node("Identity", "w", "ei"), node("Add", "r ei", "ey")], {}, {"ey": ["N", 4]}, {"unused": np.float32(1)}, name="else")
    nodes = [node("Identity", "x", "i"), node("Relu", "i", "r"), node("If", "c", "y", then_branch=then, else_branch=other)]
    feeds = [{"x": normal(2, 4), "c": np.array(c)} for c in (True, False)]
    yield Case("if", model(nodes, {"x": ["N", 4], "c": (T.BOOL, [])}, {"y": ["N", 4]}, {"w": normal(4)}), feeds, right_numbers)
    body = graph([node("Identity", "cond", "cond_out"), node("Add", "acc r", "a"), node("Mul", "a w", "acc_out"), node("Identity", "acc_out", "each")],
                 {"it": (T.INT64, []), "cond": (T.BOOL, []), "acc": [2, 4]}, {"cond_out": (T.BOOL, []), "acc_out": [2, 4], "each": [2, 4]}, name="body")
    nodes = [node("Relu", "x", "r0"), node("Identity", "r0", "r"), node("Loop", "trip _ x", "y all", body=body)]
    yield Case("loop", model(nodes, {"x": [2, 4], "trip": (T.INT64, [])}, {"y": [2, 4], "all": ["T", 2, 4]}, {"w": normal(4)}),
               [{"x": normal(2, 4), "trip": np.array(3)}], right_numbers)
    constant = graph([node("Constant", "_", "tc", value=numpy_helper.from_array(np.float32([1, 2, 3, 4])))], {}, {"tc": [4]}, name="then")
    constant.node[0].ClearField("input")
    other = graph([node("Relu", "k", "ec")], {}, {"ec": [4]}, name="else")
    nodes = [node("If", "yes", "b", then_branch=constant, else_branch=other), node("Add", "x b", "y")]
    yield Case("if-constant", model(nodes, {"x": ["N", 4]}, {"y": ["N", 4]}, {"yes": np.bool_(False), "k": np.float32([-1, 2, -3, 4])}), [{"x": normal(2, 4)}], right_numbers)


@row("O20", "optimize", "patterns die on models without their external data or with unknown operators", "topology checks go on, value checks are skipped with a note")
def o20():
    nodes = [node("Identity", "x", "i"), node("Foo", "i", "f", domain="my.domain"), node("Add", "f w", "a"), node("Identity", "a", "b"), node("Relu", "b", "y")]
    m = model(nodes, {"x": [64, 64]}, {"y": [64, 64]}, {"w": external("w", T.FLOAT, [64, 64], "gone.bin", 64 * 64 * 4)}, domains=("my.domain",))
    check = all_of(same_interface, keeps_reference("w", "gone.bin", 64 * 64 * 4), ops(Identity=0, Foo=1, Relu=1))
    yield Case("custom-and-absent", m, [], check)
    yield Case("custom", model(nodes, {"x": [64, 64]}, {"y": [64, 64]}, {"w": normal(64, 64)}, domains=("my.domain",)), [], all_of(same_interface, ops(Identity=0, Foo=1, Relu=1)))
