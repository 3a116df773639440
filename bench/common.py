"""What the benchmarks share: where things lie, running a process and weighing it, interleaved pairs, the report."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PLAIT_BENCH_BUILD", ROOT / "build" / "release"))
SCRATCH = ROOT / ".bench"
PLAIT = BUILD / "plait"


class Skipped(Exception):
    """Something that a measurement needs is not there; the text says what, and how to get it."""


def inherited():
    """The environment without the benchmarks' own variables: plait refuses variables of its name that it does not know."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PLAIT_BENCH_")}


class Run:
    """One finished process: seconds of wall clock, its output, exit code, peak resident and peak anonymous bytes."""

    def __init__(self, command, env=None, cwd=None, timeout=600):
        self.command = [str(word) for word in command]
        self.anonymous_bytes = 0
        start = time.perf_counter()
        try:
            child = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=cwd,
                                     env=dict(inherited(), **(env or {})))
        except OSError as error:
            raise Skipped(f"{self.command[0]}: {error.strerror}") from error
        watcher = threading.Thread(target=self._watch, args=(child.pid,))
        watcher.start()
        killer = threading.Timer(timeout, child.kill)
        killer.start()
        err = []
        reader = threading.Thread(target=lambda: err.append(child.stderr.read()))
        reader.start()
        self.out = child.stdout.read()
        reader.join()
        _, status, usage = os.wait4(child.pid, 0)
        self.seconds = time.perf_counter() - start
        child.returncode = self.code = os.waitstatus_to_exitcode(status)
        killer.cancel()
        watcher.join()
        self.err = err[0]
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        self.peak_bytes = usage.ru_maxrss * 1024

    def _watch(self, pid):
        """Samples the anonymous part of the resident memory, which the kernel keeps no peak of."""
        while True:
            try:
                lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                return
            found = [line for line in lines if line.startswith("RssAnon:")]
            if not found:
                return
            self.anonymous_bytes = max(self.anonymous_bytes, int(found[0].split()[1]) * 1024)
            time.sleep(0.005)

    def check(self):
        if self.code != 0:
            tail = "\n".join((self.err or self.out).strip().splitlines()[-5:])
            raise Skipped(f"exit {self.code}: {' '.join(self.command)}\n{tail}")
        return self

    def json(self):
        """The last line of its output, one JSON object."""
        self.check()
        return json.loads(self.out.strip().splitlines()[-1])


def pairs(count, ours, peer):
    """Runs ours and peer in turn, the first of each pair alternating. peer may be None."""
    mine, theirs = [], []
    for i in range(count):
        order = [(ours, mine), (peer, theirs)]
        for call, results in order if i % 2 == 0 else reversed(order):
            if call is not None:
                results.append(call())
    return mine, theirs


def median(values):
    return statistics.median(values)


def cell(value):
    """Four digits, whole when large: 0.1234, 12.3, 45678."""
    if value == "":
        return ""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def row(name, ours, peer, limit, wanted, good, unit=""):
    """One line of the report. wanted: (">=" or "<=", number) on `good`, the figure that decides; or None: for information."""
    verdict = ""
    if wanted is not None:
        sign, bound = wanted
        verdict = "pass" if (good >= bound if sign == ">=" else good <= bound) else "FAIL"
    figures = [cell(ours), cell(peer) if peer is not None else "-", cell(good) if good is not None else "-",
               cell(limit) if limit is not None else "-", f"{wanted[0]} {wanted[1]:g}" if wanted else "-"]
    print(f"{name + (f' [{unit}]' if unit else ''):<52}" + "".join(f"{figure:>12}" for figure in figures) + f"  {verdict}")
    sys.stdout.flush()
    return verdict != "FAIL"


def header(title):
    print(f"\n{title}")
    print(f"{'':<52}" + "".join(f"{word:>12}" for word in ("ours", "peer", "figure", "limit", "wanted")))


def limits(file=None, table=256):
    """The machine's limits, measured now; random gathers from a table of so many MiB."""
    command = [BUILD / "bench" / "limits", "--table", table] + (["--file", file] if file else [])
    return Run(command).json()


def generated(form, rows, values=False, features=1000000, per_row=40):
    """A generated file, made once."""
    folder = SCRATCH / "data"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{rows}x{per_row}of{features}{'-values' if values else ''}.{form}"
    if not path.exists():
        part = path.with_suffix(path.suffix + ".tmp")
        command = [BUILD / "bench" / "gen", "--rows", rows, "--features", features, "--per-row", per_row, "--form", form]
        with open(part, "wb") as out:
            subprocess.run([str(word) for word in command] + (["--values"] if values else []), stdout=out, check=True)
        part.rename(path)
    return path


def warm(path):
    """Brings a file into the page cache."""
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass
    return path


def need_plait():
    if not PLAIT.exists():
        raise Skipped(f"{PLAIT} is not built")
    return PLAIT


def venv_python():
    python = SCRATCH / "venv" / "bin" / "python"
    if not python.exists():
        raise Skipped("peers of PyPI are not installed: bench/run installs them into .bench/venv")
    return python


def need_module(name, package):
    """A python3 that has a module: that of .bench/venv, else that of .venv (script/bootstrap --all)."""
    for python in (SCRATCH / "venv" / "bin" / "python", ROOT / ".venv" / "bin" / "python"):
        if python.exists() and subprocess.run([str(python), "-c", f"import {name}"], capture_output=True).returncode == 0:
            return python
    raise Skipped(f"{package} is not installed: {venv_python()} -m pip install {package}")


def run_alone(main):
    """One benchmark as a program. Exit code 1: it falls short; 4: not measured, and why."""
    try:
        sys.exit(0 if main() else 1)
    except Skipped as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        sys.exit(4)
