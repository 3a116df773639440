"""Runs ONNX's own node tests (onnx.backend.test) in Plait: each gives the values that onnx expects, or is refused by name.

usage: onnx_nodes.py ONNX_RUN FOLDER [--short] [--names]

A test is one node, or the function by which the standard defines an op, at the opset in which its ops were last changed.
Here it runs at each opset from 17 to 23 where it has the same meaning: opsets in which all its ops have the definition of
the test's own opset, or one that differs only in types (onnx.checker and onnx's reference evaluator must accept it, too),
and opsets to which onnx.version_converter converts it.

--short   only tests of ops that Plait reads, at one opset each, without those that take onnx seconds to make
--names   print the names of the tests that are refused"""
import collections
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy as np
import onnx
from onnx import checker, defs, helper, numpy_helper, version_converter
from onnx.backend.test.case import node as node_cases
from onnx.reference import ReferenceEvaluator

OPSETS = range(17, 24)
IR = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11}
TYPES = {"float32": 0, "float64": 1, "int64": 2, "uint8": 3, "bfloat16": 4, "int32": 5, "bool": 6}
SLOW = {"averagepool", "lppool", "maxpool"}  # onnx needs seconds to make each
MOST = 8                                     # inputs and outputs that onnx_run takes
# Their values are random, and Plait draws its own: onnx's runners leave them out, too.
CHANCE = re.compile("^test_(bernoulli|training_dropout)")


def collect(short=False):
    for module in pkgutil.walk_packages(node_cases.__path__, node_cases.__name__ + "."):
        if not (short and module.name.rsplit(".", 1)[1] in SLOW):
            importlib.import_module(module.name)
    return [case for case in node_cases._NodeTestCases if not CHANCE.match(case.name)]


def ops_of(run):
    """The ops that Plait says it reads."""
    return set(subprocess.run([run, "--ops"], check=True, capture_output=True, text=True).stdout.split())


def arrays(values):
    """Turns protocol buffers and NumPy's scalars into arrays; sequences and the like do not change."""
    made = [numpy_helper.to_array(v) if isinstance(v, onnx.TensorProto) else v for v in values]
    return [np.asarray(v) if isinstance(v, np.generic) else v for v in made]


# --- at other opsets ----------------------------------------------------------------------------------------------------------

def signature(schema):
    return (sorted((a.name, a.type, a.required, str(a.default_value)) for a in schema.attributes.values()),
            [(i.name, i.option) for i in schema.inputs], [(o.name, o.option) for o in schema.outputs])


def changed(ops):
    """Ops whose definition changes from opset 21 to 23 in more than its types, although Plait reads them in one way."""
    return [op for op in sorted(ops) if signature(defs.get_schema(op, 21)) != signature(defs.get_schema(op, OPSETS[-1]))]


def schema_of(node, opset):
    try:
        return defs.get_schema(node.op_type, opset, "")
    except defs.SchemaError:
        return None


def stamped(model, opset):
    new = onnx.ModelProto()
    new.CopyFrom(model)
    del new.opset_import[:]
    new.opset_import.append(helper.make_opsetid("", opset))
    new.ir_version = IR[opset]
    return new


def same(a, b, case):
    if not isinstance(a, np.ndarray) and not np.isscalar(a):
        return False
    a = np.asarray(a)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.kind in "OU":
        return bool((a == b).all())
    return bool(np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=case.rtol, atol=case.atol, equal_nan=True))


def refers(model, case):
    """Does onnx's reference evaluator give the values that the test expects?"""
    inputs, outputs = case.data_sets[0]
    try:
        feeds = {v.name: x for v, x in zip(model.graph.input, arrays(inputs))}
        return all(same(a, b, case) for a, b in zip(ReferenceEvaluator(model).run(None, feeds), arrays(outputs)))
    except Exception:
        return False


def checked(model):
    try:
        checker.check_model(model, full_check=True)
        return True
    except Exception:
        return False


def at_opset(case, opset):
    """The test's model at this opset; None: it has another meaning there, or no meaning."""
    model = case.model
    own = model.opset_import[0].version
    pairs = [(schema_of(n, own), schema_of(n, opset)) for n in model.graph.node]
    if any(a is None or b is None for a, b in pairs):
        return None
    if all(a.since_version == b.since_version for a, b in pairs):
        return stamped(model, opset)
    if all(signature(a) == signature(b) for a, b in pairs):
        new = stamped(model, opset)
        return new if checked(new) and refers(new, case) else None
    try:
        new = version_converter.convert_version(model, opset)
    except Exception:
        return None
    new.ir_version = IR[opset]
    return new if checked(new) and refers(new, case) else None


def models_of(case, short):
    """Pairs (opset, model) of the test; if it has no meaning in 17 to 23, its own opset and model."""
    model = case.model
    domains = {o.domain for o in model.opset_import}
    own = model.opset_import[0].version
    if domains != {""} or any(n.domain for n in model.graph.node):
        return [(own, model)]
    if short and own in IR:
        return [(own, stamped(model, own))]
    found = []
    for opset in OPSETS:
        new = at_opset(case, opset)
        if new is not None:
            found.append((opset, new))
            if short:
                break
    return found or [(own, model)]


# --- in a folder ----------------------------------------------------------------------------------------------------------------

def with_constants(model, inputs):
    """Makes all inputs but the first initialisers, because Plait needs shapes, axes and the like at import. None: there are none."""
    given = [v.name for v in model.graph.input]
    if len(given) < 2 or not all(isinstance(x, np.ndarray) for x in inputs):
        return None
    new = onnx.ModelProto()
    new.CopyFrom(model)
    for name, x in list(zip(given, inputs))[1:]:
        new.graph.initializer.append(numpy_helper.from_array(x, name))
    del new.graph.input[1:]
    return new


def write(folder, model, inputs):
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    with open(os.path.join(folder, "model.onnx"), "wb") as file:
        file.write(model.SerializeToString())
    with open(os.path.join(folder, "inputs.txt"), "w") as file:
        for i, (value, x) in enumerate(list(zip(model.graph.input, inputs))[:MOST]):
            if isinstance(x, np.ndarray) and x.dtype.name in TYPES:
                print(value.name, TYPES[x.dtype.name], x.ndim, *x.shape, file=file)
                x.tofile(os.path.join(folder, f"in{i}.bin"))
    with open(os.path.join(folder, "outputs.txt"), "w") as file:
        print(*[v.name for v in model.graph.output][:MOST], sep="\n", file=file)


def text_of(folder, name):
    path = os.path.join(folder, name)
    return open(path, errors="replace").read() if os.path.exists(path) else ""


def got(folder, i):
    """Output i, with the type and shape that onnx_run writes."""
    said = [int(word) for word in text_of(folder, f"out{i}.txt").split()]
    if not said:
        return None
    name = {number: name for name, number in TYPES.items()}[said[0]]
    dtype = np.dtype(name) if name != "bfloat16" else __import__("ml_dtypes").bfloat16
    return np.fromfile(os.path.join(folder, f"out{i}.bin"), dtype).reshape(said[1:])


class Trial:
    """One model of a test. After run, how is "right", "refused", "wrong" or "crashed", and why has the reason."""

    def __init__(self, case, opset, model, folder):
        self.case, self.opset, self.model, self.folder = case, opset, model, folder
        self.inputs, self.outputs = (arrays(x) for x in case.data_sets[0])
        self.how = self.why = ""
        self.constants = False

    def write(self):
        write(self.folder, self.model, self.inputs[:1] if self.constants else self.inputs)

    def judge(self, died):
        error = text_of(self.folder, "error.txt")
        self.why = re.sub(r"^.*?model\.onnx: ", "", error)
        if died:
            self.how = "crashed"
        elif error:
            self.how = "refused"
        else:
            pairs = [(got(self.folder, i), want) for i, want in enumerate(self.outputs[:MOST])]
            bad = [(a, b) for a, b in pairs if a is None or not same(a, b, self.case)]
            self.how = "wrong" if bad else "right"
            for a, b in bad[:1]:
                self.why = f"{None if a is None else (a.dtype.name, a.shape, a.ravel()[:5])}, expected {(b.dtype.name, b.shape, b.ravel()[:5])}"


def run_all(run, trials, batch=100):
    for trial in trials:
        trial.write()
    for at in range(0, len(trials), batch):
        part = trials[at:at + batch]
        died = subprocess.run([run] + [t.folder for t in part], capture_output=True).returncode != 0
        for trial in part:
            if died:  # which of them?
                trial.write()
                trial.judge(subprocess.run([run, trial.folder], capture_output=True).returncode != 0)
            else:
                trial.judge(False)


def again(trial):
    """Runs a model again that was refused because an input is computed, with the input known."""
    if trial.how != "refused" or ("computed" not in trial.why and "constant" not in trial.why):
        return False
    model = with_constants(trial.model, trial.inputs)
    if model is None:
        return False
    trial.model, trial.constants = model, True
    return True


def run_trials(run, folder, short):
    ops = ops_of(run)
    trials = []
    for case in collect(short):
        if short and not all(n.op_type in ops and n.domain == "" for n in case.model.graph.node):
            continue
        trials += [Trial(case, opset, model, os.path.join(folder, str(opset), case.name)) for opset, model in models_of(case, short)]
    run_all(run, trials)
    run_all(run, [trial for trial in trials if again(trial)])
    return trials, ops


# --- the report -----------------------------------------------------------------------------------------------------------------

def reason(trial, ops):
    """A refusal in few words, without the names of the test."""
    unknown = sorted({n.op_type for n in trial.model.graph.node if n.op_type not in ops or n.domain})
    if unknown:
        return "an op that Plait does not read"
    why = re.sub(r"^\w+ '[^']*': ", "", trial.why)
    kinds = [(r"of ONNX's type|of strings|no tensor", "a type that Plait does not compute with"),
             (r"is computed", "an input that a run computes and Plait wants to know"),
             (r"no shape", "an input without a shape"),
             (r"older|newer", "an opset out of 17 to 23")]
    for pattern, words in kinds:
        if re.search(pattern, why):
            return words
    return re.sub(r"; its inputs are .*", "", re.sub(r"'[^']*'", "'..'", why))[:110]


def report(trials, ops, names):
    count = collections.Counter(t.how for t in trials)
    known = sum(t.how == "right" and t.constants for t in trials)
    print(f"{len({t.case.name for t in trials})} tests, {len(trials)} with their opsets: {count['right']} right ({known} of them with "
          f"inputs that Plait wants to know), {count['refused']} refused, {count['wrong']} wrong, {count['crashed']} crashed")
    for opset in OPSETS:
        own = collections.Counter(t.how for t in trials if t.opset == opset)
        print(f"  opset {opset}: {sum(own.values())} tests, {own['right']} right, {own['refused']} refused, {own['wrong']} wrong, "
              f"{own['crashed']} crashed")
    groups = collections.defaultdict(list)
    for t in trials:
        if t.how == "refused":
            groups[reason(t, ops)].append(t)
    print("refused:")
    for text, group in sorted(groups.items(), key=lambda item: -len(item[1])):
        tests = sorted({t.case.name for t in group})
        print(f"  {len(group):5}  {text} ({len(tests)} tests: {', '.join(tests if names else tests[:2])}{'' if names or len(tests) < 3 else ', ..'})")
    for t in trials:
        if t.how in ("wrong", "crashed"):
            print(f"{t.how}: {t.case.name} at opset {t.opset}: {t.why}")
        elif t.how == "refused" and not t.why.strip():
            count["wrong"] += 1
            print(f"wrong: {t.case.name} at opset {t.opset} is refused without a word")
    for op in changed(ops):
        count["wrong"] += 1
        print(f"changed: {op} is another op at opset {OPSETS[-1]} than at 21")
    return count["wrong"] + count["crashed"] == 0


def main():
    run, folder = sys.argv[1:3]
    trials, ops = run_trials(run, folder, "--short" in sys.argv)
    sys.exit(0 if report(trials, ops, "--names" in sys.argv) else 1)


if __name__ == "__main__":
    main()
