"""Uses every estimator of the package, and a Ctrl-C. usage: estimators.py PROGRAM"""
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import scipy.sparse as sp
import sklearn.linear_model
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes

import plait
from plait import _core

X, number = load_breast_cancer(return_X_y=True)
X = ((X - X.mean(0)) / X.std(0)).astype(np.float32)
y = np.array(["benign", "malignant"])[number]
weight = np.arange(len(y)) % 3 + 1.0


def same(a, b, within):
    assert np.abs(np.asarray(a, float) - np.asarray(b, float)).max() <= within, (a, b)


def test_logistic():
    for w in (None, weight):
        ours = plait.LogisticRegression().fit(X, y, sample_weight=w)
        theirs = sklearn.linear_model.LogisticRegression(tol=1e-8, max_iter=5000).fit(X, y, sample_weight=w)
        same(ours.predict_proba(X), theirs.predict_proba(X), 1e-3)
        assert list(ours.classes_) == ["benign", "malignant"] and ours.n_features_in_ == 30
        same(ours.decision_function(X) > 0, ours.predict(X) == "malignant", 0)
    assert clone(ours).get_params() == ours.get_params()


def test_layouts_give_the_same_model():
    start = plait.LogisticRegression().fit(X, y).model_.hash
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for x in (np.asfortranarray(X), X.astype(np.float64), sp.csr_matrix(X), sp.csc_matrix(X), wide):
        assert plait.LogisticRegression().fit(x, y).model_.hash == start
    assert _core.Data(sp.csr_matrix(X)).is_lent
    assert not _core.Data(X).is_lent


def test_regression():
    x, z = load_diabetes(return_X_y=True)
    for ours, theirs in ((plait.Ridge(alpha=0.5), sklearn.linear_model.Ridge(alpha=0.5)),
                         (plait.LinearRegression(), sklearn.linear_model.LinearRegression())):
        same(ours.fit(x, z).predict(x), theirs.fit(x, z).predict(x), 0.05)


def test_others():
    assert plait.SGDClassifier(random_state=1).fit(X, y).score(X, y) > 0.97
    assert plait.SGDClassifier("hinge").fit(X, y).score(X, y) > 0.97
    gaps = X.copy()
    gaps[::3, 5] = np.nan
    assert plait.GBDTClassifier(20).fit(gaps, y).score(gaps, y) > 0.97
    x, z = load_diabetes(return_X_y=True)
    assert plait.GBDTRegressor(30).fit(x, z).score(x, z) > 0.6
    low, high = (plait.GBDTRegressor(30, loss="quantile", quantile=q).fit(x, z).predict(x) for q in (0.1, 0.9))
    assert (z <= high).mean() > (z <= low).mean() + 0.15, "quantile does nothing"
    hashes = {plait.GBDTRegressor(5, loss="huber", huber_delta=d).fit(x, z).model_.hash for d in (1.0, 50.0)}
    assert len(hashes) == 2, "huber_delta does nothing"
    means = plait.KMeans(2, random_state=1).fit(X)
    same(means.transform(X).argmin(1), means.labels_, 0)
    assert means.cluster_centers_.shape == (2, 30)


def test_pickles_and_files(program):
    model = plait.LogisticRegression().fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(X) == model.predict_proba(X)).all() and again.model_.hash == model.model_.hash
    model.model_.save("model.plait")
    with open("rows.svm", "w") as f:
        for row, label in zip(X[:50], number):
            f.write(f"{label} " + " ".join(f"{j}:{v:.9g}" for j, v in enumerate(row)) + "\n")
    done = subprocess.run([program, "predict", "--model-file", "model.plait", "--data", "rows.svm",
                           "--proba"], capture_output=True, text=True, check=True)
    same(np.array([line.split() for line in done.stdout.splitlines()], float), model.predict_proba(X[:50]), 1e-8)


def raises(kind, text, call):
    try:
        call()
    except kind as e:
        assert text in str(e), e
        return
    raise AssertionError(f"expected {kind.__name__}")


def test_failures():
    raises(ValueError, "NaN", lambda: plait.LogisticRegression().fit(np.full((4, 2), np.nan), [0, 1, 0, 1]))
    raises(plait.PlaitError, "optimizer", lambda: plait.SGDClassifier(optimizer="adagrat").fit(X, y))
    broken = sp.csr_matrix(X)
    broken.indices = broken.indices.copy()
    broken.indices[3] = 77
    broken.has_canonical_format = True
    raises(plait.PlaitError, "found 77", lambda: _core.Data(broken))


def test_ctrl_c_and_the_gil():
    ticks = []
    stop = threading.Event()
    ticker = threading.Thread(target=lambda: [ticks.append(0) or stop.wait(0.01) for _ in iter(stop.is_set, True)])
    ticker.start()
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    raises(KeyboardInterrupt, "", lambda: plait.SGDClassifier(max_iter=10_000_000).fit(X, y))
    stop.set()
    ticker.join()
    assert len(ticks) > 3, "other threads stood still"
    assert time.monotonic() - begun < 60


test_logistic()
test_layouts_give_the_same_model()
test_regression()
test_others()
test_pickles_and_files(sys.argv[1])
test_failures()
test_ctrl_c_and_the_gil()
