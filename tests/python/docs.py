"""Runs the examples of docs/python.md and of the docstrings, train.py under plait launch too, and checks that the pages
and stubs written from docstrings are up to date. usage: docs.py PROGRAM ROOT"""
import contextlib
import doctest
import importlib
import io
import os
import re
import subprocess
import sys

program, root = sys.argv[1:3]
os.environ["PATH"] = os.path.dirname(program) + os.pathsep + os.environ["PATH"]
if os.path.isdir(os.path.join(os.path.dirname(program), "modules")):  # of a build tree
    os.environ["PLAIT_MODULES"] = os.path.join(os.path.dirname(program), "modules")

with open(os.path.join(root, "docs/python.md"), encoding="utf-8") as f:
    blocks = re.findall(r"^```python\n(.*?)^```$", f.read(), re.M | re.S)
assert len(blocks) == 3, len(blocks)


def loss_of(text):
    return float(re.search(r"loss ([0-9.]+)", text)[1])


def test_blocks():
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        for block in blocks:
            exec(compile(block, "python.md", "exec"), {"__name__": "__main__"})
    assert "4 workers" in said.getvalue() and loss_of(said.getvalue()) < 0.21, said.getvalue()
    assert "no difference" in said.getvalue() or "suits this job" in said.getvalue(), said.getvalue()


def test_launch():
    with open("train.py", "w") as f:
        f.write(next(block for block in blocks if block.startswith("# train.py")))
    done = subprocess.run([program, "launch", "-n", "4", "--", sys.executable, "train.py"], capture_output=True, text=True)
    if done.returncode != 0 and ("module" in done.stderr or "no mpirun" in done.stderr):
        return print("skipped: train.py under launch: " + done.stderr.splitlines()[-1])
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 4, (done.stdout, done.stderr)
    assert all(line.startswith("1 workers") and loss_of(line) < 0.21 for line in lines), lines


def test_docstrings():
    tried = 0
    for name in ("_base", "_core", "bayes", "cli", "factors", "job", "linear", "nets", "parts", "trees"):
        result = doctest.testmod(importlib.import_module(f"plait.{name}"))
        assert result.failed == 0, name
        tried += result.attempted
    assert tried >= 2, tried


test_blocks()
test_launch()
test_docstrings()
subprocess.run([sys.executable, os.path.join(root, "bindings/python/reference.py"), root, "--check"], check=True)
