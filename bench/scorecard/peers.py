"""The tools: what each is called with, with one way to run them."""
import dataclasses
import importlib
import importlib.metadata
import json
import pathlib
import subprocess

import onnx


class Refused(Exception):
    """The tool gave no model, and said why."""


@dataclasses.dataclass
class Tool:
    name: str
    version: str
    kinds: dict  # kind of row -> function(case, folder, output)

    def run(self, kind, case, folder, output):
        return self.kinds[kind](case, folder, output)


def loaded(folder):
    return onnx.load(folder / "model.onnx")


def large(case):
    return {"save_as_external_data": True, "size_threshold": 1024} if case.large else {}


# ONNX Runtime

def ort_optimize(case, folder, output):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(output)
    options.intra_op_num_threads = 1
    ort.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])


def ort_float16(case, folder, output):
    from onnxruntime.transformers.onnx_model import OnnxModel

    def convert(model, **options):
        wrapped = OnnxModel(model)
        wrapped.convert_float_to_float16(use_symbolic_shape_infer=not case.large, **options)
        wrapped.topological_sort()
        return wrapped.model
    float16(convert, case, folder, output)


def float16(convert, case, folder, output):
    blocked = case.options.get("float32_ops")
    options = {"keep_io_types": case.options.get("keep_io", True)} | ({"op_block_list": blocked} if blocked else {})
    model = loaded(folder)
    for _ in range(case.options.get("times", 1)):
        model = convert(model, **options) or model
    onnx.save(model, output, **(large(case) | ({"location": output.name + ".data"} if case.large else {})))


def ort_quantize(case, folder, output):
    import numpy as np
    from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.samples = iter(sorted((folder / "calibration").glob("*.npz")))

        def get_next(self):
            path = next(self.samples, None)
            return None if path is None else dict(np.load(path))

    o = case.options
    types = {"uint8": QuantType.QUInt8, "int8": QuantType.QInt8, "uint16": QuantType.QUInt16, "int16": QuantType.QInt16}
    methods = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy, "percentile": CalibrationMethod.Percentile}
    symmetric = o.get("symmetric", False)
    quantize_static(str(folder / "model.onnx"), str(output), Reader(), quant_format=QuantFormat.QDQ, per_channel=o.get("per_channel", False),
                    weight_type=types[o.get("weight_type", "uint8")], activation_type=types[o.get("activation_type", "uint8")],
                    calibrate_method=methods[o.get("method", "minmax")], use_external_data_format=case.large,
                    extra_options={"ActivationSymmetric": symmetric, "WeightSymmetric": symmetric})


def ort_weight_only(case, folder, output):
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
    quantizer = MatMulNBitsQuantizer(loaded(folder), block_size=32, is_symmetric=True)
    quantizer.process()
    quantizer.model.save_model_to_file(str(output))


# onnxsim, onnxoptimizer, onnxconverter-common

def onnxsim_optimize(case, folder, output):
    import onnxsim
    model, _ = onnxsim.simplify(loaded(folder))
    onnx.save(model, output)


def onnxoptimizer_optimize(case, folder, output):
    import onnxoptimizer
    onnx.save(onnxoptimizer.optimize(loaded(folder)), output)


def converter_float16(case, folder, output):
    from onnxconverter_common.float16 import convert_float_to_float16
    float16(convert_float_to_float16, case, folder, output)


# Ours

def winml(binary, *arguments):
    done = subprocess.run([str(binary), *map(str, arguments), "-f", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    print("$ winml", *arguments)
    print(done.stdout)
    print(done.stderr, flush=True)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = {}
    if done.returncode < 0:
        raise RuntimeError(f"crashed with signal {-done.returncode}")
    if done.returncode:
        e = report.get("error", {})
        raise Refused(f"exit {done.returncode}: " + (" ".join(str(e.get(k) or "") for k in ("message", "where", "hint")) if e else done.stderr))
    return report


def ours(binary):
    def optimize(case, folder, output):
        return winml(binary, "optimize", "-m", folder / "model.onnx", "-o", output, "--overwrite")

    def half(case, folder, output):
        o, source = case.options, folder / "model.onnx"
        flags = [f for op in o.get("float32_ops", []) for f in ("--float32-op", op)] + ([] if o.get("keep_io", True) else ["--no-keep-io"])
        for i in range(o.get("times", 1)):
            target = output if i == o.get("times", 1) - 1 else output.with_suffix(f".{i}.onnx")
            report = winml(binary, "quantize", "-m", source, "-o", target, "-p", "fp16", *flags, "--overwrite", *o.get("flags", []))
            source = target
        return report

    def quantize(case, folder, output):
        o = case.options
        flags = ["--weight-type", o.get("weight_type", "uint8"), "--activation-type", o.get("activation_type", "uint8"), "--method", o.get("method", "minmax")]
        flags += ["--per-channel"] * o.get("per_channel", False) + ["--symmetric"] * o.get("symmetric", False)
        # An archive whose first axis is free counts as that many samples: all are to calibrate.
        return winml(binary, "quantize", "-m", folder / "model.onnx", "-o", output, "--overwrite", "--calibration-data", folder / "calibration",
                     "--samples", 1000, *flags, *o.get("flags", []))

    def weight_only(case, folder, output):
        return winml(binary, "quantize", "-m", folder / "model.onnx", "-o", output, "--overwrite", "-p", "int4", "--block-size", 32)

    def command(case, folder, output):
        return case.options["command"](lambda *arguments: winml(binary, *arguments), folder, output)

    return {"optimize": optimize, "float16": half, "quantize": quantize, "weight-only": weight_only, "command": command}


peers = [
    ("onnxruntime", "onnxruntime", {"optimize": ort_optimize, "float16": ort_float16, "quantize": ort_quantize, "weight-only": ort_weight_only}),
    ("onnxsim", "onnxsim", {"optimize": onnxsim_optimize}),
    ("onnxoptimizer", "onnxoptimizer", {"optimize": onnxoptimizer_optimize}),
    ("onnxconverter-common", "onnxconverter_common", {"float16": converter_float16}),
]


def available(binary):
    """The tools that are here, and (name, reason) of those that are not."""
    tools, missing = [], []
    if pathlib.Path(binary).exists():
        version = subprocess.run([str(binary), "--version"], stdout=subprocess.PIPE, text=True).stdout.split()
        tools.append(Tool("ours", version[-1] if version else "?", ours(pathlib.Path(binary).resolve())))
    else:
        missing.append(("ours", f"no {binary}"))
    for name, module, kinds in peers:
        try:
            importlib.import_module(module)
            tools.append(Tool(name, importlib.metadata.version(name), kinds))
        except ImportError as e:
            missing.append((name, str(e)))
    return tools, missing
