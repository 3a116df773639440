"""scikit-learn's check_estimator for every estimator of the package. What fails must be in the list below, with its
reason; what is in the list must fail. usage: checks.py"""
import warnings

import plait
from sklearn.utils.estimator_checks import check_estimator

WEIGHT = ["check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"]
BATCHES = "a row of weight 2 is not two rows where batches, bags or starts are drawn by row"
NETS = ("as above; and with all rows in a batch nets compute in float32, where the order of a sum moves predictions by 1e-6 and "
        "more, and 1e-7 is asked for. scikit-learn's nets compute in the float64 of that check's rows")
EXPECTED = {
    "KMeans": (WEIGHT, BATCHES),
    "LinearSVC": (WEIGHT, "the dual problem is solved row by row, within the tolerance, which is not 1e-7"),
    "MLPClassifier": (WEIGHT, NETS),
    "MLPRegressor": (WEIGHT, NETS),
    "RandomForestClassifier": (WEIGHT, BATCHES),
    "RandomForestRegressor": (WEIGHT, BATCHES),
    "SGDClassifier": (WEIGHT, BATCHES),
    "SGDRegressor": (WEIGHT, BATCHES),
}
GIVEN = {"LatentDirichletAllocation": dict(counts="round", max_iter=10), "RandomForestClassifier": dict(n_estimators=30),
         "RandomForestRegressor": dict(n_estimators=30), "GBDTClassifier": dict(n_estimators=30),
         "GBDTRegressor": dict(n_estimators=30)}


def failures(name):
    done = check_estimator(getattr(plait, name)(n_jobs=1, **GIVEN.get(name, {})), on_fail=None)
    assert len(done) > 40, f"{name}: only {len(done)} checks"
    return {check["check_name"]: check["exception"] for check in done if check["status"] == "failed"}


warnings.simplefilter("ignore")
names = [name for name in plait.__all__ if hasattr(getattr(plait, name), "fit")]
assert len(names) >= 24, names
wrong = [f"{name} is in the list, but is no estimator" for name in EXPECTED if name not in names]
for name in names:
    failed, expected = failures(name), EXPECTED.get(name, ([], ""))[0]
    wrong += [f"{name}: {check} fails: {str(why)[:300]}" for check, why in failed.items() if check not in expected]
    wrong += [f"{name}: {check} passes, but is in the list" for check in expected if check not in failed]
assert not wrong, "\n".join(wrong)
print(f"{len(names)} estimators")
