"""Plait in Python: estimators that follow scikit-learn's conventions, and train in C without the GIL.

docs/python.md of the source tree is the guide. Nothing here prints.
"""
from plait._core import PlaitError, version
from plait.estimators import (GBDTClassifier, GBDTRegressor, KMeans, LinearRegression, LogisticRegression, Ridge,
                              SGDClassifier)

__version__ = version()
__all__ = ["GBDTClassifier", "GBDTRegressor", "KMeans", "LinearRegression", "LogisticRegression", "PlaitError", "Ridge",
           "SGDClassifier"]
