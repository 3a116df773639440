"""What all estimators share: checks of what is given, the fit, and rows for a model.

Parameters have scikit-learn's names where they mean the same, and Plait's where they are its own. A fitted estimator
holds `model_`, a plait._core.Model, whose `save` writes the file that the command line reads.
"""
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (_check_feature_names, _check_n_features, _check_sample_weight, check_is_fitted,
                                      check_consistent_length, column_or_1d, validate_data)

from plait import _core, _frames


class Base(BaseEstimator):
    _missing = False  # may values be NaN?
    _labels = True  # does it learn from y?
    _positive = False  # must values be 0 or more?
    _arrow = True  # can it read Arrow's tables where they lie? False: it needs arrays

    def _set(self, given):
        """Sets the parameters of a constructor, which hands over its locals()."""
        for name in self._get_param_names():
            setattr(self, name, given[name])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._missing
        tags.input_tags.positive_only = self._positive
        return tags

    def _frame(self, x, y, reset):
        """A frame with columns of texts, as rows of numbers: each text is a feature."""
        _check_feature_names(self, x, reset=reset)
        _check_n_features(self, x, reset=reset)
        if reset:
            self._columns = _frames.columns_of(x)
        rows = _frames.rows_of(x, self._columns, self._missing)
        return rows if y is None else (rows, column_or_1d(y, warn=True))

    def _table(self, x, y, reset):
        """A table of Arrow's, such as polars' and pyarrow's: checked while it is read, in C."""
        _frames.check_names(self, x, reset)
        if not reset and self._columns is None:
            return self._rows(np.asarray(x))
        try:
            rows = _core.ArrowRows(x, None if reset else self._columns, self._missing)
        except _core.PlaitError as e:
            raise ValueError(str(e)) from e
        if reset:
            self._columns = rows.columns
        rows = rows if self._arrow else rows.dense()
        if y is None:
            return rows
        y = column_or_1d(np.asarray(y), warn=True)
        check_consistent_length(np.empty(rows.shape[0]), y)
        return rows, y

    def _rows(self, x, y=None, reset=False):
        """Checked rows, and labels if they are given."""
        if y is None and reset and self._labels:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        if reset:
            self._columns = None
        if _frames.is_arrow(x):
            return self._table(x, y, reset)
        if _frames.has_texts(x) or (not reset and getattr(self, "_columns", None) is not None):
            if not reset and getattr(self, "_columns", None) is None:
                raise ValueError(f"{type(self).__name__} was fitted on numbers, but X has columns of texts")
            return self._frame(x, y, reset)
        checks = dict(accept_sparse="csr", dtype=[np.float32, np.float64], reset=reset,
                      ensure_all_finite="allow-nan" if self._missing else True)
        if y is None:
            return validate_data(self, x, **checks)
        return validate_data(self, x, y, multi_output=False, y_numeric=isinstance(self, RegressorMixin), **checks)

    def _weights(self, sample_weight, x):
        if sample_weight is None:
            return None
        weight = _check_sample_weight(np.asarray(sample_weight), np.empty((x.shape[0], 1)), dtype=np.float64)
        if (weight < 0).any():
            raise ValueError("Negative values in data passed to `sample_weight`")
        return weight

    @staticmethod
    def _mean(weight):
        """The mean weight of a row. Plait's penalties stand beside the sum of weighted losses over the number of rows,
        and those of scikit-learn's alpha beside that over the sum of weights: times this they mean the same."""
        return 1.0 if weight is None or len(weight) == 0 else float(weight.mean())

    def _check_positive(self, x):
        values = x.data if hasattr(x, "indptr") else x
        if self._positive and values.size > 0 and values.min() < 0:
            raise ValueError(f"Negative values in data passed to {type(self).__name__}")

    def _fit(self, x, label, weight, options, settings=None, start=None):
        """Trains on checked rows; weight: of each row, or None."""
        self._check_positive(x)
        seed = getattr(self, "random_state", None)
        if seed is not None:
            options["seed"] = int(seed if isinstance(seed, (int, np.integer)) else check_random_state(seed).randint(2**31))
        data = _core.Data(x, label, weight, keep_missing=self._missing, columns=getattr(self, "_columns", None))
        self.model_, report = _core.fit(data, options, settings, getattr(self, "n_jobs", None), start,
                                        getattr(self, "callback", None))
        self.n_iter_ = max(1, int(report.epochs))
        return report

    def _data(self, x):
        check_is_fitted(self)
        x = self._rows(x)
        if isinstance(x, _core.ArrowRows):
            return x.data, x.shape[0]
        return _core.Data(x, keep_missing=self._missing, columns=self._columns), x.shape[0]


class Classifier(ClassifierMixin, Base):
    def _targets(self, x, y):
        """Checked rows, and the number of each row's class."""
        x, y = self._rows(x, y, reset=True)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        label = np.searchsorted(self.classes_, y)  # faster than unique's own inverse
        if len(self.classes_) < 2:
            raise ValueError(f"{type(self).__name__} needs samples of at least 2 classes; the data contains 1 class: "
                             f"{self.classes_[0]!r}")
        return x, label.astype(np.float64)

    def _declared(self, x):
        """Of few rows Plait doubts that many numbers are classes, unless it is told."""
        classes = len(self.classes_)
        return dict(classes=classes) if classes > 2 and classes > x.shape[0] / 2 else {}

    def _class_weights(self, weight, label, x):
        """The rows' weights times those of their classes, by the parameter class_weight."""
        weight = self._weights(weight, x)
        if getattr(self, "class_weight", None) is None:
            return weight
        number = label.astype(np.intp)
        of_class = compute_class_weight(self.class_weight, classes=self.classes_, y=self.classes_[number])
        return of_class[number] * (1 if weight is None else weight)

    def _more_targets(self, x, y, classes, more):
        """_targets for a part of the rows; more: parts came before."""
        if not more and classes is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        x, y = self._rows(x, y, reset=not more)
        check_classification_targets(y)
        if not more:
            self.classes_ = np.unique(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"`classes={classes!r}` is not the same as on last call to partial_fit, was: "
                             f"{self.classes_!r}")
        label = np.searchsorted(self.classes_, y)
        if (self.classes_[np.minimum(label, len(self.classes_) - 1)] != y).any():
            raise ValueError("y has labels that are not among `classes`")
        return x, label.astype(np.float64)

    def predict(self, X):
        """The most probable class of each row."""
        data, rows = self._data(X)
        return self.classes_[self.model_.predict(data, rows)[:, 0].astype(np.intp)]


class Parts:
    """Learns in parts, each by one pass whose step falls with the number of parts so far."""

    def _part_of(self, options, rate, usual):
        """The options for the next part; rate 0: usual."""
        self.t_ = getattr(self, "t_", 1) + 1 if self._is_more() else 1
        options.update(epochs=1, learning_rate=(rate if rate > 0 else usual) / np.sqrt(self.t_), schedule="constant")
        return options

    def _is_more(self):
        return hasattr(self, "model_")

    def _start(self):
        return self.model_ if self._is_more() else None


class Probabilities:
    """For classifiers whose models have probabilities."""

    def predict_proba(self, X):
        """The probability of each class, in the order of classes_."""
        data, rows = self._data(X)
        return self.model_.predict(data, rows, proba=True)

    def predict_log_proba(self, X):
        """The logarithms of predict_proba."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class Regressor(RegressorMixin, Base):
    def predict(self, X):
        """The value of each row."""
        data, rows = self._data(X)
        return self.model_.predict(data, rows)[:, 0]
