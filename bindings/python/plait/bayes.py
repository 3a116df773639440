"""Naive Bayes: classification by counting, in a single pass.

Counts add up, so that partial_fit need not keep rows: each class becomes a few rows that have the same counts as all
its rows so far, and the next part is counted beside them.
"""
import numpy as np
import scipy.sparse as sp

from plait._base import Classifier, Probabilities

LEAST = 1e-20  # the weight of a class without rows: it has a place, and no probability


class _Bayes(Probabilities, Classifier):
    _arrow = False

    def _settings(self):
        return {"events-model": self._events, "alpha": self.alpha}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = self._events != "gaussian"
        return tags

    def fit(self, X, y, sample_weight=None):
        """Fits to rows X and their labels y."""
        x, label = self._targets(X, y)
        weight = self._weights(sample_weight, x)
        self._fit(x, label, weight, dict(model="bayes"), self._settings())
        self._add(x, label, weight, None)
        return self

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Counts a part of the rows, beside those that came before. classes: all labels, for the first part."""
        sums = getattr(self, "_sums", None)
        x, label = self._more_targets(X, y, classes, sums is not None)
        self._check_positive(x)
        self._add(x, label, self._weights(sample_weight, x), sums)
        rows, labels, weights = self._stand_ins(*self._sums)
        self._fit(np.vstack([rows, rows]), np.tile(labels, 2), np.tile(weights / 2, 2), dict(model="bayes"),
                  self._settings())
        return self

    def _add(self, x, label, weight, sums):
        """Adds the rows to the sums of their classes; sums None: to nothing."""
        k = len(self.classes_)
        weight = np.ones(x.shape[0]) if weight is None else weight
        of_class = sp.csr_matrix((weight, (label.astype(np.intp), np.arange(x.shape[0]))), shape=(k, x.shape[0]))
        more = self._count(of_class, x)
        self._sums = more if sums is None else tuple(a + b for a, b in zip(sums, more))
        self.class_count_ = self._sums[0]

    def _count(self, of_class, x):
        """The weight of each class, and the sum of its rows."""
        return np.asarray(of_class.sum(1)).ravel(), self._sum(of_class @ x)

    @staticmethod
    def _sum(product):
        return product.toarray() if sp.issparse(product) else np.asarray(product)

    def _stand_ins(self, count, total):
        """A row for each class: its mean, with the weight of its rows."""
        weight = np.maximum(count, LEAST)
        return total / weight[:, None], np.arange(len(count), dtype=float), weight


class MultinomialNB(_Bayes):
    """Naive Bayes for counts, such as words in a text. alpha is added to each count."""

    _events, _positive = "multinomial", True

    def __init__(self, *, alpha=1.0, n_jobs=None):
        self._set(locals())


class ComplementNB(_Bayes):
    """Naive Bayes for counts in classes of uneven size: each class is estimated from all others."""

    _events, _positive = "complement", True

    def __init__(self, *, alpha=1.0, n_jobs=None):
        self._set(locals())


class BernoulliNB(_Bayes):
    """Naive Bayes for what is present (above 0) or absent. alpha is added to each count."""

    _events = "bernoulli"

    def __init__(self, *, alpha=1.0, n_jobs=None):
        self._set(locals())

    def _count(self, of_class, x):
        return super()._count(of_class, (x > 0).astype(np.float64))

    def _stand_ins(self, count, total):
        """Nested rows: the first has the most frequent feature, the last of them has all that ever occurred."""
        rows, labels, weights = [], [], []
        for k in range(len(count)):
            steps = np.unique(np.append(total[k], [0, max(count[k], LEAST)]))
            for low, high in zip(steps[:-1], steps[1:]):
                rows.append(total[k] >= high)
                labels.append(k)
                weights.append(high - low)
        return np.array(rows, dtype=np.float32), np.array(labels, dtype=float), np.array(weights)


class GaussianNB(_Bayes):
    """Naive Bayes for numbers: a mean and a variance for each feature and class."""

    _events = "gaussian"

    def __init__(self, *, var_smoothing=1e-9, n_jobs=None):
        self._set(locals())

    def _settings(self):
        return {"events-model": "gaussian", "var-smoothing": self.var_smoothing}

    def _count(self, of_class, x):
        squares = x.multiply(x) if sp.issparse(x) else np.asarray(x, dtype=float) ** 2
        return *super()._count(of_class, x), self._sum(of_class @ squares)

    def _stand_ins(self, count, total, squares):
        """Two rows for each class, at both sides of the mean."""
        weight = np.maximum(count, LEAST)
        mean = total / weight[:, None]
        spread = np.sqrt(np.maximum(squares / weight[:, None] - mean ** 2, 0))
        labels = np.arange(len(count), dtype=float)
        return np.vstack([mean - spread, mean + spread]), np.tile(labels, 2), np.tile(weight / 2, 2)
