"""Estimators: Plait's learners by scikit-learn's conventions.

Parameters have scikit-learn's names where they mean the same, and Plait's where they are its own. A fitted estimator
holds `model_`, a plait._core.Model, whose `save` writes the file that the command line reads.
"""
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, RegressorMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from plait import _core


class _Base(BaseEstimator):
    _missing = False  # may values be NaN?
    _labels = True  # does it learn from y?

    def _set(self, given):
        """Sets the parameters of a constructor, which hands over its locals()."""
        for name in self._get_param_names():
            setattr(self, name, given[name])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._missing
        return tags

    def _rows(self, x, y=None, reset=False):
        checks = dict(accept_sparse="csr", dtype=[np.float32, np.float64], reset=reset,
                      ensure_all_finite="allow-nan" if self._missing else True)
        if y is None and reset and self._labels:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if y is None:
            return validate_data(self, x, **checks)
        return validate_data(self, x, y, multi_output=False, y_numeric=isinstance(self, RegressorMixin), **checks)

    def _fit(self, x, label, sample_weight, options, settings=None):
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, x, dtype=np.float64)
            if (weight < 0).any():
                raise ValueError("Negative values in data passed to `sample_weight`")
        seed = getattr(self, "random_state", None)
        if seed is not None:
            options["seed"] = int(seed if isinstance(seed, (int, np.integer)) else check_random_state(seed).randint(2**31))
        data = _core.Data(x, label, weight, keep_missing=self._missing)
        self.model_, report = _core.fit(data, options, settings, getattr(self, "n_jobs", None))
        self.n_iter_ = max(1, int(report.epochs))
        return report

    def _data(self, x):
        check_is_fitted(self)
        x = self._rows(x)
        return _core.Data(x, keep_missing=self._missing), x.shape[0]


class _Classifier(ClassifierMixin, _Base):
    def _targets(self, x, y):
        x, y = self._rows(x, y, reset=True)
        check_classification_targets(y)
        self.classes_, label = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs samples of at least 2 classes; the data contains 1 class: "
                             f"{self.classes_[0]!r}")
        return x, label.astype(np.float64)

    def predict(self, X):
        """The most probable class of each row."""
        data, rows = self._data(X)
        return self.classes_[self.model_.predict(data, rows)[:, 0].astype(np.intp)]


class _WithProbabilities(_Classifier):
    def predict_proba(self, X):
        """The probability of each class, in the order of classes_."""
        data, rows = self._data(X)
        return self.model_.predict(data, rows, proba=True)

    def predict_log_proba(self, X):
        return np.log(self.predict_proba(X))


class _Linear:
    def _keep_weights(self, flat):
        coef, intercept = self.model_.weights(self.n_features_in_)
        self.coef_ = coef[0] if flat else coef
        self.intercept_ = float(intercept[0]) if flat else intercept

    def _scores(self, X):
        check_is_fitted(self)
        x = self._rows(X)
        scores = x @ np.atleast_2d(self.coef_).T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores


class LogisticRegression(_Linear, _WithProbabilities):
    """Logistic regression, of two or more classes, to convergence. C weighs the losses' sum against |w|^2 / 2."""

    def __init__(self, C=1.0, *, fit_intercept=True, tol=1e-6, max_iter=200, n_jobs=None, random_state=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        x, label = self._targets(X, y)
        options = dict(model="logistic", optimizer="lbfgs", l2=1 / (self.C * x.shape[0]),
                       no_intercept=not self.fit_intercept, tolerance=self.tol, epochs=self.max_iter)
        self._fit(x, label, sample_weight, options)
        self._keep_weights(False)
        return self

    def decision_function(self, X):
        return self._scores(X)


class SGDClassifier(_Linear, _Classifier):
    """A linear classifier by steps on batches: loss "log_loss" or "hinge"; optimizer: one of Plait's update rules."""

    def __init__(self, loss="log_loss", *, alpha=1e-4, fit_intercept=True, max_iter=20, batch_size=0, eta0=0.0,
                 optimizer="adagrad", n_jobs=None, random_state=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        models = {"log_loss": "logistic", "hinge": "hinge"}
        if self.loss not in models:
            raise ValueError(f"loss {self.loss!r}: expected one of {sorted(models)}")
        x, label = self._targets(X, y)
        options = dict(model=models[self.loss], optimizer=self.optimizer, l2=self.alpha, epochs=self.max_iter,
                       batch=self.batch_size, learning_rate=self.eta0, no_intercept=not self.fit_intercept)
        self._fit(x, label, sample_weight, options)
        self._keep_weights(False)
        return self

    def decision_function(self, X):
        return self._scores(X)


class _Regressor(RegressorMixin, _Base):
    def predict(self, X):
        """The value of each row."""
        data, rows = self._data(X)
        return self.model_.predict(data, rows)[:, 0]


class Ridge(_Linear, _Regressor):
    """Least squares, with alpha |w|^2 added to the sum of the squared errors; to convergence."""

    def __init__(self, alpha=1.0, *, fit_intercept=True, tol=1e-8, max_iter=1000, n_jobs=None):
        self._set(locals())

    def _penalty(self):
        return self.alpha

    def fit(self, X, y, sample_weight=None):
        x, y = self._rows(X, y, reset=True)
        options = dict(model="squared", optimizer="lbfgs", l2=self._penalty() / x.shape[0],
                       no_intercept=not self.fit_intercept, tolerance=self.tol, epochs=self.max_iter)
        self._fit(x, y, sample_weight, options)
        self._keep_weights(True)
        return self


class LinearRegression(Ridge):
    """Least squares without a penalty."""

    def __init__(self, *, fit_intercept=True, tol=1e-8, max_iter=1000, n_jobs=None):
        self._set(locals())

    def _penalty(self):
        return 0.0


class _Trees:
    _missing = True

    def _grow(self, x, label, sample_weight, loss, **own):
        if x.shape[0] < 2:
            raise ValueError("Trees need at least 2 rows to split; got n_samples = 1")
        options = dict(model="gbdt", epochs=self.n_estimators, learning_rate=self.learning_rate, l2=self.reg_lambda,
                       l1=self.reg_alpha, **own)
        if loss is not None:
            options["loss"] = loss
        settings = {"leaves": self.num_leaves, "depth": self.max_depth, "bins": self.max_bin,
                    "min-rows": self.min_child_samples, "subsample": self.subsample, "colsample": self.colsample_bytree}
        self._fit(x, label, sample_weight, options, settings)
        return self


class GBDTClassifier(_Trees, _WithProbabilities):
    """Gradient-boosted trees. NaN is a missing value. num_leaves and max_depth 0: Plait's defaults."""

    def __init__(self, n_estimators=100, *, learning_rate=0.1, num_leaves=0, max_depth=0, max_bin=255,
                 min_child_samples=20, subsample=1.0, colsample_bytree=1.0, reg_lambda=1.0, reg_alpha=0.0, n_jobs=None,
                 random_state=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        x, label = self._targets(X, y)
        return self._grow(x, label, sample_weight, None)


class GBDTRegressor(_Trees, _Regressor):
    """Gradient-boosted trees for numbers: loss "squared", "huber", "quantile" or "poisson". quantile says which one;
    from huber_delta on, "huber" grows like the error itself."""

    def __init__(self, n_estimators=100, *, loss="squared", quantile=0.5, huber_delta=1.0, learning_rate=0.1,
                 num_leaves=0, max_depth=0, max_bin=255, min_child_samples=20, subsample=1.0, colsample_bytree=1.0,
                 reg_lambda=1.0, reg_alpha=0.0, n_jobs=None, random_state=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        x, y = self._rows(X, y, reset=True)
        own = {"quantile": dict(quantile=self.quantile), "huber": dict(huber_delta=self.huber_delta)}
        return self._grow(x, y, sample_weight, self.loss, **own.get(self.loss, {}))


class KMeans(TransformerMixin, ClusterMixin, _Base):
    """k centres that minimise the rows' squared distances to the nearest one; started by k-means||."""

    _labels = False

    def __init__(self, n_clusters=8, *, max_iter=300, tol=1e-5, n_jobs=None, random_state=None):
        self._set(locals())

    def fit(self, X, y=None, sample_weight=None):
        x = self._rows(X, reset=True)
        if x.shape[0] < self.n_clusters:
            raise ValueError(f"n_samples={x.shape[0]} should be >= n_clusters={self.n_clusters}.")
        options = dict(model="kmeans", epochs=self.max_iter, tolerance=self.tol, normalize="none")
        report = self._fit(x, None, sample_weight, options, {"clusters": self.n_clusters})
        figures = {_core.ffi.string(f.name).decode(): f.value for f in report.figures[0:report.n_figures]}
        self.inertia_ = figures.get("inertia", float("nan"))
        self.cluster_centers_ = self.model_.arrays().get("centres")
        self.labels_ = self.predict(x)
        return self

    def predict(self, X):
        """The number of each row's cluster."""
        data, rows = self._data(X)
        return self.model_.predict(data, rows)[:, 0].astype(np.int32)

    def transform(self, X):
        """The distances of each row to all centres."""
        data, rows = self._data(X)
        return self.model_.transform(data, rows, self.n_clusters)

    def score(self, X, y=None, sample_weight=None):
        """Minus the inertia of X."""
        nearest = self.transform(X).min(axis=1) ** 2
        return -float(nearest.sum() if sample_weight is None else nearest @ np.asarray(sample_weight, dtype=float))
