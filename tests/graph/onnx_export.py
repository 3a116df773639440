"""Trains every kind of model on small data and exports it: onnx.checker accepts the file, onnxruntime computes what plait predict
prints, and Plait reads the file again and computes the same.

usage: onnx_export.py PLAIT ONNX_RUN DATA FOLDER [CASES]     DATA: tests/data; CASES: names, all if none is given"""
import gzip
import os
import shutil
import struct
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime

PLAIT, RUN, DATA, FOLDER = sys.argv[1:5]
WANTED = sys.argv[5:]


def at(name):
    return os.path.join(FOLDER, name)


def plait(*words):
    done = subprocess.run([PLAIT, *[str(w) for w in words]], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"plait {' '.join(map(str, words))}: exit {done.returncode}: {done.stderr}")
    return done.stdout


# --- data: a file, and the same rows as a matrix ------------------------------------------------------------------------

def csv(name, x, labels):
    with open(at(name), "w") as file:
        print(*[f"f{j}" for j in range(x.shape[1])], "label", sep=",", file=file)
        for row, label in zip(x, labels):
            print(*[f"{v:.9g}" for v in row], label, sep=",", file=file)
    return at(name), x.astype(np.float32)


def blobs(classes, rows=240, scale=(1.0, 30.0, 0.01, 500.0)):
    random = np.random.default_rng(classes)
    k = random.integers(0, classes, rows)
    centre = random.normal(0, 2, (classes, len(scale)))
    x = ((random.normal(0, 1, (rows, len(scale))) + centre[k]) * scale + np.array(scale) * 3).astype(np.float32)
    return x, k


def numbers(rows=240):
    random = np.random.default_rng(9)
    x = random.normal(0, 1, (rows, 5)).astype(np.float32) * [1, 10, 100, 0.1, 1]
    return x, np.round(x @ [1, -0.2, 0.03, 5, 0] + 7 + random.normal(0, 0.1, rows), 5)


def a9a():
    lines = gzip.open(os.path.join(DATA, "a9a/a9a.gz"), "rt").read().splitlines()[:300]
    x = np.zeros((len(lines), 123), np.float32)
    for i, line in enumerate(lines):
        for word in line.split()[1:]:
            j, v = word.split(":")
            x[i, int(j) - 1] = float(v)
    os.makedirs(at("a9a"), exist_ok=True)
    with open(at("a9a/part.svm"), "w") as file:
        print(*lines, sep="\n", file=file)
    return at("a9a/part.svm"), x


def images(rows=120, side=8):
    random = np.random.default_rng(4)
    k = random.integers(0, 3, rows).astype(np.uint8)
    x = random.integers(0, 90, (rows, side, side)).astype(np.uint8)
    for i, c in enumerate(k):
        x[i, 2 * c:2 * c + 2] += 120
    with open(at("images"), "wb") as file:
        file.write(struct.pack(">HBBIII", 0, 8, 3, rows, side, side) + x.tobytes())
    with open(at("labels"), "wb") as file:
        file.write(struct.pack(">HBBI", 0, 8, 1, rows) + k.tobytes())
    return at("images"), x.reshape(rows, -1).astype(np.float32)


def graph(name, nodes):
    with open(at(name), "w") as file:
        file.write('{"plait_graph": 1, "nodes": [\n' + ",\n".join(nodes) + "]}\n")
    return at(name)


# --- comparing ----------------------------------------------------------------------------------------------------------

def run(model_file, x, back=True):
    path = model_file + ".onnx"
    plait("export", "--model-file", model_file, "--format", "onnx", "--out", path)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    feed = session.get_inputs()[0]
    assert feed.name == "x", feed.name
    width = feed.shape[1]
    if x.shape[1] < width:
        x = np.pad(x, ((0, 0), (0, width - x.shape[1])))
    x = np.ascontiguousarray(x[:, :width])
    got = dict(zip(names, session.run(names, {"x": x})))
    if back:
        comes_back(path, x, got)
    return got, names


TYPES = {"float32": 0, "float64": 1, "int64": 2}


def comes_back(path, x, want):
    """Plait reads the file that it wrote, and computes the same numbers. A graph has no outputs of texts."""
    folder, names = at("back"), [name for name, value in want.items() if value.dtype.name in TYPES]
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    shutil.copy(path, os.path.join(folder, "model.onnx"))
    x.tofile(os.path.join(folder, "in0.bin"))
    for name, text in (("inputs.txt", " ".join(str(n) for n in ("x", TYPES[x.dtype.name], x.ndim, *x.shape))),
                       ("outputs.txt", "\n".join(names))):
        with open(os.path.join(folder, name), "w") as file:
            print(text, file=file)
    subprocess.run([RUN, folder], check=True)
    if os.path.exists(os.path.join(folder, "error.txt")):
        raise AssertionError("not read back: " + open(os.path.join(folder, "error.txt")).read())
    for i, name in enumerate(names):
        got = np.fromfile(os.path.join(folder, f"out{i}.bin"), want[name].dtype)
        assert got.size == want[name].size and np.allclose(got, want[name].ravel(), rtol=1e-5, atol=1e-5), f"read back, {name} differs"


def predicted(model_file, data, *options):
    return [line.split() for line in plait("predict", "--model-file", model_file, "--data", data, *options).splitlines()]


def check(name, data, x, *options, proba=True, outputs=("probabilities", "label"), extra=(), back=True):
    model = at(name + ".model")
    plait("train", "--data", data, "--out", model, "--quiet", "--seed", 1, *options)
    got, names = run(model, x, back)
    assert tuple(names) == outputs, f"outputs {names}"
    lines = predicted(model, data, *extra)
    worst = 0.0
    if proba:
        want = np.array(predicted(model, data, "--proba", *extra), np.float64)
        assert got["probabilities"].shape == want.shape, got["probabilities"].shape
        worst = float(np.abs(got["probabilities"] - want).max())
    if "label" in got:
        labels = [str(v) for v in got["label"].tolist()]
        wrong = sum(int(a) != int(b) if a.lstrip("+-").isdigit() else a != b for a, (b,) in zip(labels, lines))
        assert len(labels) == len(lines) and wrong == 0, f"{wrong} labels differ"
    if "prediction" in got:
        want = np.array(lines, np.float64)
        assert got["prediction"].shape == want.shape, got["prediction"].shape
        worst = float((np.abs(got["prediction"] - want) / (1 + np.abs(want))).max())
    assert worst <= 1e-5, f"differs by {worst}"
    print(f"{name}: {len(lines)} rows, at most {worst:.1e} apart")
    return model


CASES = {}


def case(fn):
    CASES[fn.__name__] = fn
    return fn


@case
def logistic():
    check("logistic", *a9a(), "--epochs", 5)
    check("logistic3", *csv("three.csv", *blobs(3)), "--epochs", 5)
    x, k = blobs(2)
    check("texts", *csv("texts.csv", x, np.where(k == 1, "yes", "no")), "--epochs", 5)
    check("nointercept", *csv("two.csv", x, k), "--epochs", 5, "--no-intercept")
    check("lbfgs", *csv("two.csv", x, k), "--optimizer", "lbfgs")


@case
def digits():
    table = np.loadtxt(gzip.open(os.path.join(DATA, "digits/digits.csv.gz"), "rt"), delimiter=",")
    check("digits", *csv("digits.csv", table[:300, :-1], table[:300, -1].astype(int)), "--epochs", 3)


@case
def hinge():
    for classes in (2, 3):
        check(f"hinge{classes}", *csv("hinge.csv", *blobs(classes)), "--model", "hinge", "--epochs", 5, proba=False,
              outputs=("scores", "label"))


@case
def bayes():
    for kind in ("multinomial", "complement", "bernoulli"):
        check("bayes " + kind, *a9a(), "--model", "bayes", "--events-model", kind)
    table = np.loadtxt(gzip.open(os.path.join(DATA, "digits/digits.csv.gz"), "rt"), delimiter=",")
    check("bayes counts", *csv("digits.csv", table[:300, :-1], table[:300, -1].astype(int)), "--model", "bayes")
    for classes in (2, 3):
        x, k = blobs(classes)
        check(f"bayes gaussian, {classes} classes", *csv("blobs.csv", x, k), "--model", "bayes", "--events-model", "gaussian")
        check("bayes far from 0", *csv("far.csv", x + np.float32(30000), k), "--model", "bayes", "--events-model", "gaussian")


def transformed(name, data, x, output, *options, outputs):
    """Compares the output of a model that transforms rows with what plait transform prints."""
    model = at(name.replace(" ", "") + ".model")
    plait("train", "--data", data, "--label", "-1", "--out", model, "--quiet", "--seed", 1, *options)
    got, names = run(model, x)
    assert tuple(names) == outputs, f"outputs {names}"
    want = np.array([line.split() for line in plait("transform", "--model-file", model, "--data", data).splitlines()], np.float64)
    assert got[output].shape == want.shape, got[output].shape
    worst = float((np.abs(got[output] - want) / (1 + np.abs(want).max())).max())
    assert worst <= 1e-5, f"differs by {worst}"
    print(f"{name}: {len(want)} rows, at most {worst:.1e} apart")
    return model, got


def digit_rows():
    table = np.loadtxt(gzip.open(os.path.join(DATA, "digits/digits.csv.gz"), "rt"), delimiter=",")
    return csv("digits.csv", table[:300, :-1], table[:300, -1].astype(int))


@case
def pca():
    for name, options in (("exact", ()), ("whitened", ("--whiten",)), ("randomised", ("--pca-solver", "randomised"))):
        transformed("pca " + name, *digit_rows(), "transformed", "--model", "pca", "--components", 5, *options,
                    outputs=("transformed",))
    x, k = blobs(3)
    transformed("pca far from 0", *csv("far.csv", x + np.float32(30000), k), "transformed", "--model", "pca", "--components", 2,
                outputs=("transformed",))


@case
def kmeans():
    for name, options in (("passes", ()), ("mini-batches", ("--batch", 50))):
        data, x = digit_rows()
        model, got = transformed("kmeans " + name, data, x, "distances", "--model", "kmeans", "--clusters", 7, *options,
                                 outputs=("label", "distances"))
        want = [int(line) for (line,) in predicted(model, data)]
        assert got["label"].tolist() == want, "other clusters"
    x, k = blobs(4)
    transformed("kmeans far from 0", *csv("far.csv", x + np.float32(30000), k), "distances", "--model", "kmeans", "--clusters", 4,
                outputs=("label", "distances"))


@case
def regressions():
    for model in ("squared", "huber", "quantile"):
        check(model, *csv("numbers.csv", *numbers()), "--model", model, "--epochs", 5, proba=False, outputs=("prediction",))


@case
def trees():
    """Trees are no graph of Plait's own, so they do not come back. A third of the cells are missing, and 0 is among the cuts."""
    for classes in (2, 3):
        x, k = blobs(classes)
        x[np.random.default_rng(2).random(x.shape) < 1 / 3] = np.nan
        check(f"trees{classes}", *csv("trees.csv", x, k), "--model", "gbdt", "--epochs", 20, "--min-rows", 5, back=False)
        check(f"forest{classes}", *csv("trees.csv", x, k), "--model", "forest", "--epochs", 20, back=False)
    x, y = numbers()
    x = np.round(x)
    check("forest numbers", *csv("numbers.csv", x, y), "--model", "forest", "--loss", "squared", "--epochs", 20,
          proba=False, outputs=("prediction",), back=False)
    for loss in ("squared", "huber", "quantile", "poisson"):
        check(f"trees {loss}", *csv("numbers.csv", x, np.floor(np.abs(y))), "--model", "gbdt", "--loss", loss, "--epochs", 20,
              proba=False, outputs=("prediction",), back=False)


@case
def counts():
    x, y = numbers()
    check("poisson", *csv("counts.csv", x, np.floor(np.abs(y))), "--model", "poisson", "--epochs", 5, proba=False, outputs=("prediction",))


@case
def by_key():
    path, _ = a9a()
    with open(path, "a") as file:
        print("+1 3:1 300000000:1", file=file)
    plait("train", "--data", path, "--epochs", 1, "--out", at("far.model"), "--quiet")
    done = subprocess.run([PLAIT, "export", "--model-file", at("far.model"), "--out", at("far.onnx")], capture_output=True, text=True)
    assert done.returncode == 2 and "by key is refused" in done.stderr and not os.path.exists(at("far.onnx")), done.stderr


@case
def mlp():
    check("mlp3", *csv("three.csv", *blobs(3)), "--model", "mlp", "--layers", "16,8", "--epochs", 5)
    check("mlp2", *csv("two.csv", *blobs(2)), "--model", "mlp", "--layers", "8", "--epochs", 5)
    check("mlpnumbers", *csv("numbers.csv", *numbers()), "--model", "mlp", "--epochs", 20, proba=False, outputs=("prediction",))


@case
def cnn():
    data, x = images()
    check("cnn", data, x, "--model", "cnn", "--layers", "4,6,16", "--epochs", 3, "--label", at("labels"))


@case
def lstm():
    data, x = images()
    check("lstmimages", data, x, "--model", "lstm", "--layers", "8,6", "--epochs", 2, "--label", at("labels"))
    check("lstmfeatures", *csv("three.csv", *blobs(3)), "--model", "lstm", "--layers", "8", "--epochs", 3)


@case
def text():
    """Windows of 8 symbols as numbers; a missing symbol has the number after the last. Step i predicts the symbol that follows it.
    predict's windows overlap by half, so that each character is predicted from at least 4."""
    words = "the cat sat on the mat and the dog on the log. " * 12
    with open(at("prose.txt"), "w") as file:
        file.write(words)
    model, steps = at("text.model"), 8
    plait("train", "--data", at("prose.txt"), "--format", "text", "--window", steps, "--model", "lstm", "--layers", 8, "--epochs", 3,
          "--out", model, "--quiet")
    labels = [line.split("\t", 1)[1] for line in plait("inspect", model).splitlines() if line.startswith("label\t")]
    number = {label: k for k, label in enumerate(labels)}
    before = [number[words[p - 1]] if 0 < p <= len(words) else len(labels) for p in range(-steps, len(words) + steps)]
    want = np.array(predicted(model, at("prose.txt"), "--proba"), np.float64)
    answers = {}
    for lead in (0, steps // 2):
        x = np.array([before[steps + p:2 * steps + p] for p in range(-lead, len(words), steps)], np.int64)
        answers[lead] = run(model, x)[0]["probabilities"].reshape(-1, len(labels))[lead:lead + len(words)]
    late = (np.arange(len(words)) % steps >= steps // 2)[:, None]
    worst = float(np.abs(np.where(late, answers[0], answers[steps // 2]) - want).max())
    assert worst <= 1e-5, f"differs by {worst}"
    print(f"text: {len(words)} characters, at most {worst:.1e} apart")


@case
def own_graph():
    net = graph("net.json", [
        '{"name": "x", "op": "placeholder", "shape": [null, 4]}',
        '{"name": "scale", "op": "constant", "shape": [4], "values": [1, 0.03, 100, 0.002]}',
        '{"name": "w", "op": "variable", "shape": [4, 16], "initial": "he"}',
        '{"name": "scores.b", "op": "variable", "shape": [3]}',
        '{"name": "label", "op": "variable", "shape": [16, 3], "initial": "glorot"}',
        '{"name": "scaled", "op": "mul", "inputs": ["x", "scale"]}',
        '{"name": "p", "op": "matmul", "inputs": ["scaled", "w"]}',
        '{"name": "n", "op": "layer_norm", "inputs": ["p"]}',
        '{"name": "h", "op": "gelu", "inputs": ["n"]}',
        '{"name": "d", "op": "dropout", "inputs": ["h"], "attrs": {"rate": 0.3}}',
        '{"name": "q", "op": "matmul", "inputs": ["d", "label"]}',
        '{"name": "scores", "op": "add", "inputs": ["q", "scores.b"]}'])
    data, x = csv("three.csv", *blobs(3))
    model = check("graph", data, x, "--graph", net, "--epochs", 5)
    # an ONNX graph is fitted likewise: its initialisers are the first values, and none is moved by no epoch's steps of 0
    from onnx import TensorProto, helper, numpy_helper
    random = np.random.default_rng(3)
    first = random.normal(0, 0.3, (4, 3)).astype(np.float32)
    nodes = [helper.make_node("Flatten", ["input"], ["flat"]), helper.make_node("Gemm", ["flat", "w"], ["out"])]
    outer = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["n", 2, 2])],
                              [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["n", 3])], [numpy_helper.from_array(first, "w")])
    onnx.save(helper.make_model(outer, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), at("outer.onnx"))
    check("fromonnx", data, x, "--graph", at("outer.onnx"), "--epochs", 2)
    model = check("still", data, x, "--graph", at("outer.onnx"), "--epochs", 1, "--learning-rate", 1e-30)
    with open(model, "rb") as file:
        assert first.tobytes() in file.read(), "the first values are not the file's"


def main():
    failed = 0
    for name in WANTED or CASES:
        try:
            CASES[name]()
        except (AssertionError, RuntimeError, onnx.checker.ValidationError) as error:
            failed += 1
            print(f"{name} FAILED: {error}")
    sys.exit(1 if failed else 0)


main()
