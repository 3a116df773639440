"""Jobs and tables from Python, train and compare: what they return, what they refuse, and Ctrl-C. usage: jobs.py PROGRAM"""
import os
import signal
import sys
import threading
import time

import numpy as np

import plait
from common import raises

os.environ["PATH"] = os.path.dirname(sys.argv[1]) + os.pathsep + os.environ["PATH"]


def test_values():
    def work(job):
        sparse, given = job.table("s", dtype=np.int64, cols=2), job.table("g", rows=3, cols=2, initial=np.arange(6))
        least = job.table("m", rows=2, combine="min", dtype=np.float64)
        sparse.inc([[1, 2], [3, 4]], keys=[5, 10 ** 12])
        least.inc([job.rank, 5.5])
        job.clock()
        job.barrier()
        keys, values = sparse.dump()
        assert keys.tolist() == [5, 10 ** 12] and values.tolist() == [[3, 6], [9, 12]]
        assert sparse.get([10 ** 12, 7]).tolist() == [[9, 12], [0, 0]]
        assert given.get([2, 0]).tolist() == [[4, 5], [0, 1]] and least.get().tolist() == [0, 5.5]
        assert job.allreduce(job.rank) == 3 and job.allreduce([1.5, job.rank], "max").tolist() == [1.5, 2]
        assert job.clock_now == 1 and job.bytes_sent > 0
        return job.rank

    assert plait.run(work, workers=3, topology="ps") == [0, 1, 2]


def test_refusals():
    for text, kind, work in (
            ("adagrad", plait.PlaitError, lambda j: j.table("x", rows=4, rule="adagrat")),
            ("rows 0 to 2", IndexError, lambda j: j.table("x", rows=3).get([7])),
            ("0 or more", IndexError, lambda j: j.table("x").get([-1])),
            ("3 rows of 1", ValueError, lambda j: j.table("x", rows=3).inc([1, 2])),
            ("sparse", ValueError, lambda j: j.table("x").get()),
            ("int32", TypeError, lambda j: j.table("x", rows=3, dtype=np.int32)),
            ("'avg'", ValueError, lambda j: j.allreduce([1], "avg"))):
        raises(kind, text, lambda: plait.run(work, workers=2, topology="ps"))
    raises(plait.PlaitError, "did you mean 'ps'", lambda: plait.run(print, topology="psx"))
    kept = []
    plait.run(kept.append)
    raises(plait.PlaitError, "has ended", kept[0].clock)


def endless(job):
    w = job.table("w", rows=4)
    while True:
        w.inc(np.ones(4))
        job.clock()
        so_far = w.get()[0]  # it waits for the others, so nobody runs ahead
        if job.rank == 2 and so_far > 100:
            raise ZeroDivisionError("own")


def test_failures_end_the_run():
    raises(ZeroDivisionError, "own", lambda: plait.run(endless, workers=4, topology="ps"))


def interrupted(call):
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begun = time.monotonic()
    raises(KeyboardInterrupt, "", call)
    assert time.monotonic() - begun < 300


def test_train():
    with open("rows.csv", "w") as f:
        f.write("x,label\n" + "".join(f"{i % 10},{int(i % 10 > 4)}\n" for i in range(400)))
    seen = []
    record = plait.train(data="rows.csv", model="logistic", workers=2, callback=lambda line: seen.append(line["event"]))
    assert record["workers"] == 2 and record["rows"] == 400 and "optimizer" in record.talk
    assert seen[0] == "start" and seen[-1] == "end"
    assert plait.train(data=["rows.csv", "rows.csv"], table=["w:consistency=bsp"], topology="ps")["rows"] == 800
    raises(plait.PlaitError, "has printed no record", lambda: plait.train(help=True))
    raises(plait.PlaitError, "did you mean --model", lambda: plait.train(data="rows.csv", modl="logistic"))
    raises(plait.PlaitError, "No such file", lambda: plait.train(data="none.csv"))
    raises(TypeError, "estimators", lambda: plait.train(data=np.zeros(3)))
    raises(ZeroDivisionError, "", lambda: plait.train(data="rows.csv", callback=lambda line: 1 / 0))
    found = plait.compare(data="rows.csv", topology=["ps", "allreduce"], consistency="bsp", workers=2, epochs=2)
    assert "<iframe srcdoc=" in found._repr_html_() and len(found["pairs"]) == 2


def test_parquet():
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        return print("skipped: Parquet (no pyarrow)")
    rows = {"x": [i % 10 / 3 for i in range(400)], "label": [int(i % 10 > 4) for i in range(400)]}
    with open("same.csv", "w") as f:
        f.write("x,label\n" + "".join(f"{x!r},{z}\n" for x, z in zip(rows["x"], rows["label"])))
    pa.parquet.write_table(pa.table(rows), "rows.parquet")
    assert plait.train(data="rows.parquet")["model_hash"] == plait.train(data="same.csv")["model_hash"]
    with open("broken.parquet", "w") as f:
        f.write("PAR1")
    raises(plait.PlaitError, "broken.parquet", lambda: plait.train(data=["broken.parquet"]))


def test_ctrl_c():
    interrupted(lambda: plait.run(lambda job: [job.clock() for _ in iter(int, 1)], workers=3, topology="ps"))
    interrupted(lambda: plait.train(data="rows.csv", model="mlp", epochs=10 ** 7))


signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background ignores it
test_values()
test_refusals()
test_failures_end_the_run()
test_train()
test_parquet()
test_ctrl_c()
