"""(h) What nets reach: MNIST by a perceptron and a cnn, with one worker and four, and a text by characters by an lstm.

Takes train-images-idx3-ubyte.gz and its like, and input.txt.gz (tinyshakespeare), from the folders mnist and
tinyshakespeare of PLAIT_BENCH_FILES, else of ../shared/data beside the tree. The text's last tenth is the test."""
import gzip
import json
import os
import pathlib
import signal
import subprocess
import time

from common import ROOT, SCRATCH, Run, Skipped, header, need_plait, row, run_alone

FILES = pathlib.Path(os.environ.get("PLAIT_BENCH_FILES", ROOT.parent / "shared" / "data"))
FOUR = ["--workers", 4, "--threads", 1]
WAYS = {
    "allreduce bsp": ["--topology", "allreduce"],
    "ps ssp:2": ["--topology", "ps", "--consistency", "ssp:2"],
    "hybrid": ["--topology", "hybrid"],
}
IMAGES = {"mlp": ("512,256", 10, 0.980), "cnn": ("16,32,128", 8, 0.990)}


def file(folder, name):
    path = FILES / folder / name
    if not path.exists():
        raise Skipped(f"{path} is not there; name its folder's folder by PLAIT_BENCH_FILES")
    return path


def text():
    """The first nine tenths of the text, and the last."""
    whole = gzip.decompress(file("tinyshakespeare", "input.txt.gz").read_bytes())
    cut = len(whole) - len(whole) // 10
    parts = [SCRATCH / "data" / name for name in ("text_train.txt", "text_test.txt")]
    parts[0].parent.mkdir(parents=True, exist_ok=True)
    for path, part in zip(parts, (whole[:cut], whole[cut:])):
        path.write_bytes(part)
    return parts


def train(model, layers, data, test, *more):
    command = [need_plait(), "train", "--model", model, "--layers", layers, "--data", data, "--test", test, *more]
    return Run([*command, "--json", "--quiet"], timeout=3600).json()


def images(model):
    layers, epochs, wanted = IMAGES[model]
    data = [file("mnist", f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k")]
    file("mnist", "train-labels-idx1-ubyte.gz"), file("mnist", "t10k-labels-idx1-ubyte.gz")
    header(f"(h) MNIST, {model} {layers}, {epochs} epochs: ours is the share of digits that were hit")
    one = train(model, layers, *data, "--epochs", epochs)
    own = one["test_accuracy"]
    good = row(f"one worker, {one['train_seconds']:.0f} s: accuracy", own, None, None, (">=", wanted), own)
    for name, options in WAYS.items():
        found = train(model, layers, *data, "--epochs", epochs, *FOUR, *options)["test_accuracy"]
        good &= row(f"four workers, {name}: as far from one", found, None, None, ("<=", 0.003), abs(found - own))
    return good


def characters():
    header("(h) tinyshakespeare by characters, lstm 256, 10 epochs: the last tenth")
    result = train("lstm", "256", *text(), "--epochs", 10, "--threads", 2)
    good = row("test loss [nats a character]", result["test_loss"], None, None, ("<=", 1.65), result["test_loss"])
    seconds = result["train_seconds"]
    return good & row("training [s, 2 threads]", seconds, None, None, ("<=", 900), seconds)


def survives():
    """The perceptron by four processes with two copies of each shard, one of which is killed after the third epoch."""
    layers, _, wanted = IMAGES["mlp"]
    data = [file("mnist", f"{part}-images-idx3-ubyte.gz") for part in ("train", "t10k")]
    header("(h) MNIST, mlp by four processes, ps, --replicas 2; of one run a rank is killed")
    good = True
    for victim in (None, 2, 0):
        metrics = SCRATCH / "survives.metrics"
        metrics.unlink(missing_ok=True)
        command = [need_plait(), "launch", "-n", 4, "--", need_plait(), "train", "--model", "mlp", "--layers", layers,
                   "--data", data[0], "--test", data[1], "--epochs", 6, "--topology", "ps", "--replicas", 2,
                   "--metrics", metrics, "--json", "--quiet"]
        run = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
        while victim is not None and run.poll() is None:
            whole = metrics.read_text().rpartition("\n")[0].splitlines() if metrics.exists() else []
            lines = [json.loads(line) for line in whole]
            if any(line["event"] == "epoch" and line["epoch"] >= 3 for line in lines):
                started = (line for line in lines if line["event"] == "start" and line["rank"] == victim)
                os.kill(next(started)["pid"], signal.SIGKILL)
                break
            time.sleep(0.1)
        found = json.loads(run.communicate()[0])["test_accuracy"]
        name = "nobody" if victim is None else f"rank {victim}"
        good &= row(f"{name} killed, exit code {run.returncode}: accuracy", found, None, None, (">=", wanted), found)
        good &= run.returncode == 0
    return good


def main(count=1):
    del count  # what a net reaches is told once
    return all([images("mlp"), survives(), images("cnn"), characters()])


if __name__ == "__main__":
    run_alone(main)
