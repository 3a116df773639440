"""(d) Parsing of text into CSR on 2 cores: LIBSVM against scikit-learn's reader (one process, smaller file), VW text against
Vowpal Wabbit's (its parser and its learner, which does nothing: --noop)."""
from common import BUILD, Run, Skipped, generated, header, limits, median, need_module, pairs, row, run_alone, warm

READ = ("import sys, time; from sklearn.datasets import load_svmlight_file as load; start = time.perf_counter(); "
        "load(sys.argv[1]); print(time.perf_counter() - start)")

READ_VW = ("import sys, time, vowpalwabbit; start = time.perf_counter(); "
           "vowpalwabbit.Workspace('--noop --quiet -d ' + sys.argv[1]).finish(); print(time.perf_counter() - start)")


def parse_vw(rows, count):
    text = warm(generated("vw", rows, True))
    machine = limits(text)
    peer = None
    try:
        python = need_module("vowpalwabbit", "vowpalwabbit")
        peer = lambda: Run([python, "-c", READ_VW, text]).check()
    except Skipped as reason:
        print(f"peer skipped: {reason}")
    header(f"(d) parsing VW text, {text.stat().st_size / 1e6:.0f} MB, index:value")
    mine, theirs = pairs(count, lambda: Run([BUILD / "bench" / "parse", text, 2]).json(), peer)
    rate = median([result["bytes"] / result["seconds"] / 1e6 for result in mine])
    other = median([text.stat().st_size / float(run.out) / 1e6 for run in theirs]) if theirs else None
    ratio = rate / other if other else None
    return row("VW text to CSR, 2 threads, limit: page cache", rate, other, machine["file_gb_s"] * 1e3,
               (">=", 1) if other else None, ratio, "MB/s")


def main(rows=500000, count=5):
    good = parse_vw(rows, count)
    for values in (False, True):
        text = warm(generated("libsvm", rows, values))
        small = warm(generated("libsvm", max(1, rows // 10), values))
        machine = limits(text)
        peer = None
        try:
            python = need_module("sklearn", "scikit-learn")
            peer = lambda: Run([python, "-c", READ, small]).check()
        except Skipped as reason:
            print(f"peer skipped: {reason}")
        header(f"(d) parsing LIBSVM text, {text.stat().st_size / 1e6:.0f} MB, values {'real' if values else 'all 1'}")
        mine, theirs = pairs(count, lambda: Run([BUILD / "bench" / "parse", text, 2]).json(), peer)
        rate = median([result["bytes"] / result["seconds"] / 1e6 for result in mine])
        other = median([small.stat().st_size / float(run.out) / 1e6 for run in theirs]) if theirs else None
        good &= row("text to CSR, 2 threads, limit: page cache", rate, other, machine["file_gb_s"] * 1e3, (">=", 400), rate, "MB/s")
    return good


if __name__ == "__main__":
    run_alone(main)
