"""Plait in Python: estimators that follow scikit-learn's conventions, and train in C without the GIL.

docs/python.md of the source tree is the guide. Nothing here prints.
"""
from plait._core import PlaitError, version
from plait.bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from plait.factors import MatrixFactorization
from plait.linear import (ElasticNet, HuberRegressor, Lasso, LinearRegression, LinearSVC, LogisticRegression,
                          PoissonRegressor, Ridge, SGDClassifier, SGDRegressor)
from plait.nets import MLPClassifier, MLPRegressor
from plait.parts import PCA, KMeans, LatentDirichletAllocation
from plait.trees import GBDTClassifier, GBDTRegressor, RandomForestClassifier, RandomForestRegressor

__version__ = version()
__all__ = ["BernoulliNB", "ComplementNB", "ElasticNet", "GBDTClassifier", "GBDTRegressor", "GaussianNB",
           "HuberRegressor", "KMeans", "Lasso", "LatentDirichletAllocation", "LinearRegression", "LinearSVC",
           "LogisticRegression", "MLPClassifier", "MLPRegressor", "MatrixFactorization", "MultinomialNB", "PCA", "PlaitError",
           "PoissonRegressor", "RandomForestClassifier", "RandomForestRegressor", "Ridge",
           "SGDClassifier", "SGDRegressor"]
