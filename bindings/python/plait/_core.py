"""The C library behind objects: data in memory, a fit that Ctrl-C ends, and models that are their file's bytes."""
import ctypes
import os
import tempfile
import threading

import numpy as np
import scipy.sparse as sp

from plait._plait import ffi, lib


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


class PlaitError(RuntimeError):
    """A call of the library failed; the text says what, where, and the remedy."""


def version():
    return ffi.string(lib.plait_version()).decode()


def _check(status, err):
    if status >= 0:
        return
    text = ffi.string(err.text).decode(errors="replace")
    raise MemoryError(text) if status == lib.PLAIT_ENOMEM else PlaitError(text)


class ArrowRows:
    """A table that hands out an Arrow stream, such as polars' and pyarrow's, as rows for a model. Its own columns are
    read where they lie; what an estimator cannot read so it takes from dense()."""

    def __init__(self, source, columns, keep_missing):
        self.source, self.columns, self.keep_missing = source, columns, keep_missing
        self.data = Data(self, keep_missing=keep_missing, columns=columns)
        self.columns = self.data.columns()
        self.shape = lib.plait_data_rows(self.data.pointer), lib.plait_data_features(self.data.pointer)

    def dense(self):
        """The rows as an array of float32, with a column for each text."""
        out, err = np.empty(self.shape, np.float32), ffi.new("plait_error *")
        _check(lib.plait_data_dense(self.data.pointer, ffi.cast("float *", out.ctypes.data), err), err)
        return out


class Data:
    """Rows in memory. Float32 CSR with 32-bit columns is used where it lies; other layouts are copied by the library."""

    def __init__(self, x, label=None, weight=None, keep_missing=False, columns=None):
        err = ffi.new("plait_error *")
        out = ffi.new("plait_data **")
        self._lent = []  # arrays that must outlive the data set
        arrow = isinstance(x, ArrowRows)
        opts = ffi.new("plait_arrow_opts *" if arrow else "plait_memory_opts *")
        (lib.plait_arrow_opts_init if arrow else lib.plait_memory_opts_init)(opts)
        opts.keep_missing = keep_missing
        if columns is not None:
            self._name(opts, columns)
        if not arrow:
            opts.rows, opts.features = x.shape
            (self._sparse if sp.issparse(x) else self._dense)(opts, x)
        if label is not None:
            opts.label = self._pointer("const double *", np.ascontiguousarray(label, dtype=np.float64))
        if weight is not None:
            opts.weight = self._pointer("const double *", np.ascontiguousarray(weight, dtype=np.float64))
        if arrow:
            opts.rows = max((len(given) for given in (label, weight) if given is not None), default=0)
            capsule = x.source.__arrow_c_stream__()
            address = _capsule_pointer(capsule, b"arrow_array_stream")
            _check(lib.plait_data_from_arrow(ffi.cast("struct ArrowArrayStream *", address), opts, out, err), err)
        else:
            _check(lib.plait_data_from_memory(opts, out, err), err)
        self.pointer = ffi.gc(out[0], lambda p: lib.plait_data_destroy(ffi.new("plait_data **", p)))

    def _pointer(self, kind, array):
        self._lent.append(array)
        return ffi.cast(kind, array.ctypes.data)

    def _text(self, text):
        self._lent.append(ffi.new("char[]", text.encode()))
        return self._lent[-1]

    def _name(self, opts, columns):
        """columns: (name, texts) each; texts None: numbers."""
        found = ffi.new("plait_memory_column[]", max(1, len(columns)))
        for at, (name, texts) in enumerate(columns):
            found[at].name = self._text(name)
            if texts is not None:
                self._lent.append(ffi.new("const char *[]", [self._text(text) for text in texts] or 1))
                found[at].texts, found[at].n_texts = self._lent[-1], len(texts)
        self._lent.append(found)
        opts.columns, opts.n_columns = found, len(columns)

    def _values(self, opts, x):
        x = x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)
        opts.type = lib.PLAIT_F32 if x.dtype == np.float32 else lib.PLAIT_F64
        return x

    def _dense(self, opts, x):
        x = self._values(opts, x)
        by_rows = x.flags.c_contiguous or not x.flags.f_contiguous
        x = np.ascontiguousarray(x) if by_rows else x
        opts.layout = lib.PLAIT_DENSE_ROWS if by_rows else lib.PLAIT_DENSE_COLUMNS
        opts.values = self._pointer("const void *", x)

    def _sparse(self, opts, x):
        x = x.tocsr()
        if not x.has_canonical_format:
            x = x.copy()
            x.sum_duplicates()
        opts.layout = lib.PLAIT_CSR
        opts.lend = 1
        opts.values = self._pointer("const void *", self._values(opts, x.data))
        opts.row_start = self._pointer("const void *", x.indptr)
        opts.column = self._pointer("const void *", x.indices)
        opts.row_start_bytes, opts.column_bytes = x.indptr.itemsize, x.indices.itemsize

    def columns(self):
        """(name, texts) of each column; texts None: numbers."""
        found, c = [], ffi.new("plait_memory_column *")
        while lib.plait_data_column(self.pointer, len(found), c, ffi.NULL) == lib.PLAIT_OK:
            texts = None if c.texts == ffi.NULL else [ffi.string(t).decode() for t in c.texts[0:c.n_texts]]
            found.append((ffi.string(c.name).decode(), texts))
        return found

    @property
    def is_lent(self):
        return bool(lib.plait_data_is_lent(self.pointer))


class Model:
    """A trained model. Pickled, it is the bytes of its safetensors file."""

    def __init__(self, pointer):
        self.pointer = ffi.gc(pointer, lambda p: lib.plait_model_destroy(ffi.new("plait_model **", p)))

    def to_bytes(self):
        """The bytes of the model's file."""
        err = ffi.new("plait_error *")
        with tempfile.TemporaryDirectory(prefix="plait-") as folder:
            path = os.path.join(folder, "model")
            _check(lib.plait_model_save(self.pointer, path.encode(), err), err)
            with open(path, "rb") as f:
                return f.read()

    @classmethod
    def from_bytes(cls, data):
        """The model of a file with these bytes."""
        with tempfile.TemporaryDirectory(prefix="plait-") as folder:
            path = os.path.join(folder, "model")
            with open(path, "wb") as f:
                f.write(data)
            return cls.load(path)

    @classmethod
    def load(cls, path):
        """Reads a model file, also one of the command line's."""
        err = ffi.new("plait_error *")
        out = ffi.new("plait_model **")
        _check(lib.plait_model_load(os.fspath(path).encode(), out, err), err)
        return cls(out[0])

    def save(self, path):
        """Writes the model's file, which the command line reads."""
        err = ffi.new("plait_error *")
        _check(lib.plait_model_save(self.pointer, os.fspath(path).encode(), err), err)

    def __reduce__(self):
        return Model.from_bytes, (self.to_bytes(),)

    @property
    def hash(self):
        """SHA-256 over the names, types, shapes and bytes of the model's tensors, as in the run's record."""
        out = ffi.new("char[65]")
        lib.plait_model_hash(self.pointer, out)
        return ffi.string(out).decode()

    @property
    def classes(self):
        """How many classes the model knows; 0: it predicts numbers, or nothing."""
        return lib.plait_model_classes(self.pointer)

    def predict(self, data, rows, proba=False):
        """The class numbers or values [rows, 1] of data; proba: probabilities [rows, classes]."""
        width = max(1, self.classes) if proba else 1
        return self._rows(lambda out, err: lib.plait_model_predict(self.pointer, data.pointer, int(proba), out, err),
                          rows, width)

    def transform(self, data, rows, width):
        """The rows of data in the model's own space, [rows, width]."""
        return self._rows(lambda out, err: lib.plait_model_transform(self.pointer, data.pointer, out, err), rows, width)

    @staticmethod
    def _rows(call, rows, width):
        err = ffi.new("plait_error *")
        out = np.empty((rows, width))
        _check(call(ffi.cast("double *", out.ctypes.data), err), err)
        return out

    def weights(self):
        """The weights [columns, features] and the intercepts [columns] of a linear model; of trees the first column is
        the gain of each feature."""
        columns, features = lib.plait_model_columns(self.pointer), lib.plait_model_rows(self.pointer)
        w = [[lib.plait_model_weight(self.pointer, j, k) for j in range(features)] for k in range(columns)]
        return np.array(w), np.nan_to_num([lib.plait_model_intercept(self.pointer, k) for k in range(columns)])

    def arrays(self):
        """The named arrays of a model that has some, such as {"centres": ...}."""
        found, a, i = {}, ffi.new("plait_model_array *"), 0
        kinds = {lib.PLAIT_F32: np.float32, lib.PLAIT_F64: np.float64}
        while lib.plait_model_array_at(self.pointer, i, a) == lib.PLAIT_OK:
            kind = kinds.get(a.type, np.int64)
            shape = tuple(a.shape[k] for k in range(a.rank))
            size = int(np.prod(shape)) * np.dtype(kind).itemsize
            found[ffi.string(a.name).decode()] = np.frombuffer(ffi.buffer(a.data, size), kind).reshape(shape).copy()
            i += 1
        return found


def figures(report):
    """The learner's own figures, by name."""
    return {ffi.string(f.name).decode(): f.value for f in report.figures[0:report.n_figures]}


class Progress:
    """What a run reports while it goes."""

    def __init__(self, p):
        for name in ("epoch", "epochs", "clock", "clocks", "loss", "validation_loss", "rows_per_second", "seconds",
                     "seconds_left"):
            setattr(self, name, getattr(p, name))
        self.epoch_ended = bool(p.epoch_ended)

    def __repr__(self):
        return f"Progress(epoch={self.epoch}/{self.epochs}, loss={self.loss:.6g}, seconds={self.seconds:.1f})"


@ffi.def_extern()
def plait_python_progress(user, progress):
    fit = ffi.from_handle(user)
    try:
        if fit.failure is None and fit.callback(Progress(progress)) is False:
            fit.stop[0] = 1
    except BaseException as e:  # it is raised when the run has ended
        fit.failure, fit.stop[0] = e, 1


class _Fit(threading.Thread):
    """A fit on a thread of its own: signals reach the thread that waits for it."""

    def __init__(self, data, options, settings, threads, callback):
        super().__init__(daemon=True)
        self.data, self.texts, self.failure, self.callback = data, [], None, callback
        self.report, self.err = ffi.new("plait_report *"), ffi.new("plait_error *")
        self.out, self.stop = ffi.new("plait_model **"), ffi.new("int *")
        self.comm_opts, self.opts = ffi.new("plait_comm_opts *"), ffi.new("plait_train_opts *")
        lib.plait_comm_opts_init(self.comm_opts)
        lib.plait_train_opts_init(self.opts)
        self.comm_opts.threads = threads or 0
        self.opts.memory, self.opts.stop = data.pointer, self.stop
        if callback is not None:
            self.handle = ffi.new_handle(self)
            self.opts.user, self.opts.progress = self.handle, lib.plait_python_progress
        for name, value in options.items():
            setattr(self.opts, name, self._text(value) if isinstance(value, str) else value)
        self.settings = ffi.new("plait_learner_setting[]", max(1, len(settings)))
        for k, (name, value) in enumerate(settings.items()):
            self.settings[k].name, self.settings[k].value = self._text(name), self._text(str(value))
        self.opts.settings, self.opts.n_settings = self.settings, len(settings)

    def _text(self, value):
        self.texts.append(ffi.new("char[]", value.encode()))
        return self.texts[-1]

    def run(self):
        self.status = lib.plait_fit(self.comm_opts, self.opts, self.report, self.out, self.err)


def wait_for(thread):
    """Waits for a thread's end, and looks after signals meanwhile: another thread may have received one, and then a
    join without a time limit would sleep on."""
    while thread.is_alive():
        thread.join(0.1)


def _finish(f):
    """Waits for the fit; Ctrl-C ends it at the next clock, and is raised then."""
    f.start()
    try:
        wait_for(f)
        if f.failure is not None:
            raise f.failure
        if f.stop[0]:  # the callback wants no more: the model so far counts
            f.status = 0 if f.out[0] != ffi.NULL else f.status
    except BaseException:
        f.stop[0] = 1
        f.join()
        if f.out[0] != ffi.NULL:
            lib.plait_model_destroy(f.out)
        raise
    if f.status < 0 and f.out[0] != ffi.NULL:
        lib.plait_model_destroy(f.out)
    _check(f.status, f.err)
    return Model(f.out[0]), f.report


def fit(data, options, settings=None, threads=None, start=None, callback=None):
    """Trains; returns the model and the report. start: a model to begin with. callback(Progress) is called while it
    goes; if it returns False, training ends with the model so far."""
    if start is None:
        return _finish(_Fit(data, options, settings or {}, threads, callback))
    with tempfile.TemporaryDirectory(prefix="plait-") as folder:
        path = os.path.join(folder, "start")
        start.save(path)
        return _finish(_Fit(data, dict(options, init_model=path), settings or {}, threads, callback))
