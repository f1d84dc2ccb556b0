"""What is right about a result: checks that raise Wrong."""
import collections
import functools
import pathlib

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

levels = {"none": ort.GraphOptimizationLevel.ORT_DISABLE_ALL, "all": ort.GraphOptimizationLevel.ORT_ENABLE_ALL}


class Wrong(Exception):
    pass


def session(path, level="none"):
    options = ort.SessionOptions()
    options.graph_optimization_level = levels[level]
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(path, feeds, level="none"):
    s = session(path, level)
    declared = {i.name for i in s.get_inputs()}
    return [dict(zip([o.name for o in s.get_outputs()], s.run(None, {k: v for k, v in feed.items() if k in declared}))) for feed in feeds]


class Result:
    """A tool's output beside what it was made from."""

    def __init__(self, case, source, path, log):
        self.case, self.source, self.path, self.log_path, self.report = case, source, path, log, None

    @functools.cached_property
    def model(self):
        return onnx.load(self.path, load_external_data=False)

    @functools.cached_property
    def wanted(self):
        if self.case.wanted is not None:
            return self.case.wanted
        return run(self.source, self.case.feeds)

    @property
    def log(self):
        return pathlib.Path(self.log_path).read_text(errors="replace")

    def constants(self):
        """Initializers of the main graph as arrays, external ones too."""
        return {t.name: numpy_helper.to_array(t, str(self.path.parent)) for t in self.model.graph.initializer}

    def count(self):
        return collections.Counter(n.op_type for g in graphs_of(self.model.graph) for n in g.node)


def graphs_of(graph):
    yield graph
    for n in graph.node:
        for a in n.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                yield from graphs_of(a.g)


def all_of(*checks):
    def check(result):
        for c in checks:
            c(result)
    return check


# Operators that ONNX Runtime writes in the default domain though ONNX has none of the name.
kept_in_default_domain = ("SimplifiedLayerNormalization", "FusedConv", "FusedGemm")


def valid(result):
    """The full check of onnx, unique names, and a session at both ends of the levels."""
    for g in graphs_of(result.model.graph):
        outputs = [o for n in g.node for o in n.output if o]
        names = [n.name for n in g.node if n.name]
        initializers = [t.name for t in g.initializer]
        for what, names_ in (("value", outputs + initializers), ("node name", names)):
            twice = [n for n, c in collections.Counter(names_).items() if c > 1]
            if twice:
                raise Wrong(f"{what} {twice[0]} defined twice")
    try:
        onnx.checker.check_model(str(result.path), full_check=True)
    except Exception as e:
        if not any(f"No Op registered for {op} " in str(e) for op in kept_in_default_domain):
            raise Wrong(f"invalid: {first_line(e)}")
    try:
        session(result.path)
    except Exception as e:
        raise Wrong(f"does not load: {first_line(e)}")


def first_line(e):
    lines = [line for line in str(e).splitlines() if line.strip()]
    return lines[0] if lines else type(e).__name__


def outputs(result, level):
    try:
        return run(result.path, result.case.feeds, level)
    except Exception as e:
        raise Wrong(f"does not run (optimizations: {level}): {first_line(e)}")


def compare(result, judge_one, at):
    for level in at:
        for got, wanted in zip(outputs(result, level), result.wanted):
            for name, right in wanted.items():
                if name not in got:
                    raise Wrong(f"output {name} is gone")
                value = got[name]
                if value.shape != right.shape:
                    raise Wrong(f"{name} has shape {list(value.shape)}, right is {list(right.shape)}")
                if value.dtype != right.dtype:
                    raise Wrong(f"{name} is {value.dtype}, right is {right.dtype}")
                judge_one(name, value, right, level)


def numbers(tolerance=1e-4, at=("none",)):
    """Every output within `tolerance` of the right value, relative to its largest magnitude; integers exactly."""
    def one(name, value, right, level):
        if right.size == 0:
            return
        if right.dtype.kind not in "f":
            if not np.array_equal(value, right):
                raise Wrong(f"{name} differs")
            return
        a, b = value.astype(np.float64), right.astype(np.float64)
        if np.isnan(a).any() and not np.isnan(b).any():
            raise Wrong(f"{name} is NaN (optimizations: {level})")
        off = float(np.max(np.abs(a - b))) / max(float(np.max(np.abs(b))), 1e-30)
        if not off <= tolerance:
            raise Wrong(f"{name} is off by {off:.2g} of its largest value (optimizations: {level})")
    return lambda result: compare(result, one, at)


def snr(least, at=("none",), channel_axis=None):
    """Signal to noise of every output in dB; of every channel where an axis is given."""
    def one(name, value, right, level):
        if right.dtype.kind != "f" or right.size == 0:
            return
        if channel_axis is None:
            pairs = [(value, right)]
        else:
            pairs = list(zip(np.moveaxis(value, channel_axis, 0), np.moveaxis(right, channel_axis, 0)))
        for i, (a, b) in enumerate(pairs):
            a, b = a.astype(np.float64), b.astype(np.float64)
            if not np.isfinite(a).all():
                raise Wrong(f"{name} is not finite (optimizations: {level})")
            noise, signal = float(np.sum((a - b) ** 2)), float(np.sum(b ** 2))
            db = np.inf if noise == 0 else -np.inf if signal == 0 else 10 * np.log10(signal / noise)
            if not db >= least:
                where = "" if channel_axis is None else f" channel {i}"
                raise Wrong(f"{name}{where} has an SNR of {db:.1f} dB, at least {least} is right (optimizations: {level})")
    return lambda result: compare(result, one, at)


def ops(**counts):
    """How many nodes of these types there are, sub-graphs counted."""
    def check(result):
        found = result.count()
        for kind, number in counts.items():
            if found[kind] != number:
                raise Wrong(f"{found[kind]} {kind} left, right is {number}")
    return check


def only_ops(**counts):
    """These nodes and no others."""
    def check(result):
        found = dict(result.count())
        if found != counts:
            raise Wrong("nodes are " + ", ".join(f"{n} {k}" for k, n in sorted(found.items())))
    return check


def same_interface(result):
    """Inputs (less initializers) and outputs keep names, types and symbols. A symbol may become the number that it has in every run."""
    def ports(model):
        constants = {t.name for t in model.graph.initializer}
        table = {}
        for side, list_ in (("input", model.graph.input), ("output", model.graph.output)):
            for v in list_:
                if v.name not in constants:
                    dims = [d.dim_param or (d.dim_value if d.HasField("dim_value") else None) for d in v.type.tensor_type.shape.dim]
                    table[side, v.name] = (v.type.tensor_type.elem_type, dims)
        return table
    before, after = ports(onnx.load(result.source, load_external_data=False)), ports(result.model)
    def seen(key, axis):
        runs = result.case.feeds if key[0] == "input" else result.wanted
        return {np.shape(r[key[1]])[axis] for r in runs if key[1] in r}

    for key, (kind, dims) in before.items():
        if key not in after:
            raise Wrong(f"{key[0]} {key[1]} is gone")
        now, dims_now = after[key]
        same = now == kind and len(dims) == len(dims_now) and all(
            a == b or (isinstance(a, str) and isinstance(b, int) and seen(key, i) == {b}) for i, (a, b) in enumerate(zip(dims, dims_now)))
        if not same:
            raise Wrong(f"{key[0]} {key[1]} became {onnx.TensorProto.DataType.Name(now)} {dims_now}, was {onnx.TensorProto.DataType.Name(kind)} {dims}")


def scales_finite(result):
    """Every scale of Q and DQ a positive finite number."""
    constants = result.constants()
    for n in result.model.graph.node:
        if n.op_type in ("QuantizeLinear", "DequantizeLinear") and n.input[1] in constants:
            scale = constants[n.input[1]].astype(np.float64)
            if not (np.isfinite(scale).all() and (scale > 0).all()):
                raise Wrong(f"scale {n.input[1]} is {scale.ravel()[:4]}")


def quantized(*op_types):
    """At least one node of each type has a DequantizeLinear on its first input."""
    def check(result):
        producer = {o: n.op_type for n in result.model.graph.node for o in n.output}
        for kind in op_types:
            nodes = [n for n in result.model.graph.node if n.op_type == kind]
            if not any(producer.get(n.input[0]) == "DequantizeLinear" for n in nodes):
                raise Wrong(f"{kind} is not quantized")
    return check


def weight_error(shape, axis, most):
    """The quantized weight of this shape (or its transpose), read back, is within `most` of the original in every output channel."""
    def check(result):
        original = next(numpy_helper.to_array(t) for t in onnx.load(result.source).graph.initializer if list(t.dims) == list(shape))
        constants = result.constants()
        for n in result.model.graph.node:
            if n.op_type != "DequantizeLinear" or n.input[0] not in constants:
                continue
            q = constants[n.input[0]]
            flipped = q.ndim == 2 and q.shape != tuple(shape) and q.T.shape == tuple(shape)
            if q.dtype == np.int32 or not (q.shape == tuple(shape) or flipped):
                continue
            scale = constants[n.input[1]].astype(np.float64)
            zero = constants[n.input[2]].astype(np.float64) if len(n.input) > 2 and n.input[2] else np.zeros_like(scale)
            stored = next((a.i for a in n.attribute if a.name == "axis"), 1) % q.ndim
            if scale.ndim == 1 and scale.size > 1:
                view = [-1 if i == stored else 1 for i in range(q.ndim)]
                scale, zero = scale.reshape(view), zero.reshape(view)
            back = (q.astype(np.float64) - zero) * scale
            back = back.T if flipped else back
            for i, (a, b) in enumerate(zip(np.moveaxis(back, axis, 0), np.moveaxis(original.astype(np.float64), axis, 0))):
                off = np.max(np.abs(a - b)) / max(np.max(np.abs(b)), 1e-30)
                if off > most:
                    raise Wrong(f"weight channel {i} is off by {off:.2g} of its largest value")
            return
        raise Wrong("the weight is not quantized")
    return check


def says(*words):
    """The tool's messages name these."""
    def check(result):
        missing = [w for w in words if w not in result.log]
        if missing:
            raise Wrong(f"no message names {missing[0]}")
    return check
