"""(j) ONNX's own node tests (PyPI onnx): how many give the values that onnx says, how many are refused by name, how many are
wrong. Each is run at all opsets from 17 to 23 at which it means the same (tests/graph/onnx_nodes.py)."""
import shutil

from common import BUILD, ROOT, SCRATCH, Run, Skipped, header, row, run_alone


def main(count=1):
    python, program = SCRATCH / "venv" / "bin" / "python", BUILD / "tests" / "onnx_run"
    folder = SCRATCH / "onnx_nodes"
    if not program.exists():
        raise Skipped(f"{program} is not there: cmake --build --preset release builds it where protobuf-c is")
    if not python.exists() or Run([python, "-c", "import onnx, numpy, ml_dtypes"]).code != 0:
        raise Skipped("PyPI onnx is not in .bench/venv; bench/run j installs it")
    shutil.rmtree(folder, ignore_errors=True)
    done = Run([python, ROOT / "tests" / "graph" / "onnx_nodes.py", program, folder], timeout=3600)
    shutil.rmtree(folder, ignore_errors=True)
    if not done.out:
        raise Skipped(f"onnx's tests could not be made: {done.err.strip()[-300:]}")
    header("(j) ONNX's own node tests")
    print(done.out, end="")
    bad = sum(line.startswith(("wrong:", "crashed:", "changed:")) for line in done.out.splitlines())
    return row("wrong or crashed", bad, None, None, ("<=", 0), bad, "tests") and done.code == 0


if __name__ == "__main__":
    run_alone(main)
