"""Frames with columns of texts: pandas' categories and strings, and what scikit-learn's checks cannot take.

A column of texts has a feature for each of its texts, "city=Rome", in the order of their bytes, as Plait reads a CSV
file. A text that was not there when the estimator was fitted is none of them, and so is a missing one.
"""
import numpy as np
import scipy.sparse as sp


def _is_frame(x):
    return hasattr(x, "columns") and hasattr(x, "dtypes") and hasattr(x, "iloc")


def _is_text(kind):
    return getattr(kind, "kind", "O") in "OSU" and str(kind) not in ("Float32", "Float64") or str(kind) in (
        "category", "string", "str")


def is_arrow(x):
    """Does x hand out an Arrow stream? pandas is read as it is."""
    return hasattr(x, "__arrow_c_stream__") and not _is_frame(x)


def check_names(estimator, x, reset):
    """Sets or checks the names of an Arrow table's columns."""
    names = getattr(x, "column_names", None) or getattr(x, "columns", None)
    names = np.array(list(names() if callable(names) else names), dtype=object)
    if reset:
        estimator.feature_names_in_, estimator.n_features_in_ = names, len(names)
    elif set(getattr(estimator, "feature_names_in_", names)) - set(names):
        missing = sorted(set(estimator.feature_names_in_) - set(names))
        raise ValueError(f"The feature names should match those that were passed during fit. X lacks {missing}")


def has_texts(x):
    """Is x a pandas frame with a column that is neither numbers nor truth values?"""
    return _is_frame(x) and any(_is_text(kind) for kind in x.dtypes)


def _texts(column):
    """The column's cells as texts, and which are missing."""
    missing = np.asarray(column.isna())
    return np.where(missing, "", np.asarray(column.astype(object)).astype(str)), missing


def columns_of(x):
    """(name, texts) for each column; texts None: numbers."""
    found = []
    for at, name in enumerate(x.columns):
        column = x.iloc[:, at]
        if not _is_text(column.dtype):
            found.append((str(name), None))
            continue
        texts, missing = _texts(column)
        found.append((str(name), sorted(set(texts[~missing]), key=lambda t: t.encode())))
    return found


def names_of(columns):
    return [name if texts is None else f"{name}={text}" for name, texts in columns
            for text in ([None] if texts is None else texts)]


def _number_entries(column, name, first, keep_missing):
    values = np.asarray(column.astype("float64"), dtype=np.float64)
    if not keep_missing and np.isnan(values).any():
        raise ValueError(f"Input X contains NaN: column {name!r} has missing numbers, which only trees learn from")
    if np.isinf(values).any():
        raise ValueError(f"Input X contains infinity: column {name!r}")
    rows = np.flatnonzero(values)
    return rows, np.full(len(rows), first), values[rows]


def _text_entries(column, texts, first):
    cells, missing = _texts(column)
    codes = {text: k for k, text in enumerate(texts)}
    code = np.array([codes.get(cell, -1) for cell in cells], dtype=np.int64)
    rows = np.flatnonzero((code >= 0) & ~missing)
    return rows, first + code[rows], np.ones(len(rows))


def rows_of(x, columns, keep_missing):
    """The frame as CSR of float32, whose columns are those of names_of."""
    if not _is_frame(x):
        raise ValueError("the estimator was fitted on a frame with columns of texts, so X must be such a frame")
    parts, first = [], 0
    for at, (name, texts) in enumerate(columns):
        column = x.iloc[:, at]
        parts.append(_number_entries(column, name, first, keep_missing) if texts is None
                     else _text_entries(column, texts, first))
        first += 1 if texts is None else len(texts)
    rows, keys, values = (np.concatenate(part) for part in zip(*parts))
    found = sp.csr_matrix((values.astype(np.float32), (rows, keys.astype(np.int32))), shape=(len(x), first))
    found.sort_indices()
    return found
