"""Short ways to write graphs, and to put a case into its folder."""
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

rng = np.random.default_rng(0)


def seed(text):
    """The same graphs for a row whichever rows run."""
    global rng
    rng = np.random.default_rng(list(text.encode()))


def normal(*shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def node(kind, inputs, outputs, name=None, **attributes):
    """A named node; name="" leaves it nameless."""
    inputs, outputs = inputs.split(" "), outputs.split(" ")
    inputs = ["" if i == "_" else i for i in inputs]
    return helper.make_node(kind, inputs, outputs, name=f"{kind}_{outputs[0]}" if name is None else name, **attributes)


def value(name, type_, shape):
    return helper.make_tensor_value_info(name, type_, shape)


def graph(nodes, inputs, outputs, constants=None, name="g", value_info=()):
    """`inputs` and `outputs`: {name: (type, shape)} or {name: shape} for float; `constants`: {name: array}."""
    def values(table):
        return [value(n, *(s if isinstance(s, tuple) else (T.FLOAT, s))) for n, s in table.items()]
    tensors = [c if isinstance(c, onnx.TensorProto) else numpy_helper.from_array(np.asarray(c), n) for n, c in (constants or {}).items()]
    return helper.make_graph(nodes, name, values(inputs), values(outputs), tensors, value_info=list(value_info))


def model(nodes, inputs, outputs, constants=None, opset=17, ir=8, domains=(), value_info=()):
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    return helper.make_model(graph(nodes, inputs, outputs, constants, value_info=value_info), opset_imports=opsets, ir_version=ir)


def external(name, type_, shape, location, length, offset=0):
    """An initializer whose bytes are in `location` beside the model."""
    tensor = onnx.TensorProto(name=name, data_type=type_, dims=shape, data_location=T.EXTERNAL)
    for key, text in (("location", location), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(text))
    return tensor


def save(case, folder):
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    for name, content in case.files.items():
        if callable(content):
            content(folder / name)
        else:
            (folder / name).write_bytes(content)
    samples = folder / "calibration"
    samples.mkdir()
    for i, sample in enumerate(case.feeds if case.calibration is None else case.calibration):
        np.savez(samples / f"{i:03}.npz", **sample)
