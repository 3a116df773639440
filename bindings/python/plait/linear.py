"""Linear models: of classes, and of numbers."""
import numpy as np
from sklearn.utils.validation import check_is_fitted

from plait import _core
from plait._base import Classifier, Parts, Probabilities, Regressor


class _Linear:
    def _keep_weights(self, flat):
        coef, intercept = self.model_.weights()
        self.coef_ = coef[0] if flat else coef
        self.intercept_ = float(intercept[0]) if flat else intercept

    def _scores(self, X):
        check_is_fitted(self)
        x = self._rows(X)
        x = x.dense() if isinstance(x, _core.ArrowRows) else x
        scores = x @ np.atleast_2d(self.coef_).T + self.intercept_
        return scores[:, 0] if scores.shape[1] == 1 else scores


class _LinearClassifier(_Linear, Classifier):
    def decision_function(self, X):
        """The score of each row: above 0 for the second of two classes; of more, one for each class."""
        return self._scores(X)

    def _learn(self, X, y, sample_weight, options):
        x, label = self._targets(X, y)
        weight = self._class_weights(sample_weight, label, x)
        options = dict(options(x.shape[0], self._mean(weight)), no_intercept=not self.fit_intercept, **self._declared(x))
        self._fit(x, label, weight, options)
        self._keep_weights(False)
        return self


class LogisticRegression(Probabilities, _LinearClassifier):
    """Logistic regression, of two or more classes, to convergence. C weighs the losses' sum against |w|^2 / 2."""

    def __init__(self, C=1.0, *, fit_intercept=True, class_weight=None, tol=1e-6, max_iter=200, n_jobs=None,
                 random_state=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their labels y."""
        return self._learn(X, y, sample_weight,
                           lambda rows, mean: dict(model="logistic", optimizer="lbfgs", l2=1 / (self.C * rows),
                                             tolerance=self.tol, epochs=self.max_iter))


class LinearSVC(_LinearClassifier):
    """Linear support vector machine, to convergence, with the hinge loss; of more than two classes that of Crammer and
    Singer. C weighs the losses' sum against |w|^2 / 2, in which the intercept has no part."""

    def __init__(self, C=1.0, *, fit_intercept=True, class_weight=None, tol=1e-4, max_iter=1000, n_jobs=None,
                 random_state=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their labels y."""
        return self._learn(X, y, sample_weight,
                           lambda rows, mean: dict(model="hinge", optimizer="cd", l2=1 / (self.C * rows), tolerance=self.tol,
                                             epochs=self.max_iter))


class _Steps(Parts):
    """Learns by steps on batches, and in parts."""

    def _step_options(self, model, mean):
        """mean: the rows' weight."""
        return dict(model=model, optimizer=self.optimizer, l2=self.alpha * mean, l1=self.l1 * mean, epochs=self.max_iter,
                    batch=self.batch_size, learning_rate=self.eta0, no_intercept=not self.fit_intercept)

    def _part_options(self, options):
        """Values are not scaled, since a part does not show their scale."""
        return self._part_of(dict(options, normalize="none"), self.eta0, 0.1)


class SGDClassifier(_Steps, _LinearClassifier):
    """A linear classifier by steps on batches: loss "log_loss" or "hinge"; optimizer: one of Plait's update rules.
    alpha, l1: weights of the penalties |w|^2 / 2 and |w|. batch_size and eta0 0: Plait's defaults."""

    def __init__(self, loss="log_loss", *, alpha=1e-4, l1=0.0, fit_intercept=True, class_weight=None, max_iter=20,
                 batch_size=0, eta0=0.0, optimizer="adagrad", n_jobs=None, random_state=None):
        self._set(locals())

    def _model(self):
        models = {"log_loss": "logistic", "hinge": "hinge"}
        if self.loss not in models:
            raise ValueError(f"loss {self.loss!r}: expected one of {sorted(models)}")
        return models[self.loss]

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their labels y."""
        model = self._model()
        self.t_ = 1
        return self._learn(X, y, sample_weight, lambda rows, mean: self._step_options(model, mean))

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """One pass over a part of the rows, from where the parts before have led. classes: all labels, for the first
        part."""
        if self.class_weight == "balanced":
            raise ValueError("class_weight 'balanced' is not known for parts; give weights by class")
        model = self._model()
        x, label = self._more_targets(X, y, classes, self._is_more())
        weight = self._class_weights(sample_weight, label, x)
        options = self._part_options(dict(self._step_options(model, self._mean(weight)), classes=len(self.classes_)))
        self._fit(x, label, weight, options, start=self._start())
        self._keep_weights(False)
        return self

    def predict_proba(self, X):
        """The probability of each class; loss "hinge" has none."""
        self._model()
        if self.loss == "hinge":
            raise AttributeError("loss 'hinge' has no probabilities; take loss 'log_loss'")
        return Probabilities.predict_proba(self, X)


class _LinearRegressor(_Linear, Regressor):
    def _learn(self, X, y, sample_weight, options):
        x, y = self._rows(X, y, reset=True)
        weight = self._weights(sample_weight, x)
        self._fit(x, y, weight, dict(options(x, self._mean(weight)), no_intercept=not self.fit_intercept))
        self._keep_weights(True)
        return self


class Ridge(_LinearRegressor):
    """Least squares, with alpha |w|^2 added to the sum of the squared errors; to convergence."""

    def __init__(self, alpha=1.0, *, fit_intercept=True, tol=1e-8, max_iter=1000, n_jobs=None):
        self._set(locals())

    def _penalty(self):
        return self.alpha

    def _units(self, x):
        return {}

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their values y."""
        return self._learn(X, y, sample_weight,
                           lambda x, mean: dict(self._units(x), model="squared", optimizer="lbfgs",
                                                l2=self._penalty() / x.shape[0], tolerance=self.tol,
                                                epochs=self.max_iter))


class LinearRegression(Ridge):
    """Least squares without a penalty."""

    def __init__(self, *, fit_intercept=True, tol=1e-8, max_iter=1000, n_jobs=None):
        self._set(locals())

    def _penalty(self):
        return 0.0

    def _units(self, x):
        """Of all the fits that are as good, the one with the smallest weights is found, in the data's own units."""
        return dict(normalize="none") if x.shape[0] <= x.shape[1] else {}


class ElasticNet(_LinearRegressor):
    """Least squares with alpha (l1_ratio |w| + (1 - l1_ratio) |w|^2 / 2) added to half the mean squared error; weight by
    weight, to convergence."""

    def __init__(self, alpha=1.0, *, l1_ratio=0.5, fit_intercept=True, tol=1e-8, max_iter=1000, n_jobs=None):
        self._set(locals())

    def _share(self):
        return self.l1_ratio

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their values y."""
        return self._learn(X, y, sample_weight,
                           lambda x, mean: dict(model="squared", optimizer="cd", l1=self.alpha * self._share() * mean,
                                             l2=self.alpha * (1 - self._share()) * mean, tolerance=self.tol,
                                             epochs=self.max_iter))


class Lasso(ElasticNet):
    """Least squares with alpha |w| added to half the mean squared error."""

    def __init__(self, alpha=1.0, *, fit_intercept=True, tol=1e-8, max_iter=1000, n_jobs=None):
        self._set(locals())

    def _share(self):
        return 1.0


class HuberRegressor(_LinearRegressor):
    """Least squares for small errors, absolute values for those above huber_delta; alpha |w|^2 / 2 is added to the mean
    of the weighted losses."""

    def __init__(self, huber_delta=1.0, *, alpha=1e-4, fit_intercept=True, tol=1e-6, max_iter=1000, n_jobs=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their values y."""
        return self._learn(X, y, sample_weight,
                           lambda x, mean: dict(model="huber", optimizer="lbfgs", huber_delta=self.huber_delta,
                                             l2=self.alpha * mean, tolerance=self.tol, epochs=self.max_iter))


class PoissonRegressor(_LinearRegressor):
    """Predicts counts, exp(w x + b); alpha |w|^2 / 2 is added to the mean of the weighted losses."""

    def __init__(self, alpha=1.0, *, fit_intercept=True, tol=1e-6, max_iter=1000, n_jobs=None):
        self._set(locals())

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their values y, none of which is negative."""
        return self._learn(X, y, sample_weight,
                           lambda x, mean: dict(model="poisson", optimizer="lbfgs", l2=self.alpha * mean, tolerance=self.tol,
                                             epochs=self.max_iter))


class SGDRegressor(_Steps, _LinearRegressor):
    """A linear model of numbers by steps on batches: loss "squared_error", "huber", "quantile" or "poisson"."""

    def __init__(self, loss="squared_error", *, alpha=1e-4, l1=0.0, huber_delta=1.0, quantile=0.5, fit_intercept=True,
                 max_iter=20, batch_size=0, eta0=0.0, optimizer="adagrad", n_jobs=None, random_state=None):
        self._set(locals())

    def _options(self, mean):
        models = {"squared_error": "squared", "huber": "huber", "quantile": "quantile", "poisson": "poisson"}
        if self.loss not in models:
            raise ValueError(f"loss {self.loss!r}: expected one of {sorted(models)}")
        own = {"huber": dict(huber_delta=self.huber_delta), "quantile": dict(quantile=self.quantile)}
        return dict(self._step_options(models[self.loss], mean), **own.get(self.loss, {}))

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their values y."""
        self.t_ = 1
        return self._learn(X, y, sample_weight, lambda x, mean: self._options(mean))

    def partial_fit(self, X, y, sample_weight=None):
        """One pass over a part of the rows, from where the parts before have led."""
        x, y = self._rows(X, y, reset=not self._is_more())
        weight = self._weights(sample_weight, x)
        self._fit(x, y, weight, self._part_options(self._options(self._mean(weight))), start=self._start())
        self._keep_weights(True)
        return self
