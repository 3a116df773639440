"""Perceptrons: nets of layers of ReLUs."""
import numpy as np

from plait._base import Classifier, Parts, Probabilities, Regressor


class _Net(Parts):
    def _fit(self, x, label, weight, options, **more):
        """A row of weight 2 is as good as two rows: in the mean loss by weights whose mean is 1, and beside alpha."""
        if weight is not None and weight.sum() > 0:
            options["l2"] = self.alpha / weight.sum()
            weight = weight / weight.mean()
        return super()._fit(x, label, weight, options, **more)

    def _options(self, rows):
        sizes = np.atleast_1d(self.hidden_layer_sizes)
        options = dict(model="mlp", layers=",".join(str(int(n)) for n in sizes), optimizer=self.solver,
                       l2=self.alpha / rows, batch=self.batch_size, epochs=self.max_iter,
                       learning_rate=self.learning_rate_init)
        if self.early_stopping:
            options.update(validation=repr(float(self.validation_fraction)), patience=self.n_iter_no_change)
        return options

    def _part_options(self, rows):
        """One pass over a part; early_stopping would take a part of it away."""
        options = self._options(rows)
        options.pop("validation", None), options.pop("patience", None)
        return self._part_of(options, self.learning_rate_init, 0.01)


class MLPClassifier(_Net, Probabilities, Classifier):
    """A net of ReLUs for classes. solver: one of Plait's update rules, or lbfgs; alpha / rows weighs |w|^2 / 2;
    batch_size and learning_rate_init 0: Plait's defaults; callback(progress) is called while it trains."""

    def __init__(self, hidden_layer_sizes=(100,), *, solver="adam", alpha=1e-4, batch_size=0, learning_rate_init=0.0,
                 max_iter=50, early_stopping=False, validation_fraction=0.1, n_iter_no_change=10, callback=None,
                 n_jobs=None, random_state=None):
        self._set(locals())

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their labels y."""
        x, label = self._targets(X, y)
        self.t_ = 1
        options = dict(self._options(x.shape[0]), **self._declared(x))
        self._fit(x, label, self._class_weights(sample_weight, label, x), options)
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """One pass over a part of the rows, from where the parts before have led. classes: all labels, for the first
        part."""
        x, label = self._more_targets(X, y, classes, self._is_more())
        options = dict(self._part_options(x.shape[0]), classes=len(self.classes_))
        self._fit(x, label, self._class_weights(sample_weight, label, x), options, start=self._start())
        return self


class MLPRegressor(_Net, Regressor):
    """A net of ReLUs for numbers: loss "squared_error" or "huber"; its other parameters are MLPClassifier's."""

    def __init__(self, hidden_layer_sizes=(100,), *, loss="squared_error", huber_delta=1.0, solver="adam", alpha=1e-4,
                 batch_size=0, learning_rate_init=0.0, max_iter=50, early_stopping=False, validation_fraction=0.1,
                 n_iter_no_change=10, callback=None, n_jobs=None, random_state=None):
        self._set(locals())

    def _options(self, rows):
        losses = {"squared_error": dict(loss="squared"), "huber": dict(loss="huber", huber_delta=self.huber_delta)}
        if self.loss not in losses:
            raise ValueError(f"loss {self.loss!r}: expected one of {sorted(losses)}")
        return dict(super()._options(rows), **losses[self.loss])

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their values y."""
        x, y = self._rows(X, y, reset=True)
        self.t_ = 1
        self._fit(x, y, self._weights(sample_weight, x), self._options(x.shape[0]))
        return self

    def partial_fit(self, X, y, sample_weight=None):
        """One pass over a part of the rows, from where the parts before have led."""
        x, y = self._rows(X, y, reset=not self._is_more())
        self._fit(x, y, self._weights(sample_weight, x), self._part_options(x.shape[0]), start=self._start())
        return self
