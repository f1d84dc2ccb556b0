"""Run the graphs that users report as broken through the tools of this field and through ours, and judge each result.

    python bench/scorecard BUILD_FOLDER [--work DIR] [--only ID ...] [--tools NAME ...] [--no-large] [--json FILE] [--markdown FILE]

Every row is one reported fault: one or more small graphs, and what is right about the result (numbers of the unmodified model in
ONNX Runtime without optimizations, or of a hand calculation; structure; validity). A verdict is `right`, `wrong` with how, `refused`
with the message, or `-` where the tool has no such job. The graphs and what each tool made of them stay in the work folder.
Needs onnx, numpy and onnxruntime; the other tools are left out, and named, where they are not installed. Exit 1: ours is wrong on a row.
"""
import argparse
import json
import os
import pathlib
import pickle
import shutil
import signal
import sys
import time
import traceback

from graphs import save, seed
from judge import Result, Wrong
from peers import Refused, available
from rows import all_rows

import rows_float16
import rows_optimize
import rows_quantize

root = pathlib.Path(__file__).resolve().parents[2]
severity = ["not applicable", "right", "refused", "wrong"]


def in_child(job, log, timeout):
    """What `job` returns, run in a process of its own whose output goes to `log`: some tools crash, and some print from C++."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.setpgid(0, 0)
        signal.alarm(timeout)
        answer = job()
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(write, pickle.dumps(answer))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    if answer:
        return pickle.loads(answer)
    code = os.waitstatus_to_exitcode(status)
    how = f"no answer in {timeout} s" if code == -signal.SIGALRM else f"crashed ({signal.Signals(-code).name})" if code < 0 else f"exit {code}"
    return "wrong", how


def one_line(text, width=160):
    text = " ".join(str(text).split())
    return text if len(text) <= width else text[:width - 1] + "…"


def judged(tool, kind, case, folder, log):
    """The verdict on one tool and one graph."""
    output = folder / f"{tool.name}.onnx"
    for stale in folder.glob(f"{tool.name}*.onnx*"):
        stale.unlink()

    def job():
        result = Result(case, folder / "model.onnx", output, log)
        try:
            result.report = tool.run(kind, case, folder, output)
        except Refused as e:
            return ("right" if case.may_refuse else "refused"), one_line(e)
        except Exception as e:
            return "refused", one_line(f"{type(e).__name__}: {e}")
        try:
            sys.stdout.flush()
            sys.stderr.flush()
            if not output.exists():
                raise Wrong("no file written")
            case.judge(result)
        except Wrong as e:
            return "wrong", one_line(e)
        except Exception as e:
            traceback.print_exc()
            return "wrong", one_line(f"{type(e).__name__}: {e}")
        return "right", ""
    verdict, how = in_child(job, log, case.timeout)
    return verdict, how.replace(f"{folder}/", "")


def run_row(row, tools, work, keep):
    verdicts = {}
    seed(row.id)
    for case in row.cases():
        folder = work / "rows" / f"{row.id}.{case.label}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        save(case, folder)
        for tool in tools:
            kind = case.kind or row.kind
            if kind not in tool.kinds or (case.only_ours and tool.name != "ours"):
                continue
            started = time.monotonic()
            verdict, how = judged(tool, kind, case, folder, folder / f"{tool.name}.log")
            entry = verdicts.setdefault(tool.name, {"verdict": "not applicable", "how": "", "cases": []})
            entry["cases"].append({"case": case.label, "verdict": verdict, "how": how, "seconds": round(time.monotonic() - started, 2)})
            if severity.index(verdict) > severity.index(entry["verdict"]):
                entry["verdict"], entry["how"] = verdict, f"{case.label}: {how}" if how and verdict != "right" else ""
        if case.large and not keep:
            shutil.rmtree(folder)
    return verdicts


def table(results, tools):
    lines = ["| row | what | " + " | ".join(t.name for t in tools) + " |", "|---|---|" + "---|" * len(tools)]
    for row, verdicts in results:
        cells = []
        for tool in tools:
            entry = verdicts.get(tool.name)
            if entry is None:
                cells.append("-")
            else:
                how = entry["how"].replace("|", "\\|")
                cells.append(entry["verdict"] + (f": {how}" if how else ""))
        lines.append(f"| {row.id} | {row.title} | " + " | ".join(cells) + " |")
    lines.append("")
    for tool in tools:
        counts = [sum(1 for _, v in results if v.get(tool.name, {}).get("verdict") == verdict) for verdict in ("right", "wrong", "refused")]
        lines.append(f"- {tool.name} ({tool.version}): {counts[0]} right, {counts[1]} wrong, {counts[2]} refused")
    return "\n".join(lines)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("build", type=pathlib.Path)
    ap.add_argument("--work", type=pathlib.Path, default=root / "build" / "scorecard")
    ap.add_argument("--only", nargs="+", metavar="ID", help="these rows")
    ap.add_argument("--tools", nargs="+", metavar="NAME", help="these tools")
    ap.add_argument("--no-large", action="store_true", help="leave out the models above 2 GB")
    ap.add_argument("--keep-large", action="store_true", help="keep them in the work folder")
    ap.add_argument("--json", type=pathlib.Path)
    ap.add_argument("--markdown", type=pathlib.Path)
    a = ap.parse_args()
    tools, missing = available(a.build / "winml")
    for name, why in missing:
        print(f"left out: {name} ({why})", file=sys.stderr)
    if a.tools:
        tools = [t for t in tools if t.name in a.tools]
    a.work = a.work.resolve()
    a.work.mkdir(parents=True, exist_ok=True)
    results = []
    for row in all_rows():
        if (a.only and row.id not in a.only) or (a.no_large and row.large):
            continue
        verdicts = run_row(row, tools, a.work, a.keep_large)
        results.append((row, verdicts))
        print(f"{row.id:4}", "  ".join(f"{name}: {v['verdict']}" for name, v in verdicts.items()), file=sys.stderr, flush=True)
    text = table(results, tools)
    print(text)
    if a.markdown:
        a.markdown.write_text(text + "\n")
    document = {"tools": {t.name: t.version for t in tools}, "left_out": [name for name, _ in missing],
                "rows": [{"id": row.id, "what": row.title, "right": row.right, "verdicts": verdicts} for row, verdicts in results]}
    (a.json or a.work / "scorecard.json").write_text(json.dumps(document, indent=1))
    bad = [row.id for row, v in results if v.get("ours", {}).get("verdict") in ("wrong", "refused")]
    if bad:
        print("ours is not right on " + ", ".join(bad), file=sys.stderr)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
