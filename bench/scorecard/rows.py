"""Rows (one reported fault each) and cases (one graph each)."""
import dataclasses
from typing import Any, Callable

import onnx


@dataclasses.dataclass
class Case:
    label: str
    model: onnx.ModelProto
    feeds: list                                # inputs that the result is run with
    judge: Callable[[Any], None]               # of a judge.Result; raises judge.Wrong
    wanted: list | None = None                 # right outputs for each of `feeds`; None: those of the unmodified model
    calibration: list | None = None            # samples for static quantization; None: `feeds`
    options: dict = dataclasses.field(default_factory=dict)
    files: dict = dataclasses.field(default_factory=dict)  # external data: name -> bytes or a writer of a path
    may_refuse: bool = False                   # a refusal with its reason is right, too
    only_ours: bool = False
    kind: str = ""                             # where it is not the row's
    large: bool = False
    timeout: int = 120


@dataclasses.dataclass
class Row:
    id: str
    kind: str        # optimize, float16, quantize or command
    title: str
    right: str       # the right behaviour in words
    cases: Callable[[], list]
    large: bool


registry = []


def row(id, kind, title, right, large=False):
    def add(function):
        registry.append(Row(id, kind, title, right, function, large))
        return function
    return add


def all_rows():
    order = {"O": 0, "F": 1, "Q": 2}
    return sorted(registry, key=lambda r: order[r.id[0]])
