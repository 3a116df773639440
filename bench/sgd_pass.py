"""(a) One SGD pass from text, against Vowpal Wabbit: whole processes, time and progressive loss; memory while streaming.

VW reads its own text form of the same rows. In the default form both files hold `index:1`; `--short` leaves out VW's
`:1`, which it does not need (its file is then a third smaller than ours)."""
import re
import sys

from common import (Run, Skipped, generated, header, limits, median, need_module, need_plait, pairs, row, warm)


def vw_form(source, short):
    """The same rows as VW text: `label | index:1 …`, or `label | index …`."""
    path = source.with_suffix(".short.vw" if short else ".vw")
    if not path.exists():
        with open(source) as lines, open(path, "w") as out:
            for line in lines:
                label, _, rest = line.partition(" ")
                out.write(f"{label} | {rest.replace(':1 ', ' ').replace(':1' + chr(10), chr(10)) if short else rest}")
    return path


def ours(path, extra=()):
    plait = need_plait()
    return Run([plait, "train", "--model", "logistic", "--data", path, "--epochs", 1, "--threads", 2, "--topology", "local",
                "--consistency", "async", "--optimizer", "adagrad", "--l2", 0, "--json", "--quiet", *extra])


def main(rows=500000, count=5, short=False, values=False, extra=()):
    need_plait()
    text = warm(generated("libsvm", rows, values))
    machine = limits(text, 8)
    peer = None
    try:
        python = need_module("vowpalwabbit", "vowpalwabbit")
        vw_text = warm(generated("vw", rows, values) if values else vw_form(text, short))
        command = [python, "-m", "vowpalwabbit", "--loss_function", "logistic", "-b", 20, "-d", vw_text]
        peer = lambda: Run(command).check()
    except Skipped as reason:
        print(f"peer skipped: {reason}")
    header(f"(a) one SGD pass from text, {rows} rows, {text.stat().st_size / 1e6:.0f} MB, 2 threads")
    mine, theirs = pairs(count, lambda: ours(text, extra).check(), peer)
    loss = median([run.json()["progressive_loss"] for run in mine])
    seconds = median([run.seconds for run in mine])
    fastest = text.stat().st_size / 1e9 / machine["file_gb_s"] + 40 * rows / 1e6 / machine["gather_m_s"]
    good = True
    if theirs:
        vw_seconds = median([run.seconds for run in theirs])
        vw_loss = float(re.search(r"average loss = ([0-9.]+)", theirs[0].err + theirs[0].out).group(1))
        good &= row("whole process, limit: file and gathers", seconds, vw_seconds, fastest, (">=", 1.5), vw_seconds / seconds, "s")
        good &= row("progressive loss", loss, vw_loss, None, ("<=", 1.005), loss / vw_loss)
    else:
        row("whole process, limit: file and gathers", seconds, None, fastest, None, None, "s")
        row("progressive loss", loss, None, None, None, None)
    small, large = ours(text, extra), ours(warm(generated("libsvm", 4 * rows, values)), extra)
    growth = (large.check().peak_bytes - small.check().peak_bytes) / 1e6
    good &= row("peak memory: growth on a file 4 times larger", growth, None, None, ("<=", 64), growth, "MB")
    row("  peak resident, the file and 4 times it", small.peak_bytes / 1e6, large.peak_bytes / 1e6, None, None, None, "MB")
    return good


if __name__ == "__main__":
    sys.exit(0 if main(short="--short" in sys.argv, values="--values" in sys.argv) else 1)
