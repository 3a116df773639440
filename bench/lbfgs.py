"""(b) L-BFGS to LIBLINEAR's objective, against `liblinear-train -s 0` (trust region Newton, C = 1, no intercept), both with
reading the text. The objective of LIBLINEAR's model is computed here from its model file; Plait's tolerance is one at which
it ends no higher. For ten classes LIBLINEAR solves ten problems of one against the rest, another objective than softmax; there
both run to their default tolerance. The set of covtype's shape is generated: 581,012 rows, 54 features, 12 values in a row."""
import gzip
import math
import shutil

from common import ROOT, SCRATCH, Run, generated, header, limits, median, need_plait, pairs, row, run_alone, warm
from workers import a9a


def liblinear_objective(text, model):
    """(sum of losses + ||w||^2 / 2) / n, of its model on its data."""
    with open(model) as lines:
        labels = None
        for line in lines:
            if line.startswith("label"):
                labels = [int(word) for word in line.split()[1:]]
            if line.strip() == "w":
                break
        weight = [float(line) for line in lines]
    loss, n = 0.0, 0
    with open(text) as lines:
        for line in lines:
            words = line.split()
            margin = 0.0
            for word in words[1:]:
                index, _, value = word.partition(":")
                at = int(index) - 1
                if at < len(weight):
                    margin += weight[at] * float(value)
            margin = margin if int(float(words[0])) == labels[0] else -margin
            loss += max(0.0, -margin) + math.log1p(math.exp(-abs(margin)))
            n += 1
    return (loss + 0.5 * sum(w * w for w in weight)) / n


def digits():
    path = SCRATCH / "data" / "digits.libsvm"
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(ROOT / "tests" / "data" / "digits" / "digits.csv.gz", "rt") as lines, open(path, "w") as out:
        for line in lines:
            *values, label = line.strip().split(",")
            out.write(label + "".join(f" {j}:{v}" for j, v in enumerate(values, 1) if float(v) != 0) + "\n")
    return path


def train(text, tolerance):
    return lambda: Run([need_plait(), "train", "--model", "logistic", "--data", text, "--optimizer", "lbfgs", "--tolerance",
                        tolerance, "--no-intercept", "--threads", 2, "--json", "--quiet"]).check()


def small(name, text, peer_program, model, count, one_objective=True):
    """Whole processes on a set that is in memory at once."""
    peer = (lambda: Run([peer_program, "-q", "-s", 0, text, model]).check()) if peer_program else None
    mine, theirs = pairs(count, train(text, 1e-4), peer)
    seconds = median([run.seconds for run in mine])
    if not theirs:
        return row(f"{name}: whole process", seconds, None, None, None, None, "s")
    theirs_seconds = median([run.seconds for run in theirs])
    good = row(f"{name}: whole process", seconds, theirs_seconds, None, (">=", 1.5), theirs_seconds / seconds, "s")
    if one_objective:
        best, objective = liblinear_objective(text, model), mine[0].json()["objective"]
        good &= row(f"{name}: objective, relative excess", objective, best, None, ("<=", 1e-4), objective / best - 1)
    return good


def main(rows=500000, count=5):
    need_plait()
    text = warm(generated("libsvm", rows))
    machine = limits(text, 8)
    peer_program = shutil.which("liblinear-train")
    model = SCRATCH / "liblinear.model"
    peer = (lambda: Run([peer_program, "-q", "-s", 0, text, model]).check()) if peer_program else None
    if peer is None:
        print("peer skipped: liblinear-train is missing (apt-get install liblinear-tools)")
    header(f"(b) L-BFGS to LIBLINEAR's objective, {rows} rows")
    mine, theirs = pairs(count, train(text, 7e-4), peer)
    result = mine[0].json()
    seconds, objective = median([run.seconds for run in mine]), result["objective"]
    entries = 40 * rows
    csr_bytes = 8 * (rows + 1) + 4 * entries
    passes = result["clocks"]
    fastest = text.stat().st_size / 1e9 / machine["file_gb_s"] + passes * 2 * entries / 1e6 / machine["gather_m_s"]
    good = True
    if theirs:
        theirs_seconds, best = median([run.seconds for run in theirs]), liblinear_objective(text, model)
        good &= row(f"whole process, limit: file and {passes} passes of gathers", seconds, theirs_seconds, fastest, (">=", 4),
                    theirs_seconds / seconds, "s")
        good &= row("objective, relative excess", objective, best, None, ("<=", 1e-4), objective / best - 1)
    else:
        row("whole process", seconds, None, fastest, None, None, "s")
        row("objective", objective, None, None, None, None)
    anonymous = median([run.anonymous_bytes for run in mine])
    good &= row("peak anonymous memory / CSR (row starts, columns)", anonymous / 1e6,
                theirs[0].anonymous_bytes / 1e6 if theirs else None, csr_bytes / 1e6, ("<=", 1.5), anonymous / csr_bytes, "MB")
    good &= small("a9a", a9a(), peer_program, model, count)
    good &= small("digits", digits(), peer_program, model, count, one_objective=False)
    shape = warm(generated("libsvm", 581012, values=True, features=54, per_row=12))
    return good & small("covtype's shape", shape, peer_program, model, count)


if __name__ == "__main__":
    run_alone(main)
