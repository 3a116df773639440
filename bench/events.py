"""(f) The event log: what it adds to a run's time on a9a and on generated data, and how fast the audit reads it."""
import tempfile
import pathlib

from common import Run, generated, header, median, need_plait, pairs, row, run_alone, warm
from workers import a9a


def main(rows=500000, count=5):
    plait = need_plait()
    cases = [("a9a, 4 workers, ps, bsp, 40 epochs", [a9a(), "--epochs", 40, "--workers", 4, "--topology", "ps"]),
             ("a9a, 4 workers, ps, ssp:4, 40 epochs", [a9a(), "--epochs", 40, "--workers", 4, "--topology", "ps", "--consistency", "ssp:4"]),
             ("a9a, 2 workers, local, bsp, 40 epochs", [a9a(), "--epochs", 40, "--workers", 2]),
             (f"zipf, {rows} rows, 2 workers, ps, ssp:2, 2 epochs",
              [warm(generated("libsvm", rows)), "--epochs", 2, "--workers", 2, "--topology", "ps", "--consistency", "ssp:2"])]
    good = True
    header("(f) seconds of training with an event log (ours) and without (peer)")
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "events"
        for name, words in cases:
            base = [plait, "train", "--model", "logistic", "--json", "--quiet", "--data", *words]
            with_log = lambda: Run(base + ["--events", log]).json()
            mine, theirs = pairs(count, with_log, lambda: Run(base).json())
            seconds = [median([result["train_seconds"] for result in results]) for results in (mine, theirs)]
            good &= row(name, *seconds, seconds[1], ("<=", 1.05), seconds[0] / seconds[1], "s")
        many = [plait, "train", "--model", "logistic", "--quiet", "--data", a9a(), "--workers", 4, "--topology", "ps",
                "--consistency", "ssp:4", "--batch", 40, "--epochs", 40, "--events", log]
        Run(many).check()
        audits = [Run([plait, "audit", "--json", log]) for _ in range(count)]
        events = audits[0].json()["events"]
        speed = events / median([audit.seconds for audit in audits])
        good &= row(f"audit of {events} events", speed, None, None, (">=", 5e6), speed, "events/s")
    return good


if __name__ == "__main__":
    run_alone(main)
