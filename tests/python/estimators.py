"""Uses every estimator of the package, and a Ctrl-C. usage: estimators.py PROGRAM"""
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.naive_bayes
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.decomposition import PCA

import plait
from common import raises
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


def test_every_learner():
    """Each estimator that test_others has not used does better than guessing."""
    x, z = load_diabetes(return_X_y=True)
    for model in (plait.LinearSVC(), plait.MLPClassifier((8,)), plait.RandomForestClassifier(20), plait.GaussianNB()):
        assert model.fit(X, y).score(X, y) > 0.9, model
    for model in (plait.Lasso(0.1), plait.ElasticNet(0.01), plait.HuberRegressor(50.0), plait.PoissonRegressor(1e-3),
                  plait.MLPRegressor((16,)), plait.RandomForestRegressor(20), plait.SGDRegressor()):
        assert model.fit(x, z).score(x, z) > 0.35, model
    same(plait.Lasso(0.1).fit(x, z).coef_, sklearn.linear_model.Lasso(0.1, tol=1e-8).fit(x, z).coef_, 0.05)
    pca = plait.PCA(3).fit(X)
    same(pca.explained_variance_ratio_, PCA(3).fit(X).explained_variance_ratio_, 1e-4)
    assert list(pca.get_feature_names_out()) == ["pca0", "pca1", "pca2"]
    words = np.random.default_rng(0).poisson([[4, 4, 0, 0]] * 20 + [[0, 0, 4, 4]] * 20)
    topics = plait.LatentDirichletAllocation(2, max_iter=30, random_state=1).fit(words)
    assert topics.components_.shape == (2, 4) and len(set(topics.transform(words)[:20].argmax(1))) == 1
    raises(plait.PlaitError, "counts", lambda: topics.fit(words + 0.5))


def test_weights_of_nets():
    """With all rows in a batch a row of weight 2 is two rows, up to float32."""
    draw = np.random.default_rng(0)
    rows, times = 1e3 * draw.random((15, 30)) + 1e5, draw.integers(0, 5, 15)
    z, order = draw.integers(0, 3, 15), draw.permutation(15)
    for model in (plait.MLPClassifier((8,), solver="sgd", batch_size=1000, alpha=1.0, max_iter=20),
                  plait.MLPRegressor((8,), solver="sgd", batch_size=1000, alpha=1.0, max_iter=20)):
        repeated = clone(model).fit(rows.repeat(times, 0), z.repeat(times))
        weighted = clone(model).fit(rows[order], z[order], sample_weight=times[order])
        of = "predict_proba" if hasattr(model, "predict_proba") else "predict"
        same(getattr(repeated, of)(rows), getattr(weighted, of)(rows), 1e-3)


def test_factors():
    draw = np.random.default_rng(0)
    ratings = 3 + draw.normal(size=(80, 2)) @ draw.normal(size=(2, 50))
    known = draw.random(ratings.shape) < 0.4
    model = plait.MatrixFactorization(4, max_iter=30).fit(sp.csr_matrix(np.where(known, ratings, 0)))
    users, items = np.nonzero(~known)
    error = np.sqrt(((model.values(users, items) - ratings[users, items]) ** 2).mean())
    assert error < 0.6 * ratings.std(), error
    same(model.transform(np.where(known, ratings, 0)), model.user_factors_, 1e-3)
    best, values = model.recommend([3], 5)
    assert (np.diff(values[0]) <= 0).all() and best.shape == (1, 5)


def test_parts():
    """A model that learns in parts becomes that of the whole, or as good."""
    counts = np.random.default_rng(0).poisson(2 + 2 * (number[:, None] == [0, 1, 1]))
    for model, rows in ((plait.MultinomialNB(), counts), (plait.ComplementNB(), counts), (plait.BernoulliNB(), counts),
                        (plait.GaussianNB(), X)):
        whole = clone(model).fit(rows, y).predict_proba(rows)
        for at in range(0, len(y), 100):
            model.partial_fit(rows[at:at + 100], y[at:at + 100], classes=["benign", "malignant"])
        same(model.predict_proba(rows), whole, 1e-4)
        theirs = getattr(sklearn.naive_bayes, type(model).__name__)().fit(rows, y)
        same(whole, theirs.predict_proba(rows), 1e-4)
    for model in (plait.SGDClassifier(), plait.MLPClassifier((8,))):
        for at in list(range(0, len(y), 100)) * 5:
            model.partial_fit(X[at:at + 100], y[at:at + 100], classes=["benign", "malignant"])
        assert model.score(X, y) > 0.95, model
    raises(ValueError, "classes", lambda: plait.SGDClassifier().partial_fit(X, y))
    clusters = plait.KMeans(2, random_state=1)
    for at in range(0, len(y), 100):
        clusters.partial_fit(X[at:at + 100])
    assert -clusters.score(X) < -1.1 * plait.KMeans(2, random_state=1).fit(X).score(X)


def test_frames(program):
    try:
        import pandas as pd
    except ImportError:
        return print("skipped: frames (no pandas)")
    frame = pd.DataFrame({"age": [20, 30, np.nan, 50] * 20, "city": pd.Categorical(["Rome", "Oslo", None, "Kyoto"] * 20),
                          "kind": ["a", "b", "a", "b"] * 20})
    label = frame["kind"].map({"a": 0, "b": 1}).to_numpy()
    trees = plait.GBDTClassifier(5).fit(frame[["age", "city"]], label)
    assert trees.score(frame[["age", "city"]], label) == 1 and list(trees.feature_names_in_) == ["age", "city"]
    raises(ValueError, "'age' has missing numbers", lambda: plait.LogisticRegression().fit(frame, label))
    model = plait.LogisticRegression().fit(frame.fillna({"age": 3}), label)
    assert model.n_features_in_ == 3 and model.coef_.shape == (1, 6)
    again = pickle.loads(pickle.dumps(model))
    unknown = pd.DataFrame({"age": [1.0], "city": ["Paris"], "kind": ["a"]})
    assert again.predict(unknown) == [0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names
        raises(ValueError, "frame", lambda: model.predict(np.zeros((1, 3))))
    frame.fillna({"age": 3}).to_csv("frame.csv", index=False)
    model.model_.save("frame.plait")
    done = subprocess.run([program, "predict", "--model-file", "frame.plait", "--data", "frame.csv", "--proba"],
                          capture_output=True, text=True, check=True)
    same(np.array([line.split() for line in done.stdout.splitlines()], float),
         model.predict_proba(frame.fillna({"age": 3})), 1e-8)


def test_arrow():
    """polars' and pyarrow's tables give the model of the same pandas frame, bit by bit."""
    try:
        import pandas as pd
        import polars as pl
        import pyarrow as pa
    except ImportError as e:
        return print(f"skipped: arrow ({e})")
    draw = np.random.default_rng(0)
    cells = {"a": draw.normal(size=300), "city": draw.choice(["Rome", "Oslo", "a long name of a city"], 300),
             "k": draw.integers(0, 9, 300), "b": draw.random(300) < 0.5}
    z = np.where(cells["a"] + (cells["city"] == "Oslo") > 0, "p", "q")
    frame = pd.DataFrame(cells)
    table, polar = pa.table(cells), pl.DataFrame(cells)
    halves = pa.concat_tables([table.slice(0, 123), table.slice(123)])
    coded = polar.with_columns(pl.col("city").cast(pl.Categorical))
    models = [plait.LogisticRegression(n_jobs=1).fit(x, z) for x in (frame, table, halves, polar, coded)]
    assert len({model.model_.hash for model in models}) == 1
    same(models[1].decision_function(table), models[0].decision_function(frame), 1e-6)
    for model in (plait.GBDTClassifier(5), plait.GaussianNB(), plait.SGDClassifier(max_iter=3)):
        assert (model.fit(polar, z).predict(table) == model.predict(polar)).all() and model.score(halves, z) > 0.6
    assert list(models[3].feature_names_in_) == list(cells)
    other = pl.DataFrame({"b": [True], "city": ["Paris"], "k": [3], "a": [9.0]})
    assert pickle.loads(pickle.dumps(models[3])).predict(other) == ["p"]
    raises(ValueError, "lacks ['k']", lambda: models[3].predict(polar.drop("k")))
    raises(ValueError, '"date" has Arrow', lambda: plait.LogisticRegression().fit(
        polar.with_columns(pl.lit("2020-01-01").str.to_date().alias("date")), z))
    raises(ValueError, 'row 0, column "a": a missing', lambda: plait.LogisticRegression().fit(
        polar.with_columns(pl.lit(None, dtype=pl.Float64).alias("a")), z))


def test_the_bits_are_those_of_the_command_line(program):
    """The same rows in the same blocks, the same seed and options give the same weights, bit by bit. A file is cut into
    64 blocks by bytes, an array by rows; so here all lines are as long, and rows a multiple of 64."""
    x, z = X[:512], number[:512]
    for estimator, options in (
            (plait.LogisticRegression(n_jobs=1), ["logistic", "--optimizer", "lbfgs", "--tolerance", "1e-6", "--epochs",
                                                  "200"]),
            (plait.SGDClassifier(random_state=3, n_jobs=1), ["logistic", "--optimizer", "adagrad", "--l2", "1e-4",
                                                             "--epochs", "20", "--seed", "3"]),
            (plait.GBDTClassifier(10, random_state=3, n_jobs=1), ["gbdt", "--epochs", "10", "--seed", "3"])):
        with open("bits.svm", "w") as f:
            for row, label in zip(x, z):
                f.write(f"{label} " + " ".join(f"{j}:{v:+.8e}" for j, v in enumerate(row)) + "\n")
        subprocess.run([program, "train", "--data", "bits.svm", "--model", *options, "--threads", "1", "--index-base",
                        "0", "--out", "bits.plait", "--quiet"], check=True, stdout=subprocess.DEVNULL)
        estimator.fit(x, z)
        theirs, ours = _core.Model.load("bits.plait"), estimator.model_
        for a, b in zip(theirs.weights(), ours.weights()):
            assert (a == b).all(), (estimator, np.abs(a - b).max())
        data = _core.Data(X)
        assert (theirs.predict(data, len(X), True) == ours.predict(data, len(X), True)).all()


def test_progress():
    seen = []
    plait.MLPClassifier((8,), max_iter=5, callback=seen.append).fit(X, y)
    assert seen and seen[-1].epoch <= seen[-1].epochs == 5 and "loss" in repr(seen[-1])
    short = plait.MLPClassifier((8,), max_iter=10 ** 6, callback=lambda p: False).fit(X, y)
    assert short.n_iter_ < 10 ** 6 and short.predict(X).shape == y.shape
    raises(ZeroDivisionError, "", lambda: plait.MLPClassifier((8,), callback=lambda p: 1 / 0).fit(X, y))


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


def test_failures():
    raises(ValueError, "NaN", lambda: plait.LogisticRegression().fit(np.full((4, 2), np.nan), [0, 1, 0, 1]))
    raises(plait.PlaitError, "optimizer", lambda: plait.SGDClassifier(optimizer="adagrat").fit(X, y))
    broken = sp.csr_matrix(X)
    broken.indices = broken.indices.copy()
    broken.indices[3] = 77
    broken.has_canonical_format = True
    raises(plait.PlaitError, "found 77", lambda: _core.Data(broken))


def test_ctrl_c_and_the_gil():
    fits = threading.Event()

    def tick():  # if other threads stood still while it fits, nobody would interrupt it
        fits.wait()
        for _ in range(50):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    def fit():
        fits.set()
        plait.SGDClassifier(max_iter=10_000_000).fit(X, y)

    ticker = threading.Thread(target=tick)
    ticker.start()
    begun = time.monotonic()
    raises(KeyboardInterrupt, "", fit)
    ticker.join()
    assert time.monotonic() - begun < 300


signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background ignores it
test_logistic()
test_layouts_give_the_same_model()
test_regression()
test_others()
test_every_learner()
test_weights_of_nets()
test_factors()
test_parts()
test_frames(sys.argv[1])
test_arrow()
test_the_bits_are_those_of_the_command_line(sys.argv[1])
test_progress()
test_pickles_and_files(sys.argv[1])
test_failures()
test_ctrl_c_and_the_gil()
