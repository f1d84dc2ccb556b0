#!/usr/bin/env python3
"""One job of one Python tool, as a whole process: what bench/optimize_quantize measures.

    peer_task.py extended|transformers|onnxsim|onnxoptimizer|float16 IN OUT
    peer_task.py quantize IN OUT SAMPLES.npz
    peer_task.py nodes IN               prints the number of nodes
    peer_task.py cosine REFERENCE MODEL SAMPLES.npz
    peer_task.py latency SAMPLES.npz MODEL ...     medians of runs in turn, in milliseconds
"""
import os
import sys


def extended(source, target):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = target
    if os.path.exists(source + ".data"):  # else it would write no weights, and refer to the source's
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", os.path.basename(target) + ".data")
    ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def transformers(source, target):
    from onnxruntime.transformers import optimizer
    model = optimizer.optimize_model(source, model_type="bert", opt_level=0)
    model.save_model_to_file(target)


def onnxsim(source, target):
    import onnx
    import onnxsim
    model, _ = onnxsim.simplify(onnx.load(source))
    onnx.save(model, target)


def onnxoptimizer(source, target):
    import onnx
    import onnxoptimizer
    onnx.save(onnxoptimizer.optimize(onnx.load(source)), target)


def float16(source, target):
    import onnx
    from onnxruntime.transformers.onnx_model import OnnxModel
    model = OnnxModel(onnx.load(source))
    model.convert_float_to_float16(keep_io_types=True)
    model.topological_sort()
    onnx.save(model.model, target)


def rows(samples):
    import numpy as np
    arrays = dict(np.load(samples))
    count = len(next(iter(arrays.values())))
    return [{name: a[i:i + 1] for name, a in arrays.items()} for i in range(count)]


def quantize(source, target, samples):
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.left = iter(rows(samples))

        def get_next(self):
            return next(self.left, None)

    quantize_static(source, target, Reader(), quant_format=QuantFormat.QDQ, weight_type=QuantType.QUInt8, activation_type=QuantType.QUInt8)


def nodes(source):
    import onnx
    print(len(onnx.load(source, load_external_data=False).graph.node))


def session(model):
    import onnxruntime as ort
    options = ort.SessionOptions()
    options.log_severity_level = 3
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def cosine(reference, model, samples):
    import numpy as np
    a, b = session(reference), session(model)
    found = []
    for sample in rows(samples):
        x, y = (np.concatenate([o.ravel() for o in s.run(None, sample)]).astype(np.float64) for s in (a, b))
        found.append(x @ y / np.linalg.norm(x) / np.linalg.norm(y))
    print(float(np.mean(found)))


def latency(samples, *models):
    import statistics
    import time
    sample, sessions = rows(samples)[0], [session(m) for m in models]
    times = [[] for _ in models]
    for i in range(12):
        for s, list_ in zip(sessions, times):
            start = time.perf_counter()
            s.run(None, sample)
            if i >= 2:
                list_.append((time.perf_counter() - start) * 1000)
    print(*(statistics.median(t) for t in times))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
