"""Learners without labels: clusters, principal components, topics, and factors of a matrix."""
import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from plait import _core
from plait._base import Base


class _Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Base):
    _labels = False

    def transform(self, X):
        """The rows in the model's own space."""
        data, rows = self._data(X)
        return self.model_.transform(data, rows, self._n_features_out)


class KMeans(ClusterMixin, _Transformer):
    """k centres that minimise the rows' squared distances to the nearest one; started by k-means||."""

    def __init__(self, n_clusters=8, *, max_iter=300, tol=1e-5, n_jobs=None, random_state=None):
        self._set(locals())

    @property
    def _n_features_out(self):
        return self.n_clusters

    def _learn(self, x, weight, epochs, start=None):
        options = dict(model="kmeans", epochs=epochs, tolerance=self.tol, normalize="none")
        report = self._fit(x, None, weight, options, {"clusters": self.n_clusters}, start)
        self.inertia_ = _core.figures(report).get("inertia", float("nan"))
        self.cluster_centers_ = self.model_.arrays().get("centres")

    def fit(self, X, y=None, sample_weight=None):
        """Finds the centres of rows X."""
        x = self._rows(X, reset=True)
        if x.shape[0] < self.n_clusters:
            raise ValueError(f"n_samples={x.shape[0]} should be >= n_clusters={self.n_clusters}.")
        self._learn(x, self._weights(sample_weight, x), self.max_iter)
        self._counts = None
        self.labels_ = self._nearest(x)
        return self

    def partial_fit(self, X, y=None, sample_weight=None):
        """Moves each centre to the mean of all rows so far that were nearest to it. Each centre stands for its rows, by
        their weight, beside the new ones, and one pass is made. The first part needs n_clusters rows or more."""
        more = getattr(self, "_counts", None) is not None
        x = self._rows(X, reset=not more)
        x = x.dense() if isinstance(x, _core.ArrowRows) else x
        weight = self._weights(sample_weight, x)
        weight = np.ones(x.shape[0]) if weight is None else weight
        if not more:
            if x.shape[0] < self.n_clusters:
                raise ValueError(f"n_samples={x.shape[0]} should be >= n_clusters={self.n_clusters}.")
            self._learn(x, weight, self.max_iter)
            self._counts = np.zeros(self.n_clusters)
        else:
            stack = sp.vstack([x, sp.csr_matrix(self.cluster_centers_)]).tocsr() if sp.issparse(x) else np.vstack(
                [x, self.cluster_centers_.astype(x.dtype)])
            self._learn(stack, np.append(weight, self._counts), 1, self.model_)
        self.labels_ = self._nearest(x)
        self._counts = self._counts + np.bincount(self.labels_, weights=weight, minlength=self.n_clusters)
        return self

    def _nearest(self, x):
        data = x.data if isinstance(x, _core.ArrowRows) else _core.Data(x, columns=self._columns)
        return self.model_.predict(data, x.shape[0])[:, 0].astype(np.int32)

    def predict(self, X):
        """The number of each row's cluster."""
        data, rows = self._data(X)
        return self.model_.predict(data, rows)[:, 0].astype(np.int32)

    def transform(self, X):
        """The distances of each row to all centres."""
        return super().transform(X)

    def score(self, X, y=None, sample_weight=None):
        """Minus the inertia of X."""
        nearest = self.transform(X).min(axis=1) ** 2
        return -float(nearest.sum() if sample_weight is None else nearest @ np.asarray(sample_weight, dtype=float))


class PCA(_Transformer):
    """Principal components: the directions in which rows vary most. n_components None: all features, or rows less one,
    at most 8; svd_solver "auto", "exact" or "randomised"."""

    def __init__(self, n_components=None, *, whiten=False, svd_solver="auto", iterated_power=7, n_jobs=None,
                 random_state=None):
        self._set(locals())

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def fit(self, X, y=None, sample_weight=None):
        """Finds the components of rows X."""
        x = self._rows(X, reset=True)
        if x.shape[0] < 2:
            raise ValueError("PCA needs at least 2 rows to see them vary; got n_samples = 1")
        n = 0 if self.n_components is None else int(self.n_components)
        if n < 0 or n > x.shape[1]:
            raise ValueError(f"n_components={n} must be between 1 and n_features={x.shape[1]}")
        settings = {"components": n, "pca-solver": self.svd_solver, "power-passes": self.iterated_power}
        if self.whiten:
            settings["whiten"] = "yes"
        self._fit(x, None, self._weights(sample_weight, x), dict(model="pca", normalize="none"), settings)
        arrays = self.model_.arrays()
        self.components_, self.mean_ = arrays["components"], arrays["mean"]
        self.explained_variance_ = arrays["variance"]
        whole = float(arrays["variance_of_all"][0])
        self.explained_variance_ratio_ = self.explained_variance_ / whole if whole > 0 else 0 * arrays["variance"]
        self.n_components_ = self.components_.shape[0]
        return self

    def inverse_transform(self, X):
        """The rows that have these coordinates."""
        check_is_fitted(self)
        scale = np.sqrt(self.explained_variance_) if self.whiten else 1.0
        return (np.asarray(X) * scale) @ self.components_ + self.mean_


class LatentDirichletAllocation(_Transformer):
    """Topics of documents, which are rows of counts of words, by collapsed Gibbs sampling. max_iter: passes;
    doc_topic_prior, topic_word_prior None: 0.1 and 0.01; counts "exact": other values than whole numbers are refused,
    "round": they are rounded."""

    _positive, _arrow = True, False

    def __init__(self, n_components=10, *, doc_topic_prior=None, topic_word_prior=None, prior="fitted", sampler="scan",
                 counts="exact", max_iter=100, n_jobs=None, random_state=None):
        self._set(locals())

    @property
    def _n_features_out(self):
        return self.n_components

    def _rows(self, x, y=None, reset=False):
        if self.counts not in ("exact", "round"):
            raise ValueError(f"counts {self.counts!r}: expected 'exact' or 'round'")
        x = super()._rows(x, y, reset)
        if self.counts == "exact":
            return x
        return x.astype(np.float64).rint().tocsr() if sp.issparse(x) else np.rint(x)

    def fit(self, X, y=None):
        """Finds the topics of rows X."""
        x = self._rows(X, reset=True)
        settings = {"components": self.n_components, "prior": self.prior, "sampler": self.sampler}
        if self.doc_topic_prior is not None:
            settings["alpha"] = self.doc_topic_prior
        if self.topic_word_prior is not None:
            settings["beta"] = self.topic_word_prior
        report = self._fit(x, None, None, dict(model="lda", epochs=self.max_iter), settings)
        self.perplexity_ = _core.figures(report).get("perplexity", float("nan"))
        arrays = self.model_.arrays()
        self.components_ = arrays["counts"].T + float(arrays["beta"][0])
        return self
