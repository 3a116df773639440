"""Plait in Python: estimators that follow scikit-learn's conventions, and train in C without the GIL; own algorithms on
parameter tables; the command line's train and compare.

docs/python.md of the source tree is the guide. Nothing here prints. Estimators are imported when they are first named,
so that a worker of an own algorithm need not load scikit-learn.
"""
import importlib

from plait._core import Model, PlaitError, version
from plait.cli import Comparison, Record, compare, train
from plait.job import Job, Table, run

__version__ = version()
__all__ = ["BernoulliNB", "Comparison", "ComplementNB", "ElasticNet", "GBDTClassifier", "GBDTRegressor", "GaussianNB",
           "HuberRegressor", "Job", "KMeans", "Lasso", "LatentDirichletAllocation", "LinearRegression", "LinearSVC",
           "LogisticRegression", "MLPClassifier", "MLPRegressor", "MatrixFactorization", "Model", "MultinomialNB", "PCA",
           "PlaitError", "PoissonRegressor", "RandomForestClassifier", "RandomForestRegressor", "Record", "Ridge",
           "SGDClassifier", "SGDRegressor", "Table", "compare", "run", "train"]

_HOMES = {
    "bayes": ["BernoulliNB", "ComplementNB", "GaussianNB", "MultinomialNB"],
    "factors": ["MatrixFactorization"],
    "linear": ["ElasticNet", "HuberRegressor", "Lasso", "LinearRegression", "LinearSVC", "LogisticRegression",
               "PoissonRegressor", "Ridge", "SGDClassifier", "SGDRegressor"],
    "nets": ["MLPClassifier", "MLPRegressor"],
    "parts": ["KMeans", "LatentDirichletAllocation", "PCA"],
    "trees": ["GBDTClassifier", "GBDTRegressor", "RandomForestClassifier", "RandomForestRegressor"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name):
    if name not in _HOME_OF:
        raise AttributeError(f"module 'plait' has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"plait.{_HOME_OF[name]}"), name)
    return found


def __dir__():
    return sorted(set(globals()) | set(__all__))
