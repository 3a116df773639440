"""A matrix of ratings as a mean, biases, and products of factors."""
import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from plait import _core
from plait._base import Base


def _names(n):
    """Numbers as texts of one width, so that their order is that of the numbers."""
    return [f"{i:0{len(str(max(n - 1, 1)))}d}" for i in range(n)]


class MatrixFactorization(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Base):
    """Factors of a matrix whose rows are users and whose columns are items: each entry that is not 0 is a rating; pairs
    without an entry are not known (loss "implicit": weak zeros; "bpr": each rated pair ranks above them). solver "als"
    or "sgd"; alpha None: 0.1, of other losses 0.01."""

    _labels, _arrow = False, False

    def __init__(self, n_components=32, *, loss="squared", alpha=None, confidence=40.0, solver="als", max_iter=20,
                 learning_rate=0.0, n_jobs=None, random_state=None):
        self._set(locals())

    @property
    def _n_features_out(self):
        return self.n_components

    def _options(self):
        options = dict(model="mf", loss=self.loss, optimizer=self.solver, epochs=self.max_iter,
                       learning_rate=self.learning_rate)
        if self.alpha is not None:
            options["l2"] = self.alpha
        settings = {"components": self.n_components}
        if self.loss == "implicit":
            settings["confidence"] = self.confidence
        return options, settings

    def fit(self, X, y=None):
        """Finds factors of the matrix X [users, items]."""
        x = sp.csr_matrix(self._rows(X, reset=True))
        x.sum_duplicates()
        x.eliminate_zeros()
        if x.nnz == 0:
            raise ValueError("X has no entry other than 0, so there is no rating to learn from")
        users, items = x.shape
        pairs = np.empty((x.nnz, 2), dtype=np.int32)
        pairs[:, 0] = np.repeat(np.arange(users), np.diff(x.indptr))
        pairs[:, 1] = x.indices + users
        rows = sp.csr_matrix((np.ones(2 * x.nnz, dtype=np.float32), pairs.ravel(),
                              np.arange(0, 2 * x.nnz + 1, 2)), shape=(x.nnz, users + items))
        self._columns = [("user", _names(users)), ("item", _names(items))]
        self._fit(rows, x.data, None, *self._options())
        self._columns = None
        self._keep()
        return self

    def _keep(self):
        a = self.model_.arrays()
        self.mean_, _, self._l2 = a["mean_loss_l2"]
        self.user_factors_, self.user_bias_ = a["user_factors"], a["user_bias"]
        self.components_, self.item_bias_ = a["item_factors"].T, a["item_bias"]

    def values(self, users, items):
        """The values of pairs: users and items are arrays of numbers of rows and of columns of the matrix."""
        check_is_fitted(self)
        u, i = np.asarray(users), np.asarray(items)
        return (self.mean_ + self.user_bias_[u] + self.item_bias_[i]
                + np.einsum("...k,...k->...", self.user_factors_[u], self.components_.T[i]))

    def recommend(self, users, n=10):
        """The n items of the highest values for each user, best first, and the values: arrays [users, n]."""
        check_is_fitted(self)
        u = np.atleast_1d(users)
        values = (self.mean_ + self.user_bias_[u])[:, None] + self.item_bias_ + self.user_factors_[u] @ self.components_
        best = np.argsort(-values, axis=1, kind="stable")[:, :n]
        return best, np.take_along_axis(values, best, axis=1)

    def transform(self, X):
        """Factors of users by their rows of ratings, the items' being held: least squares with the fit's penalty."""
        check_is_fitted(self)
        if self.loss != "squared":
            raise ValueError(f"transform knows loss 'squared' alone, not {self.loss!r}; user_factors_ has the fit's")
        x = sp.csr_matrix(self._rows(X))
        x.eliminate_zeros()
        a = np.hstack([np.ones((x.shape[1], 1)), self.components_.T.astype(np.float64)])
        target = x.data - self.mean_ - self.item_bias_[x.indices]
        found = np.zeros((x.shape[0], self.n_components))
        for row in range(x.shape[0]):
            at = slice(x.indptr[row], x.indptr[row + 1])
            rated = a[x.indices[at]]
            if len(rated) > 0:
                ridge = rated.T @ rated + self._l2 * len(rated) * np.eye(a.shape[1])
                found[row] = np.linalg.solve(ridge, rated.T @ target[at])[1:]
        return found
