"""Principal components by the kernels alone, beside scikit-learn's PCA(svd_solver="covariance_eigh") of the same rows, as
floats and as doubles: seconds, the share of the variance explained, and the products' share of the sgemm peak."""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from common import BUILD, SCRATCH, Run, header, median, need_module, need_plait, pairs, row, run_alone

ROWS, FEATURES, COMPONENTS = 200000, 512, 20


def generate(path):
    """Forty directions of their own and noise around them, far from the origin."""
    import numpy as np
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, 40)) @ rng.normal(size=(40, FEATURES)) + 0.5 * rng.normal(size=(ROWS, FEATURES))
    (x + 3 * rng.normal(size=FEATURES)).astype(np.float32).tofile(path)


def peer(path, kind, threads):
    import os
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = threads
    import numpy as np
    from sklearn.decomposition import PCA
    x = np.fromfile(path, np.float32).reshape(ROWS, FEATURES).astype(kind)
    best = 1e9
    for _ in range(5):
        begin = time.perf_counter()
        model = PCA(COMPONENTS, svd_solver="covariance_eigh").fit(x)
        best = min(best, time.perf_counter() - begin)
    print(json.dumps({"seconds": best, "explained": float(model.explained_variance_ratio_.sum())}))


def main(count=3, threads=2):
    need_plait()
    python = need_module("sklearn", "scikit-learn")
    header("(l) principal components beside scikit-learn, ms; figure: how many times as fast")
    path = SCRATCH / "data" / f"forty-{ROWS}x{FEATURES}.f32"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        Run([python, __file__, "--generate", path]).check()
    good = True
    for ours_of, kind in (("floats", "float32"), ("doubles", "float64")):
        ours, theirs = pairs(count, lambda: Run([BUILD / "bench" / "components", path, ROWS, FEATURES, COMPONENTS, "--threads",
                                                 threads, "--products", ours_of]).json(),
                             lambda: Run([python, __file__, "--peer", path, kind, threads]).json())
        mine, other = (median([result["seconds"] for result in results]) * 1e3 for results in (ours, theirs))
        good &= row(f"200k x 512, 20 components, products of {ours_of}", mine, other, None, (">=", 1), other / mine, "ms")
        gap = abs(ours[0]["explained"] - theirs[0]["explained"])
        good &= row("explained variance, the gap", ours[0]["explained"], theirs[0]["explained"], None, ("<=", 1e-4), gap)
        share = median([result["gflop_s"] / result["sgemm_gflop_s"] for result in ours])
        row("products at this share of the sgemm peak", share, None, 1 if ours_of == "floats" else 0.5, None, share)
    return good


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(*sys.argv[2:5])
    elif sys.argv[1:2] == ["--generate"]:
        generate(sys.argv[2])
    else:
        run_alone(main)
