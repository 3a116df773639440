"""The command line's train and compare, from Python: the same options, the same record.

They run the program `plait` that comes with the package (or the one on PATH) as a process of its own, so that every
transport, also mpi and sim, is what it is on the command line. Nothing prints.
"""
import html
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading

from plait._core import PlaitError


def program():
    """The path of the program `plait`."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "plait")
    found = own if os.access(own, os.X_OK) else shutil.which("plait")
    if found is None:
        raise PlaitError("there is no program plait: neither in the package, nor on PATH")
    return found


class Record(dict):
    """The record of a run; `talk` is what the program said besides."""

    talk = ""


class Comparison(Record):
    """What compare found; a notebook shows its page."""

    page = ""

    def _repr_html_(self):
        return (f'<iframe srcdoc="{html.escape(self.page)}" style="width:100%;height:600px;border:0" '
                f'sandbox="allow-scripts"></iframe>')

    def __repr__(self):
        return self["judgement"]["sentence"] if self.get("judgement") else super().__repr__()


_SEVERAL = ("data", "table")  # options that may be given several times


def _text(value):
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _words(options):
    words = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
            continue
        if not isinstance(value, (str, int, float, os.PathLike, list, tuple)):
            raise TypeError(f"{name}: {type(value).__name__} is no value of an option; arrays are for the estimators")
        if isinstance(value, (list, tuple)):
            parts = [_text(part) for part in value]
            parts = parts if name in _SEVERAL else [",".join(parts)]
        else:
            parts = [_text(value)]
        for part in parts:
            words += [option, part]
    return words


class _Follower(threading.Thread):
    """Hands each line of a file that grows to a callback."""

    def __init__(self, path, callback):
        super().__init__(daemon=True)
        self.path, self.callback, self.ended, self.failure = path, callback, threading.Event(), None

    def _lines(self, file):
        for line in iter(file.readline, b""):
            if not line.endswith(b"\n"):
                file.seek(-len(line), os.SEEK_CUR)  # the rest of it comes later
                return
            self.callback(json.loads(line))

    def run(self):
        try:
            while not os.path.exists(self.path):
                if self.ended.wait(0.05):
                    break
            if not os.path.exists(self.path):
                return
            with open(self.path, "rb") as file:
                while not self.ended.wait(0.05):
                    self._lines(file)
                self._lines(file)
        except BaseException as e:  # it is raised when the program has ended
            self.failure = e


def _output(child):
    """All that the child writes; signals are looked after meanwhile, whichever thread has received them."""
    while True:
        try:
            return child.communicate(timeout=0.2)
        except subprocess.TimeoutExpired:
            pass


def _call(words, kind):
    """Runs the program; Ctrl-C goes to it, and is raised when it has ended. A second one ends it at once."""
    child = subprocess.Popen([program(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
    try:
        out, talk = _output(child)
    except BaseException:
        try:
            child.send_signal(signal.SIGINT)
            child.communicate()
        except BaseException:
            child.kill()
            child.wait()
            raise
        raise
    if child.returncode != 0:
        raise PlaitError(talk.strip() or f"plait {words[0]} has ended with {child.returncode}")
    try:
        record = kind(json.loads(out.splitlines()[-1]))
    except (IndexError, ValueError):  # as with help=True
        raise PlaitError(f"plait {words[0]} has printed no record, but: {out.strip()[:200]}") from None
    record.talk = talk
    return record


def _csv_of(path, folder, number):
    """A Parquet file as CSV, written batch by batch; any other path as it is."""
    if not os.fspath(path).endswith((".parquet", ".pq")) or not os.path.isfile(path):
        return path
    try:
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as e:
        raise PlaitError(f"{path}: Parquet is read through pyarrow, which is not there: pip install pyarrow") from e
    to = os.path.join(folder, f"{number}.csv")
    try:
        with pyarrow.parquet.ParquetFile(path) as file, pyarrow.csv.CSVWriter(to, file.schema_arrow) as out:
            for batch in file.iter_batches():
                out.write_batch(batch)
    except pyarrow.ArrowException as e:
        raise PlaitError(f"{path}: {e}") from e
    return to


def _without_parquet(options, folder):
    """The options with each Parquet file of data and test replaced by a CSV file in folder."""
    options = dict(options)
    for name in ("data", "test"):
        given = options.get(name)
        if isinstance(given, (str, os.PathLike)):
            options[name] = _csv_of(given, folder, name)
        elif isinstance(given, (list, tuple)):
            options[name] = [_csv_of(path, folder, f"{name}{k}") for k, path in enumerate(given)]
    return options


def train(callback=None, **options):
    """Trains by the command line's options, train(data="a9a", model="logistic", workers=4, l2=1e-4), and returns the
    run's record. A value True gives an option without a value; a list is joined by commas, but files of data and
    settings of table are given one by one. callback gets each line of --metrics as a dict, while the run goes. Parquet
    files are read through pyarrow."""
    with tempfile.TemporaryDirectory(prefix="plait-") as folder:
        options = _without_parquet(options, folder)
        if callback is None:
            return _call(["train", "--json", *_words(options)], Record)
        follower = _Follower(str(options.get("metrics") or os.path.join(folder, "metrics")), callback)
        options["metrics"] = follower.path
        follower.start()
        try:
            record = _call(["train", "--json", *_words(options)], Record)
        finally:
            follower.ended.set()
            follower.join()
    if follower.failure is not None:
        raise follower.failure
    return record


def compare(**options):
    """Runs a job under several settings, compare(data="a9a", topology="ps,allreduce", consistency="bsp,ssp:2"), and
    returns what was found. In a notebook it shows itself."""
    with tempfile.TemporaryDirectory(prefix="plait-") as folder:
        options = _without_parquet(options, folder)
        options.setdefault("report", os.path.join(folder, "report.html"))
        found = _call(["compare", "--json", *_words(options)], Comparison)
        with open(options["report"], encoding="utf-8") as f:
            found.page = f.read()
    return found
