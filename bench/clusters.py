"""k-means' iterations by the kernels alone, beside scikit-learn's KMeans(algorithm="lloyd") from the same first
centres: seconds an iteration, the sum of squared distances, and the products' share of the sgemm peak of the same run."""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from common import BUILD, SCRATCH, Run, header, median, need_module, need_plait, pairs, row, run_alone

# name, rows, features, clusters, share of entries that are not zero, how our kernels take them, times as fast
CASES = [("dense 1M x 32, 64 clusters", 1000000, 32, 64, 1, "dense", 1.5),
         ("dense 200k x 256, 100 clusters", 200000, 256, 100, 1, "dense", None),
         ("200k x 256, a fifth not zero, 100 clusters", 200000, 256, 100, 0.2, "entries", None)]
ITERATIONS = 12


def generate(path, rows, features, clusters, density):
    """Gaussians around as many centres, of which some entries are left out."""
    import numpy as np
    rng = np.random.default_rng(0)
    x = rng.normal(size=(clusters, features))[rng.integers(0, clusters, rows)] + rng.normal(size=(rows, features))
    if density < 1:
        x[rng.random(x.shape) > density] = 0
    x.astype(np.float32).tofile(path)


def peer(path, rows, features, clusters, threads):
    """Seconds an iteration: of a run of 12 iterations less those of one of 2, so that what is done once does not count."""
    import os
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
    import numpy as np
    from sklearn.cluster import KMeans
    x = np.fromfile(path, np.float32).reshape(rows, features)
    took = {}
    for iterations in (2, ITERATIONS, 2, ITERATIONS):
        model = KMeans(clusters, init=x[:clusters], n_init=1, max_iter=iterations, tol=0, algorithm="lloyd")
        begin = time.perf_counter()
        model.fit(x)
        took[iterations] = min(took.get(iterations, 1e9), time.perf_counter() - begin)
    # Summed in double: its own inertia_ of floats is a sum in floats.
    gap = x.astype(np.float64) - model.cluster_centers_.astype(np.float64)[model.labels_]
    print(json.dumps({"seconds": (took[ITERATIONS] - took[2]) / (ITERATIONS - 2), "inertia": float((gap * gap).sum())}))


def main(count=3, threads=2):
    need_plait()
    python = need_module("sklearn", "scikit-learn")
    header("(k) an iteration of k-means beside scikit-learn, ms; figure: how many times as fast")
    good = True
    for name, rows, features, clusters, density, form, wanted in CASES:
        path = SCRATCH / "data" / f"gaussians-{rows}x{features}-{clusters}-{density}.f32"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            Run([python, __file__, "--generate", path, rows, features, clusters, density]).check()
        # scikit-learn judges its rows once more with the last centres: one iteration more of ours.
        ours, theirs = pairs(count, lambda: Run([BUILD / "bench" / "clusters", path, rows, features, clusters, "--threads",
                                                 threads, "--iterations", ITERATIONS + 1, "--form", form]).json(),
                             lambda: Run([python, __file__, "--peer", path, rows, features, clusters, threads]).json())
        mine, other = (median([result["seconds"] for result in results]) * 1e3 for results in (ours, theirs))
        good &= row(name, mine, other, None, (">=", wanted) if wanted else None, other / mine, "ms")
        ratio = abs(ours[0]["inertia"] / theirs[0]["inertia"] - 1)
        good &= row(f"{name}: squared distances", ours[0]["inertia"], theirs[0]["inertia"], None, ("<=", 1e-5), ratio)
        share = median([result["gflop_s"] / result["sgemm_gflop_s"] for result in ours])
        row(f"{name}: products at this share of the sgemm peak", share, None, 1, None, share)
    return good


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        peer(sys.argv[2], *map(int, sys.argv[3:]))
    elif sys.argv[1:2] == ["--generate"]:
        generate(sys.argv[2], *map(int, sys.argv[3:6]), float(sys.argv[6]))
    else:
        run_alone(main)
