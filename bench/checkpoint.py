"""(i) What checkpoints cost: a table of 1 GB (2^28 values of f32), of which each clock changes some thousands.

A run of a9a, its features hashed to 28 bits, with and without checkpoints every 10 and every 60 seconds. The stall is the
longest that a worker stood still for a checkpoint at once, as the metrics have it."""
import gzip
import json
import shutil

from common import ROOT, SCRATCH, Run, header, median, need_plait, pairs, row, run_alone

OPTIONS = ["--hash-bits", 28, "--optimizer", "sgd", "--normalize", "none", "--l2", 0, "--schedule", "constant", "--batch", 256]
EPOCHS = {10: 6000, 60: 14000}


def data():
    path = SCRATCH / "data" / "a9a"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.decompress((ROOT / "tests" / "data" / "a9a" / "a9a.gz").read_bytes()))
    return path


def train(epochs, *more):
    """What the metrics tell, and the seconds of the clocks alone: to make a table of 1 GB and to read it takes some, too."""
    metrics = SCRATCH / "checkpoint.metrics"
    command = [need_plait(), "train", "--data", data(), *OPTIONS, "--epochs", epochs, "--quiet", "--metrics", metrics, *more]
    Run(command, timeout=1200).check()
    told = [json.loads(line) for line in metrics.read_text().splitlines()]
    return told, max(line["seconds"] for line in told if line["event"] == "epoch")


def kept(epochs, every, stalls):
    folder = SCRATCH / "checkpoints"
    shutil.rmtree(folder, ignore_errors=True)
    told, seconds = train(epochs, "--checkpoint", folder, "--checkpoint-every", f"{every}s")
    told = [line for line in told if line["event"] == "checkpoint"]
    stalls.extend(line["stall_seconds"] for line in told)
    shutil.rmtree(folder, ignore_errors=True)
    return seconds, len(told)


def main(count=3):
    header("(i) a table of 1 GB: seconds of a run, ours with checkpoints, peer without; figure: how much longer")
    good = True
    for every, wanted in ((10, 0.10), (60, 0.03)):
        stalls = []
        ours, peer = pairs(count, lambda: kept(EPOCHS[every], every, stalls), lambda: train(EPOCHS[every])[1])
        mine, base = median([seconds for seconds, _ in ours]), median(peer)
        name = f"every {every} s, {median([n for _, n in ours]):.0f} of them [s]"
        good &= row(name, mine, base, None, ("<=", wanted), mine / base - 1)
        good &= row("longest stall of a worker [s]", max(stalls), None, None, ("<=", 0.05), max(stalls))
    return good


if __name__ == "__main__":
    run_alone(main)
