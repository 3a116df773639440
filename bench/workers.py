"""(e) Four workers on two cores under ps and bsp, against one worker with two threads: rows a second on a9a."""
import gzip
import shutil

from common import ROOT, SCRATCH, Run, header, median, need_plait, pairs, row, run_alone


def a9a():
    path = SCRATCH / "data" / "a9a"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(ROOT / "tests" / "data" / "a9a" / "a9a.gz") as packed, open(path, "wb") as out:
            shutil.copyfileobj(packed, out)
    return path


def compared(optimizer, plait, data, count, epochs):
    base = [plait, "train", "--model", "logistic", "--data", data, "--optimizer", optimizer, "--epochs", epochs, "--transport",
            "threads", "--json", "--quiet"]
    four = lambda: Run(base + ["--workers", 4, "--topology", "ps", "--consistency", "bsp"]).json()
    one = lambda: Run(base + ["--workers", 1, "--threads", 2]).json()
    mine, theirs = pairs(count, four, one)
    rate = lambda result: result["rows"] * result["epochs"] / result["train_seconds"]
    ours, single = median([rate(result) for result in mine]), median([rate(result) for result in theirs])
    return row(f"{optimizer}: rows a second, limit: no loss at all", ours, single, single, (">=", 0.8), ours / single, "rows/s")


def main(rows=None, count=5, epochs=20):
    plait, data = need_plait(), a9a()
    header(f"(e) a9a, {epochs} epochs: 4 workers, ps and bsp (ours), against 1 worker with 2 threads (peer), on 2 cores")
    good = [compared(optimizer, plait, data, count, epochs) for optimizer in ("lbfgs", "adagrad")]
    return all(good)


if __name__ == "__main__":
    run_alone(main)
