"""Whole processes measured: CPU seconds (user + system), wall seconds, peak MiB."""
import os
import pathlib
import statistics
import subprocess
import sys
import time

bench = pathlib.Path(__file__).resolve().parent
env = {**os.environ, "HF_HUB_OFFLINE": "1"}


def once(command):
    """CPU seconds, wall seconds and peak MiB of one whole process."""
    start = time.monotonic()
    pid = os.posix_spawnp(command[0], command, env, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss / 1024


def medians(*commands, runs, before=None, warm_up=True):
    """Each command's medians, run in turn after one warm-up; `before` gets the command that comes."""
    seen = [[] for _ in commands]
    for i in range(0 if warm_up else 1, runs + 1):
        for command, list_ in zip(commands, seen):
            if before:
                before(command)
            measured = once(command)
            if i:
                list_.append(measured)
    return [tuple(statistics.median(m[k] for m in list_) for k in range(3)) for list_ in seen]


def row(what, value, target=""):
    print(f"  {what:<62}{value:>16}  {target}", flush=True)


def checkpoint(work, name, *options):
    folder = work / name
    if not (folder / "model.safetensors").exists():
        subprocess.run([sys.executable, bench / "make_checkpoint.py", folder, *options], check=True)
    return folder


def as_hub(work, models):
    """A Hub cache below `work` that has these folders: {"owner/name": folder}. The environment of what is measured points at it."""
    hub = work / "hub"
    env["HF_HOME"] = str(hub)
    for model, folder in models.items():
        snapshot = hub / "hub" / f"models--{model.replace('/', '--')}" / "snapshots" / ("0" * 40)
        if not snapshot.exists():
            (snapshot.parent.parent / "refs").mkdir(parents=True, exist_ok=True)
            (snapshot.parent.parent / "refs/main").write_text("0" * 40)
            snapshot.parent.mkdir(parents=True, exist_ok=True)
            snapshot.symlink_to(folder.resolve())
