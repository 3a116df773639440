"""Measures the package for bench/python. usage: python_fit.py PROGRAM ROOT"""
import os
import resource
import statistics
import subprocess
import sys
import time

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

import plait

PROGRAM, ROOT = sys.argv[1:3]
A9A = os.path.join(ROOT, "tests", "data", "a9a", "a9a.gz")


def command_line():
    """Processor seconds of the same training from the cache, the process with it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([PROGRAM, "train", "--data", "a9a", "--optimizer", "lbfgs", "--tolerance", "1e-6", "--epochs", "200",
                    "--cache", "--threads", "1", "--quiet", "--out", "model"], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def fit(x, y):
    begin = time.process_time()
    plait.LogisticRegression(n_jobs=1).fit(x, y)
    return time.process_time() - begin


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    missed = 0
    with open("a9a", "wb") as out:
        subprocess.run(["gzip", "-dc", A9A], check=True, stdout=out)
    x, y = load_svmlight_file("a9a")
    x = x.astype(np.float32)
    command_line(), fit(x, y)
    pairs = [(fit(x, y), command_line()) for _ in range(int(os.environ["RUNS"]))]
    mine, theirs = (statistics.median(column) * 1e3 for column in zip(*pairs))
    ratio = statistics.median(m / t for m, t in pairs)
    missed += ratio > 1.05
    print(f"fit of a9a {mine:.1f} ms of processor time, command line {theirs:.1f} ms: {ratio:.2f} times, the median of "
          f"{len(pairs)} pairs; wanted <= 1.05")
    rows, a_row = 100000, 20
    random = np.random.default_rng(1)
    column = np.sort(random.integers(0, 50000, (rows, a_row)), axis=1)
    column += np.arange(a_row)  # no column twice in a row
    matrix = sp.csr_matrix((random.random(rows * a_row, np.float32), column.ravel().astype(np.int32),
                            np.arange(0, rows * a_row + 1, a_row, dtype=np.int32)), shape=(rows, 50020))
    label = random.integers(0, 2, rows)
    size = sum(part.nbytes for part in (matrix.data, matrix.indices, matrix.indptr)) / 2 ** 20
    before = peak()
    plait.SGDClassifier(max_iter=2, n_jobs=1).fit(matrix, label)
    grown = peak() - before
    missed += grown > size / 2
    print(f"{matrix.nnz} non-zeros of CSR, {size:.1f} MiB: a fit adds {grown:.1f} MiB to the peak; wanted < {size / 2:.1f}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
