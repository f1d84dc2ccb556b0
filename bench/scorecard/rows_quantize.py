"""Section 5: quantization."""
import json

import numpy as np
import onnx
from onnx import TensorProto as T

import rows_float16 as table
from graphs import model, node, normal
from judge import Wrong, all_of, numbers, quantized, run, same_interface, scales_finite, snr, valid, weight_error
from rows import Case, row

both = ("none", "all")


def good(least=25, at=both, *more):
    """Valid, the same interface, finite scales, and this many dB at both ends of ONNX Runtime's levels."""
    return all_of(valid, same_interface, scales_finite, snr(least, at), *more)


def feeds(*shape, n=4, name="x"):
    return [{name: normal(*shape)} for _ in range(n)]


types = {"uint8": {"weight_type": "uint8"}, "int8": {"weight_type": "int8", "symmetric": True},
         "uint8-per-channel": {"weight_type": "uint8", "per_channel": True}, "int8-per-channel": {"weight_type": "int8", "symmetric": True, "per_channel": True}}


@row("Q1", "quantize", "the scale of an int32 bias is tiny: the bias overflows", "the weight's scale is raised, or the bias stays float")
def q1():
    for label, options in types.items():
        m = model([node("Conv", "x w b", "y", pads=[1, 1, 1, 1])], {"x": [1, 1, 8, 8]}, {"y": [1, 2, 8, 8]}, {"w": normal(2, 1, 3, 3, scale=1e-9), "b": np.float32([5, -5])})
        yield Case(label, m, feeds(1, 1, 8, 8), good(25), options=options)


@row("Q2", "quantize", "biases of Gemm that are not vectors", "the bias is broadcast, or stays float")
def q2():
    for shape in ((), (1,), (3,), (1, 3), (2, 1), (2, 3)):
        for label in ("uint8", "int8-per-channel"):
            m = model([node("Gemm", "x w b", "y")], {"x": [2, 4]}, {"y": [2, 3]}, {"w": normal(4, 3), "b": normal(*shape)})
            yield Case("b" + "x".join(map(str, shape)) + "-" + label, m, feeds(2, 4), good(25), options=types[label])


@row("Q2d", "quantize", "Gemm with alpha and a quantized bias: optimizations change the result", "the scale of the bias knows alpha, or nothing is fused")
def q2d():
    constants = {"w": normal(4, 3), "b": np.float32([3, -4, 5])}
    for alpha in (2.0, 0.25):
        for label in ("uint8", "int8-per-channel"):
            m = model([node("Gemm", "x w b", "y", alpha=alpha)], {"x": [2, 4]}, {"y": [2, 3]}, constants)
            yield Case(f"alpha{alpha}-{label}", m, feeds(2, 4), good(22), options=types[label])
    m = model([node("Gemm", "x w b", "y", beta=2.0)], {"x": [2, 4]}, {"y": [2, 3]}, constants)
    yield Case("beta2", m, feeds(2, 4), good(22))
    yield Case("qdq-given", qdq_gemm(zero=0), [{"x": normal(2, 4)}], all_of(valid, same_interface, numbers(1e-2)), kind="optimize")


def qdq_gemm(zero, alpha=2.0):
    nodes = [node("QuantizeLinear", "x sx zx", "xq"), node("DequantizeLinear", "xq sx zx", "xd"), node("DequantizeLinear", "wq sw zw", "wd"),
             node("DequantizeLinear", "bq sb zb", "bd"), node("Gemm", "xd wd bd", "g", alpha=alpha), node("QuantizeLinear", "g sy zy", "yq"), node("DequantizeLinear", "yq sy zy", "y")]
    constants = {"sx": np.float32(0.03), "zx": np.uint8(128), "wq": np.int8([[10, -20, 30], [40, 5, -60], [7, 80, 9], [-10, 11, 12]]), "sw": np.float32(0.02), "zw": np.int8(0),
                 "bq": np.int32([3000, -2000, 1000]), "sb": np.float32(0.0006), "zb": np.int32(zero), "sy": np.float32(0.08), "zy": np.uint8(120)}
    return model(nodes, {"x": [2, 4]}, {"y": [2, 3]}, constants)


@row("Q2e", "quantize", "transA, a bias's zero point and beta=0 ignored", "handled, or refused with the reason")
def q2e():
    a = {"x": [4, 2]}, {"y": [2, 3]}
    for label in ("uint8", "int8-per-channel"):
        m = model([node("Gemm", "x w b", "y", transA=1)], *a, {"w": normal(4, 3), "b": normal(3)})
        yield Case("transA-" + label, m, feeds(4, 2), good(25), options=types[label], may_refuse=True)
    m = model([node("Gemm", "x w b", "y", beta=0.0)], {"x": [2, 4]}, {"y": [2, 3]}, {"w": normal(4, 3), "b": normal(3, scale=50)})
    yield Case("beta0", m, feeds(2, 4), good(25), may_refuse=True)
    m = model([node("Gemm", "x w b", "y", transA=1, transB=1, alpha=0.5)], {"x": [64, 2]}, {"y": [2, 3]}, {"w": normal(3, 64), "b": normal(3)})
    yield Case("blocks-transA", m, feeds(64, 2), all_of(valid, same_interface, snr(12)), kind="weight-only", may_refuse=True)
    m = model([node("Gemm", "x w b", "y", beta=0.0)], {"x": [2, 64]}, {"y": [2, 3]}, {"w": normal(64, 3), "b": normal(3, scale=50)})
    yield Case("blocks-beta0", m, feeds(2, 64), all_of(valid, same_interface, snr(12)), kind="weight-only", may_refuse=True)
    yield Case("bias-zero-point", without_zero_check(qdq_gemm(zero=0, alpha=1.0)), [{"x": normal(2, 4)}], all_of(valid, same_interface, numbers(1e-2)), kind="optimize", may_refuse=True)


def without_zero_check(m):
    """The bias with a zero point, spelt out: ONNX's DequantizeLinear allows none for int32."""
    nodes = [n for n in m.graph.node if n.output[0] != "bd"]
    nodes[0:0] = [node("Sub", "bq shift", "bs"), node("DequantizeLinear", "bs sb", "bd")]
    tensors = {t.name: t for t in m.graph.initializer}
    tensors["shift"] = onnx.numpy_helper.from_array(np.int32(700), "shift")
    return model(nodes, {"x": [2, 4]}, {"y": [2, 3]}, tensors)


scales = np.float32([.1, 1, 5, 20, 100])


@row("Q3", "quantize", "ConvTranspose per channel on axis 0", "the axis of output channels, with groups too")
def q3():
    for label in ("int8-per-channel", "uint8-per-channel"):
        w = normal(2, 5, 3, 3) * scales.reshape(1, 5, 1, 1)
        m = model([node("ConvTranspose", "x w b", "y")], {"x": [1, 2, 6, 6]}, {"y": [1, 5, 8, 8]}, {"w": w, "b": normal(5)})
        yield Case(label, m, feeds(1, 2, 6, 6), good(25, both, weight_error((2, 5, 3, 3), 1, 0.02)), options=types[label])
        w = normal(4, 3, 3, 3) * np.float32([.1, .1, 20, 20]).reshape(4, 1, 1, 1)
        m = model([node("ConvTranspose", "x w b", "y", group=2)], {"x": [1, 4, 6, 6]}, {"y": [1, 6, 8, 8]}, {"w": w, "b": normal(6)})
        yield Case("groups-" + label, m, feeds(1, 4, 6, 6), good(25), options=types[label])


@row("Q4", "quantize", "Gemm transB=0 per channel: the axis is mistaken", "the output channel in the stored layout")
def q4():
    for trans in (0, 1):
        for label in ("int8-per-channel", "uint8-per-channel"):
            w = normal(6, 5) * scales
            w = np.ascontiguousarray(w.T) if trans else w
            m = model([node("Gemm", "x w b", "y", transB=trans)], {"x": [3, 6]}, {"y": [3, 5]}, {"w": w, "b": normal(5)})
            yield Case(f"transB{trans}-{label}", m, feeds(3, 6), good(25, both, weight_error(w.shape, 0 if trans else 1, 0.02)), options=types[label])
    w = normal(6, 5) * scales
    m = model([node("MatMul", "x w", "y")], {"x": [3, 6]}, {"y": [3, 5]}, {"w": w})
    yield Case("matmul", m, feeds(3, 6), good(25, both, weight_error(w.shape, 1, 0.02)), options=types["int8-per-channel"])


@row("Q6", "quantize", "a bias shared by consumers of different input scales gets one encoding", "a copy of the bias for each consumer; scales compared relatively")
def q6():
    for label in ("uint8", "int8", "int8-per-channel"):
        nodes = [node("Conv", "x w b", "c", pads=[1, 1, 1, 1]), node("Mul", "c small", "m"), node("Conv", "m w b", "y", pads=[1, 1, 1, 1])]
        m = model(nodes, {"x": [1, 3, 8, 8]}, {"y": [1, 3, 8, 8]}, {"w": normal(3, 3, 3, 3, scale=0.3), "b": np.float32([0.5, -0.3, 0.2]), "small": np.float32(0.01)})
        yield Case(label, m, feeds(1, 3, 8, 8), good(25), options=types[label])


@row("Q7", "quantize", "Relu dropped though the zero point does not clip", "dropped only if the zero point is the least value")
def q7():
    def not_negative(result):
        for level in both:
            for out in run(result.path, result.case.feeds, level):
                if out["y"].min() < 0:
                    raise Wrong(f"negative values after Relu (optimizations: {level})")
    for label, options in {"int8-symmetric": {"activation_type": "int8", "weight_type": "int8", "symmetric": True}, "int8": {"activation_type": "int8", "weight_type": "int8"}, "uint8": {}}.items():
        m = model([node("Conv", "x w", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "y")], {"x": [1, 3, 8, 8]}, {"y": [1, 4, 8, 8]}, {"w": normal(4, 3, 3, 3)})
        yield Case("conv-" + label, m, feeds(1, 3, 8, 8), good(25, both, not_negative), options=options)
        m = model([node("Relu", "x", "r"), node("Conv", "r w", "c", pads=[1, 1, 1, 1]), node("Relu", "c", "y")], {"x": [1, 3, 8, 8]}, {"y": [1, 4, 8, 8]}, {"w": normal(4, 3, 3, 3)})
        yield Case("input-" + label, m, feeds(1, 3, 8, 8), good(25, both, not_negative), options=options)


@row("Q8", "quantize", "Pads with an empty constant input share one `_quantized`", "an empty name is an absent input")
def q8():
    nodes = [node("Pad", "x pads _", "p1"), node("Conv", "p1 w", "c"), node("Pad", "c pads _", "p2"), node("Conv", "p2 w", "y")]
    m = model(nodes, {"x": [1, 3, 6, 6]}, {"y": [1, 3, 6, 6]}, {"w": normal(3, 3, 3, 3), "pads": np.int64([0, 0, 1, 1, 0, 0, 1, 1])})
    yield Case("two", m, feeds(1, 3, 6, 6), good(25, both, quantized("Conv")))
    nodes = [node("Pad", "x pads _ axes", "p1"), node("Conv", "p1 w", "y")]
    m = model(nodes, {"x": [1, 3, 6, 6]}, {"y": [1, 3, 6, 6]}, {"w": normal(3, 3, 3, 3), "pads": np.int64([1, 1, 1, 1]), "axes": np.int64([2, 3])}, opset=18)
    yield Case("axes", m, feeds(1, 3, 6, 6), good(25))


@row("Q10", "quantize", "an initializer without elements breaks the quantizer", "it is skipped")
def q10():
    nodes = [node("Concat", "x e", "c", axis=0), node("MatMul", "c w", "y")]
    yield Case("concat", model(nodes, {"x": [2, 4]}, {"y": [2, 3]}, {"e": np.zeros((0, 4), np.float32), "w": normal(4, 3)}), feeds(2, 4), good(25, both, quantized("MatMul")))


@row("Q11", "quantize", "Clip's min and max inputs read as attributes", "read as inputs from opset 11 on")
def q11():
    nodes = [node("Conv", "x w", "c"), node("Clip", "c lo hi", "k"), node("Conv", "k w2", "y")]
    m = model(nodes, {"x": [1, 3, 6, 6]}, {"y": [1, 2, 4, 4]}, {"w": normal(4, 3, 3, 3), "w2": normal(2, 4, 1, 1), "lo": np.float32(0), "hi": np.float32(6)}, opset=13)
    yield Case("opset13", m, feeds(1, 3, 6, 6), good(25, both, quantized("Conv")))
    nodes = [node("Conv", "x w", "c"), node("Clip", "c _ hi", "y")]
    yield Case("max-only", model(nodes, {"x": [1, 3, 6, 6]}, {"y": [1, 4, 4, 4]}, {"w": normal(4, 3, 3, 3), "hi": np.float32(1)}, opset=13), feeds(1, 3, 6, 6), good(25))


@row("Q12", "quantize", "int64 shape data calibrated as float", "only float tensors are observed")
def q12():
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "n"), node("Concat", "n rest", "t", axis=0), node("MatMul", "x w", "m"), node("Reshape", "m t", "y")]
    m = model(nodes, {"x": ["N", 4]}, {"y": ["N", 3, 2]}, {"zero": np.int64([0]), "rest": np.int64([3, 2]), "w": normal(4, 6)})
    yield Case("reshape", m, feeds(2, 4), good(25, both, quantized("MatMul")))


def matmul(shape=("n", 4), opset=17):
    return model([node("MatMul", "x w", "m"), node("Relu", "m", "r"), node("MatMul", "r w2", "y")], {"x": list(shape)}, {"y": [shape[0], 3]},
                 {"w": normal(4, 8), "w2": normal(8, 3)}, opset=opset)


@row("Q13", "quantize", "histogram methods need equal shapes in every batch", "histograms are merged, not arrays")
def q13():
    samples = [{"x": normal(batch, 4)} for batch in (1, 2, 3, 40, 50)]
    for method in ("entropy", "percentile", "minmax"):
        yield Case(method, matmul(), samples, good(15 if method == "entropy" else 25, both, quantized("MatMul")), options={"method": method})


@row("Q14", "quantize", "NaN in a sample: the scale is NaN", "NaN and inf are ignored, and the tensor named")
def q14():
    for label, bad in (("nan", np.nan), ("inf", np.inf)):
        for method in ("minmax", "percentile"):
            broken = normal(2, 4)
            broken[1] = bad
            samples = feeds(2, 4) + [{"x": broken}]
            yield Case(f"{label}-{method}", matmul(), samples[:4], good(22, both, quantized("MatMul")), calibration=samples, options={"method": method})
    yield Case("named", matmul(), samples[:4], says_of_ours("x"), calibration=samples, only_ours=True)


def says_of_ours(name):
    def check(result):
        if not any(name in w.split() or f"'{name}'" in w for w in result.report.get("warnings", [])) and f" {name} " not in result.log:
            raise Wrong(f"no warning names {name}")
    return check


@row("Q15", "quantize", "entropy and percentile miss graph outputs", "outputs are observed too")
def q15():
    for method in ("entropy", "percentile"):
        m = model([node("MatMul", "x w", "y")], {"x": [40, 4]}, {"y": [40, 3]}, {"w": normal(4, 3)})
        yield Case(method, m, feeds(40, 4), good(12 if method == "entropy" else 25, both, quantized("MatMul")), options={"method": method})


@row("Q16", "quantize", "min/max nodes get scalar shapes: a flood of warnings", "no warnings about shapes")
def q16():
    def quiet(result):
        shapes = [line for line in result.log.splitlines() if "shape" in line.lower() and "warn" in line.lower()]
        if shapes:
            raise Wrong(f"{len(shapes)} warnings: {shapes[0]}")
    samples = [{"x": normal(batch, 4)} for batch in (1, 2, 3, 2)]
    yield Case("dynamic", matmul(), samples, good(25, both, quiet))


@row("Q17", "quantize", "16-bit QDQ below opset 21 is invalid", "a newer opset or com.microsoft's operators; the report says which")
def q17():
    def domain(result):
        opset = max(o.version for o in result.model.opset_import if o.domain in ("", "ai.onnx"))
        wide = {t.name for t in result.model.graph.initializer if t.data_type in (T.UINT16, T.INT16)}
        uses = [n for n in result.model.graph.node if n.op_type in ("QuantizeLinear", "DequantizeLinear") and len(n.input) > 2 and n.input[2] in wide]
        if not uses:
            raise Wrong("nothing has 16 bits")
        if opset < 21 and any(n.domain in ("", "ai.onnx") for n in uses):
            raise Wrong(f"16-bit QDQ of the default domain at opset {opset}")

    def said(result):
        text = json.dumps(result.report)
        if "com.microsoft" not in text and "opset" not in text and max(o.version for o in result.model.opset_import) < 21:
            raise Wrong("the report does not say which operators it used")
    for opset in (13, 17, 21):
        options = {"activation_type": "uint16", "weight_type": "uint8"}
        yield Case(f"opset{opset}", matmul(opset=opset), feeds(2, 4), good(30, both, domain, quantized("MatMul")), options=options)
        yield Case(f"opset{opset}-report", matmul(opset=opset), feeds(2, 4), said, options=options, only_ours=True)
        yield Case(f"opset{opset}-int16", matmul(opset=opset), feeds(2, 4), good(45, both, domain), options={"activation_type": "uint16", "weight_type": "int16"})


@row("Q18", "quantize", "models above 2 GB fail in calibration and saving", "the whole model is never serialized", large=True)
def q18():
    first, last, w = normal(table.width), normal(table.width), normal(table.width, 4, scale=0.1)
    m, files = table.table_model(first, last, w=w)
    k = np.int64([0, 7, table.rows_of_table - 1])
    y = np.stack([first, np.zeros(table.width, np.float32), last]) @ w
    yield Case("table", m, [{"k": k}], all_of(same_interface, scales_finite, snr(20), quantized("MatMul")), wanted=[{"y": y}], files=files, large=True, timeout=600)


@row("Q20", "quantize", "no QDQ after the last operator: the NPU does not know the output's scale", "the output's scale is in the file")
def q20():
    def last(result):
        producer = {o: n for n in result.model.graph.node for o in n.output}
        if producer["y"].op_type != "DequantizeLinear":
            raise Wrong(f"y comes from {producer['y'].op_type}")
    m = model([node("Conv", "x w", "y")], {"x": [1, 3, 6, 6]}, {"y": [1, 4, 4, 4]}, {"w": normal(4, 3, 3, 3)})
    yield Case("conv", m, feeds(1, 3, 6, 6), good(25, both, last))


@row("Q21", "quantize", "a weight behind Cast or Transpose", "constants are folded first")
def q21():
    def eight_bits(result):
        if not any(t.data_type in (T.INT8, T.UINT8) and len(t.dims) == 2 for t in result.model.graph.initializer):
            raise Wrong("the weight does not have 8 bits")
    io = {"x": [2, 4]}, {"y": [2, 3]}
    cases = {"transpose": ([node("Transpose", "w", "t", perm=[1, 0])], normal(3, 4)), "cast": ([node("Cast", "w", "t", to=T.FLOAT)], normal(4, 3).astype(np.float16)),
             "both": ([node("Cast", "w", "c", to=T.FLOAT), node("Transpose", "c", "t", perm=[1, 0])], normal(3, 4).astype(np.float16)),
             "identity": ([node("Identity", "w", "t")], normal(4, 3))}
    for label, (nodes, w) in cases.items():
        for kind in ("uint8", "int8-per-channel"):
            yield Case(f"{label}-{kind}", model(nodes + [node("MatMul", "x t", "y")], *io, {"w": w}), feeds(2, 4), good(25, both, quantized("MatMul"), eight_bits), options=types[kind])


@row("Q23", "quantize", "per channel worse than per tensor: dead and tiny channels", "scales have a floor, biases do not saturate")
def q23():
    w = normal(4, 3, 3, 3)
    w[0] = 0
    w[1] *= 1e-12
    for label in ("int8-per-channel", "uint8-per-channel", "uint8"):
        m = model([node("Conv", "x w b", "y")], {"x": [1, 3, 8, 8]}, {"y": [1, 4, 6, 6]}, {"w": w, "b": np.float32([3, -2, 1, 0])})
        yield Case(label, m, feeds(1, 3, 8, 8), good(25, both, snr(25, both, channel_axis=1)), options=types[label])


@row("Q24", "command", "`--precision banana` succeeds; a config's default beats a flag", "refused; flag, then config, then default, and echoed")
def q24():
    def refused(winml, folder, output):
        from peers import Refused
        try:
            winml("quantize", "-m", folder / "model.onnx", "-o", output, "-p", "banana")
        except Refused as e:
            if not str(e).startswith("exit 2"):
                raise Wrong(f"not a usage error: {e}")
            raise
        return {}
    yield Case("banana", matmul(), feeds(2, 4), refuses, may_refuse=True, options={"command": refused})

    def types_of(result):
        dims = {t.name: t for t in result.model.graph.initializer}
        weight = {dims[n.input[0]].data_type for n in result.model.graph.node if n.op_type == "DequantizeLinear" and n.input[0] in dims and len(dims[n.input[0]].dims) == 2}
        activation = {dims[n.input[2]].data_type for n in result.model.graph.node if n.op_type == "QuantizeLinear"}
        return weight, activation

    def case(label, config, arguments, weight, activation, word):
        def command(winml, folder, output):
            extra = []
            if config is not None:
                (folder / "config.json").write_text(json.dumps({"quant": config}))
                extra = ["-c", folder / "config.json"]
            return winml("quantize", "-m", folder / "model.onnx", "-o", output, "--overwrite", "--calibration-data", folder / "calibration", *extra, *arguments)

        def judge(result):
            valid(result)
            if types_of(result) != ({weight}, {activation}):
                raise Wrong(f"types are {types_of(result)}, right is {weight} and {activation}")
            if word not in json.dumps(result.report) + result.log:
                raise Wrong(f"{word} is not echoed")
        return Case(label, matmul(), feeds(2, 4), judge, options={"command": command})
    yield case("int16", None, ["-p", "int16"], T.INT16, T.UINT16, "int16")
    yield case("flag-wins", {"weight_type": "uint8", "activation_type": "uint8"}, ["--weight-type", "int8"], T.INT8, T.UINT8, "int8")
    yield case("config-wins", {"weight_type": "int8", "activation_type": "uint16"}, [], T.INT8, T.UINT16, "uint16")
    yield case("flag-over-default", {}, ["-p", "w8a16"], T.UINT8, T.UINT16, "w8a16")


def refuses(result):
    raise Wrong("it went on")
