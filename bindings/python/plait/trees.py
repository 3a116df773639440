"""Gradient-boosted trees, and random forests. NaN is a missing value."""
import numpy as np

from plait._base import Classifier, Probabilities, Regressor


class _Trees:
    _missing = True

    def _grow(self, x, label, weight, options, settings):
        if x.shape[0] < 2:
            raise ValueError("Trees need at least 2 rows to split; got n_samples = 1")
        report = self._fit(x, label, weight, options, settings)
        self.feature_importances_ = self._gains()
        return report

    def _gains(self):
        """Each feature's share of the gain of all splits."""
        gain = self.model_.weights()[0][0]
        return gain / gain.sum() if gain.sum() > 0 else gain


class _Boosted(_Trees):
    def _boost(self, x, label, weight, **own):
        options = dict(model="gbdt", epochs=self.n_estimators, learning_rate=self.learning_rate, l2=self.reg_lambda,
                       l1=self.reg_alpha, **own)
        settings = {"leaves": self.num_leaves, "depth": self.max_depth, "bins": self.max_bin,
                    "min-rows": self.min_child_samples, "subsample": self.subsample, "colsample": self.colsample_bytree}
        self._grow(x, label, weight, options, settings)
        return self


class GBDTClassifier(_Boosted, Probabilities, Classifier):
    """Gradient-boosted trees. num_leaves and max_depth 0: Plait's defaults."""

    def __init__(self, n_estimators=100, *, learning_rate=0.1, num_leaves=0, max_depth=0, max_bin=255,
                 min_child_samples=20, subsample=1.0, colsample_bytree=1.0, reg_lambda=1.0, reg_alpha=0.0,
                 class_weight=None, n_jobs=None, random_state=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their labels y."""
        x, label = self._targets(X, y)
        return self._boost(x, label, self._class_weights(sample_weight, label, x))


class GBDTRegressor(_Boosted, Regressor):
    """Gradient-boosted trees for numbers: loss "squared", "huber", "quantile" or "poisson". quantile says which one;
    from huber_delta on, "huber" grows like the error itself."""

    def __init__(self, n_estimators=100, *, loss="squared", quantile=0.5, huber_delta=1.0, learning_rate=0.1,
                 num_leaves=0, max_depth=0, max_bin=255, min_child_samples=20, subsample=1.0, colsample_bytree=1.0,
                 reg_lambda=1.0, reg_alpha=0.0, n_jobs=None, random_state=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their values y."""
        x, y = self._rows(X, y, reset=True)
        own = {"quantile": dict(quantile=self.quantile), "huber": dict(huber_delta=self.huber_delta)}
        return self._boost(x, y, self._weights(sample_weight, x), loss=self.loss, **own.get(self.loss, {}))


class _Forest(_Trees):
    def _least_weight(self, x, weight):
        """Of a leaf: its share of what a tree's bag weighs on average."""
        share = 1.0 if self.max_samples is None else self.max_samples
        return self.min_weight_fraction_leaf * share * float(x.shape[0] if weight is None else weight.sum())

    def _forest(self, x, label, weight, loss):
        tries = {None: x.shape[1], "sqrt": max(1, int(np.sqrt(x.shape[1]))),
                 "log2": max(1, int(np.log2(max(2, x.shape[1])))), "auto": 0}
        tries = tries[self.max_features] if isinstance(self.max_features, (str, type(None))) else (
            self.max_features if isinstance(self.max_features, (int, np.integer))
            else max(1, int(self.max_features * x.shape[1])))
        options = dict(model="forest", epochs=self.n_estimators, **loss)
        settings = {"leaves": self.max_leaf_nodes or 0, "depth": self.max_depth or 0, "bins": self.max_bin,
                    "min-rows": self.min_samples_leaf, "min-weight": self._least_weight(x, weight), "min-gain": self.min_impurity_decrease, "tries": tries,
                    "subsample": 1.0 if self.max_samples is None else self.max_samples}
        report = self._grow(x, label, weight, options, settings)
        self.oob_loss_, self.oob_accuracy_ = report.oob_loss, report.oob_accuracy
        return self


class RandomForestClassifier(_Forest, Probabilities, Classifier):
    """A forest of large trees on rows drawn with repeats. max_features: how many features a split chooses from: "sqrt",
    "log2", a number, a share, None: all; min_samples_leaf, max_depth, max_leaf_nodes 0 or None: Plait's defaults."""

    def __init__(self, n_estimators=100, *, max_depth=None, max_leaf_nodes=None, max_bin=255, min_samples_leaf=0,
                 min_weight_fraction_leaf=0.0, min_impurity_decrease=0.0, max_features="sqrt", max_samples=None, class_weight=None, n_jobs=None,
                 random_state=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their labels y."""
        x, label = self._targets(X, y)
        return self._forest(x, label, self._class_weights(sample_weight, label, x), {})


class RandomForestRegressor(_Forest, Regressor):
    """A forest for numbers; its parameters are RandomForestClassifier's. max_features "auto": a third."""

    def __init__(self, n_estimators=100, *, max_depth=None, max_leaf_nodes=None, max_bin=255, min_samples_leaf=0,
                 min_weight_fraction_leaf=0.0, min_impurity_decrease=0.0, max_features="auto", max_samples=None, n_jobs=None, random_state=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their values y."""
        x, y = self._rows(X, y, reset=True)
        return self._forest(x, y, self._weights(sample_weight, x), {"loss": "squared"})
