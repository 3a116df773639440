"""Own algorithms on parameter tables: workers get and inc numpy arrays, and end clocks.

    def work(job):
        w = job.table("w", rows=10, rule="adagrad")
        for step in range(100):
            w.inc(gradient(w.get(), step), examples=64)
            job.clock()
        return w.get()

    models = plait.run(work, workers=4, topology="ps", consistency="ssp:2")

Workers are threads of this process, or under `plait launch -n 4 -- python train.py` and mpirun a process each. The GIL is
released in each call that may wait. A worker's job and tables are for its own thread, while its work runs.
"""
import os
import sys
import threading

import numpy as np

from plait._core import PlaitError, _check, ffi, lib, wait_for

_TYPES = {np.dtype(np.float32): lib.PLAIT_F32, np.dtype(np.float64): lib.PLAIT_F64, np.dtype(np.int64): lib.PLAIT_I64}
_REDUCES = {"sum": lib.PLAIT_SUM, "min": lib.PLAIT_MIN, "max": lib.PLAIT_MAX, "exact": lib.PLAIT_SUM_EXACT}
_sites = {}  # C texts of file names: the library keeps pointers to them


def _site():
    """The caller's file and line, for waits and their failures."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    name = frame.f_code.co_filename
    if name not in _sites:
        _sites[name] = ffi.new("char[]", os.path.basename(name).encode(errors="replace"))
    return _sites[name], frame.f_lineno


def _type_of(dtype):
    dtype = np.dtype(dtype)
    if dtype not in _TYPES:
        raise TypeError(f"values of type {dtype}: expected float32, float64 or int64")
    return _TYPES[dtype]


class _Texts:
    """C texts that live as long as this object."""

    def __init__(self):
        self._kept = []

    def set(self, opts, values):
        for name, value in values.items():
            if value is None:
                continue
            if isinstance(value, str):
                self._kept.append(ffi.new("char[]", value.encode()))
                value = self._kept[-1]
            setattr(opts, name, value)


class Job:
    """A worker's part in a job. plait.run makes it, and gives it to the work."""

    def __init__(self, pointer, run):
        self._pointer, self._run, self._texts = pointer, run, _Texts()
        comm = lib.plait_job_comm(pointer)
        self.rank, self.workers = lib.plait_comm_rank(comm), lib.plait_comm_workers(comm)

    def _open(self):
        """The job's pointer, with the caller's line noted."""
        if self._pointer is None:
            raise PlaitError("the job has ended: its work has returned")
        if self._run.interrupted:
            raise KeyboardInterrupt
        return lib.plait_job_at(self._pointer, *_site())

    def _check(self, status):
        if status < 0:
            _check(status, lib.plait_comm_error(lib.plait_job_comm(self._pointer)))

    def table(self, name, rows=0, cols=1, *, dtype=np.float32, combine=None, rule=None, learning_rate=0.0, momentum=None,
              l1=0.0, l2=0.0, schedule=None, schedule_clocks=None, topology=None, consistency=None, filter=None,
              exact=False, keyed=False, initial=None):
        """Creates a table, on all workers in the same order. rows 0: a sparse one, which grows by key. rule: the update
        rule that applies incs as gradients; None: incs are added (or combined by "min", "max", "last")."""
        job = self._open()
        opts, out, texts = ffi.new("plait_table_opts *"), ffi.new("plait_table **"), _Texts()
        lib.plait_table_opts_init(opts)
        texts.set(opts, dict(name=name, type=_type_of(dtype), combine=combine, rows=rows, cols=cols, topology=topology,
                             consistency=consistency, filter=filter, exact=int(exact), keyed=int(keyed)))
        texts.set(opts.rule, dict(name=rule, learning_rate=learning_rate, momentum=momentum, l1=l1, l2=l2,
                                  schedule=schedule, schedule_clocks=schedule_clocks))
        if initial is not None:
            initial = np.ascontiguousarray(np.broadcast_to(np.asarray(initial, dtype).reshape(-1, cols)
                                                           if np.ndim(initial) else initial, (rows, cols)), dtype)
            opts.initial = ffi.cast("const void *", initial.ctypes.data)
        self._check(lib.plait_table_create(job, opts, out))
        return Table(self, out[0], name, rows, cols, np.dtype(dtype))

    def clock(self):
        """Ends the worker's clock: its incs leave. All workers end the same number of clocks."""
        self._check(lib.plait_job_clock(self._open()))

    def barrier(self):
        """Waits until all workers have called it; gets then see all updates of ended clocks."""
        self._check(lib.plait_job_barrier(self._open()))

    @property
    def clock_now(self):
        """How many clocks the worker has ended."""
        return lib.plait_job_clock_now(self._open())

    @property
    def bytes_sent(self):
        """How many bytes this rank has sent to others so far."""
        return lib.plait_comm_bytes_sent(lib.plait_job_comm(self._open()))

    def allreduce(self, values, op="sum"):
        """The sum over all workers ("min", "max", "exact": a sum whose bits depend on no order), as a new array."""
        if op not in _REDUCES:
            raise ValueError(f"op {op!r}: expected one of {sorted(_REDUCES)}")
        given = np.asarray(values)
        out = np.array(given, dtype=given.dtype if given.dtype in _TYPES else np.float64, order="C", ndmin=1)
        comm = lib.plait_comm_at(lib.plait_job_comm(self._open()), *_site())
        self._check(lib.plait_comm_allreduce(comm, ffi.cast("void *", out.ctypes.data), out.size, _type_of(out.dtype),
                                             _REDUCES[op]))
        return out.reshape(given.shape) if given.ndim else out[0]

    def slice(self, n):
        """This worker's share of n items: all workers' slices together are all of them."""
        return slice(n * self.rank // self.workers, n * (self.rank + 1) // self.workers)


class Table:
    """A parameter table, as one worker sees it. Arrays are [n, cols], or [n] if cols is 1."""

    def __init__(self, job, pointer, name, rows, cols, dtype):
        self._job, self._pointer = job, pointer
        self.name, self.rows, self.cols, self.dtype = name, rows, cols, dtype

    def __repr__(self):
        return f"Table({self.name!r}, rows={self.rows}, cols={self.cols}, dtype={self.dtype})"

    def _open(self):
        self._job._open()
        return lib.plait_table_at(self._pointer, *_site())

    def _keys(self, keys):
        keys = np.asarray(keys)
        if keys.size > 0 and keys.dtype.kind not in "iu":
            raise TypeError(f"keys of type {keys.dtype}: expected whole numbers")
        if keys.dtype.kind == "i" and (keys < 0).any():
            raise IndexError(f"key {keys.min()}: expected keys of 0 or more")
        keys = np.ascontiguousarray(keys, dtype=np.uint64).reshape(-1)
        if self.rows > 0 and keys.size > 0 and keys.max() >= self.rows:
            raise IndexError(f"key {keys.max()}: table {self.name!r} has rows 0 to {self.rows - 1}")
        return keys, ffi.cast("const uint64_t *", keys.ctypes.data)

    def _all(self):
        if self.rows == 0:
            raise ValueError(f"table {self.name!r} is sparse: give keys, or take dump()")
        return self.rows

    def _shaped(self, values):
        return values.reshape(-1) if self.cols == 1 else values

    def get(self, keys=None):
        """The rows of keys, in their order; None: all rows. Waits where the consistency says so."""
        n = self._all() if keys is None else np.size(keys)
        out = np.empty((n, self.cols), self.dtype)
        values, table = ffi.cast("void *", out.ctypes.data), self._open()
        if keys is None:
            status = lib.plait_table_get_range(table, 0, n, values)
        else:
            kept, pointer = self._keys(keys)
            status = lib.plait_table_get(table, n, pointer, values)
        self._job._check(status)
        return self._shaped(out)

    def inc(self, delta, keys=None, *, examples=0):
        """Adds delta to the rows of keys; None: to all rows. On a table with a rule delta is a gradient, summed over
        `examples` rows of data."""
        n = self._all() if keys is None else np.size(keys)
        delta = np.ascontiguousarray(delta, self.dtype)
        if delta.size != n * self.cols:
            raise ValueError(f"delta of {delta.size} values: expected {n} rows of {self.cols}")
        values, table = ffi.cast("const void *", delta.ctypes.data), self._open()
        if keys is None:
            status = lib.plait_table_inc_range(table, 0, n, values, examples)
        else:
            kept, pointer = self._keys(keys)
            status = lib.plait_table_inc(table, n, pointer, values, examples)
        self._job._check(status)

    def zero(self):
        """Zeroes all values, on all workers in the same clock, before their first inc in it."""
        self._job._check(lib.plait_table_zero(self._open()))

    def dump(self):
        """The keys and values of all rows that the table holds."""
        n, keys, values = ffi.new("int64_t *"), ffi.new("uint64_t **"), ffi.new("void **")
        self._job._check(lib.plait_table_dump(self._open(), n, keys, values))
        try:
            k = np.frombuffer(ffi.buffer(keys[0], 8 * n[0]), np.uint64).copy() if n[0] else np.empty(0, np.uint64)
            size = n[0] * self.cols * self.dtype.itemsize
            v = np.frombuffer(ffi.buffer(values[0], size), self.dtype).copy() if n[0] else np.empty(0, self.dtype)
        finally:
            lib.plait_comm_free(keys[0])
            lib.plait_comm_free(values[0])
        return k, self._shaped(v.reshape(-1, self.cols))


@ffi.def_extern()
def plait_python_work(pointer, user):
    run = ffi.from_handle(user)
    job = None
    try:
        job = Job(pointer, run)
        run.results[job.rank] = run.work(job)
        return lib.PLAIT_OK
    except BaseException as e:  # it is raised by run(), in the thread that called it
        run.failures.append(e)
        return lib.PLAIT_EINTERRUPTED if isinstance(e, KeyboardInterrupt) else lib.PLAIT_EINVAL
    finally:
        if job is not None:
            job._pointer = None


class _Run(threading.Thread):
    """A run on a thread of its own: signals reach the thread that waits for it."""

    def __init__(self, work, comm, job):
        super().__init__(daemon=True)
        self.work, self.results, self.failures, self.interrupted = work, {}, [], False
        self.comm_opts, self.job_opts = ffi.new("plait_comm_opts *"), ffi.new("plait_job_opts *")
        self.err, self.texts, self.handle = ffi.new("plait_error *"), _Texts(), ffi.new_handle(self)
        lib.plait_comm_opts_init(self.comm_opts)
        lib.plait_job_opts_init(self.job_opts)
        self.texts.set(self.comm_opts, comm)
        self.texts.set(self.job_opts, job)

    def run(self):
        self.status = lib.plait_run(self.comm_opts, self.job_opts, lib.plait_python_work, self.handle, self.err)


def run(work, *, workers=None, servers=None, transport=None, threads=1, topology=None, consistency=None, batch=None,
        filter=None, aggregate=None, exact=False, seed=0, timeout=None, collective=None, cluster=None):
    """Calls work(job) on every worker, and returns what the workers of this process have returned, by rank.

    workers None: 1, or under a launcher all of its processes. topology, consistency, filter, aggregate: the job's
    defaults. batch: rows of all workers together in a clock, for update rules under stale policies. The first failure
    of a worker is raised; Ctrl-C is raised as KeyboardInterrupt when the workers have come to their next call.

    >>> def work(job):
    ...     seen = job.table("seen", rows=2, dtype="int64")
    ...     seen.inc([1, job.rank])
    ...     job.clock()
    ...     return seen.get().tolist()
    >>> run(work, workers=3)
    [[3, 3], [3, 3], [3, 3]]
    """
    comm = dict(workers=workers, servers=servers, transport=transport, threads=threads, collective=collective,
                cluster=cluster, seed=seed, timeout_ns=None if timeout is None else int(timeout * 1e9))
    job = dict(topology=topology, consistency=consistency, batch=batch, filter=filter, aggregate=aggregate,
               exact=int(exact), seed=seed)
    r = _Run(work, comm, job)
    r.start()
    try:
        wait_for(r)
    except BaseException:
        r.interrupted = True
        r.join()
        raise
    if r.failures:
        raise next((e for e in r.failures if not isinstance(e, PlaitError)), r.failures[0])
    _check(r.status, r.err)
    return [r.results[rank] for rank in sorted(r.results)]
