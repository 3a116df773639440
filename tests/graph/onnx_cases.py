"""Cases that the random graphs of other tests do not reach: infinities and NaN in every op, lengths that a run decides, bytes as
input, and attributes that models give although they have their defaults. onnxruntime and Plait run each case; Plait also runs it
after it was written back.

usage: onnx_cases.py ONNX_RUN FOLDER"""
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

RUN, FOLDER = sys.argv[1:3]
TYPES = {"float32": (0, 1), "float64": (1, 11), "int64": (2, 7), "uint8": (3, 2), "int32": (5, 6), "bool": (6, 9)}
CASES = []
random = np.random.default_rng(5)


def floats(*shape, low=-2.0, high=2.0):
    return random.uniform(low, high, shape).astype(np.float32)


def case(name, nodes, feeds, initial=(), free=(), outputs=("y",), opset=19, change=None, back=True):
    """free: the (input, axis) whose length a run decides. change: changes the model. back: it can be written back."""
    shapes = {n: [None if (n, i) in free else d for i, d in enumerate(a.shape)] for n, a in feeds.items()}
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info(n, TYPES[a.dtype.name][1], shapes[n]) for n, a in feeds.items()],
        [helper.make_empty_tensor_value_info(n) for n in outputs], [numpy_helper.from_array(a, n) for n, a in initial])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    model = onnx.shape_inference.infer_shapes(model)
    if change is not None:
        change(model)
    CASES.append((name, model, feeds, outputs, back))


def node(op, inputs, outputs="y", **attrs):
    return helper.make_node(op, inputs.split(), outputs.split(), **attrs)


def ints(*values):
    return np.array(values, np.int64)


# --- numbers that are none ------------------------------------------------------------------------------------------------------

ODD = np.array([[np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e30, 88.0, -88.0, 1e-30, 1.0, -1.0, 0.5, -2.5]], np.float32)
for op in ("Abs Neg Sign Sqrt Exp Log Reciprocal Erf Sigmoid Tanh Relu Softplus LeakyRelu Elu Selu HardSigmoid HardSwish "
           "Softmax LogSoftmax").split():
    case(f"odd {op}", [node(op, "x")], {"x": ODD})
for op in ("Max", "Min", "Add", "Mul", "Sub", "Div", "Less", "LessOrEqual", "Equal", "Greater", "GreaterOrEqual"):
    case(f"odd {op}", [node(op, "x z")], {"x": ODD, "z": ODD.T.copy()})
case("odd Pow", [node("Pow", "x z")], {"x": ODD, "z": np.array([[2], [0.5], [-1], [0], [np.nan], [np.inf]], np.float32)})
case("odd PRelu", [node("PRelu", "x s")], {"x": ODD}, [("s", np.float32([0.25]))])
case("odd Clip", [node("Clip", "x low high")], {"x": ODD}, [("low", np.float32(-1)), ("high", np.float32(2))])
ROWS = np.array([[1, 2, 3], [np.inf, 1, 2], [-np.inf, 1, 2], [-np.inf] * 3, [np.inf, -np.inf, 0], [np.inf] * 3,
                 [np.nan, 1, 2]], np.float32)
for op in ("Sum", "Mean", "Max", "Min", "SumSquare", "L1", "L2", "LogSum", "LogSumExp"):
    for keep in (0, 1):
        case(f"odd Reduce{op} {keep}", [node(f"Reduce{op}", "x axes", keepdims=keep)], {"x": ROWS}, [("axes", ints(1))])
    case(f"Reduce{op} of no axes", [node(f"Reduce{op}", "x", noop_with_empty_axes=1)], {"x": floats(2, 3, low=0.5)})
    case(f"Reduce{op} of an empty list", [node(f"Reduce{op}", "x axes", noop_with_empty_axes=1)], {"x": floats(2, 3, low=-2)},
         [("axes", ints())])

# --- lengths that a run decides -------------------------------------------------------------------------------------------------

X = floats(2, 5, 3)
ANY = {("x", 0), ("x", 1), ("x", 2)}
for at in (-1, 2):
    case(f"Gather {at}", [node("Gather", "x i", axis=1)], {"x": X}, [("i", np.array(at, np.int64))], ANY)
case("Gather of all", [node("Gather", "x i", axis=2)], {"x": X, "i": ints(-3, 2, -1, 0)}, free=ANY | {("i", 0)})
case("GatherElements", [node("GatherElements", "x i", axis=1)], {"x": X, "i": random.integers(-5, 5, (2, 4, 3))}, free=ANY)
case("ScatterElements", [node("ScatterElements", "x i v", axis=1)], {"x": X, "v": floats(2, 2, 3)},
     [("i", np.stack([np.array([[-1] * 3, [1] * 3])] * 2).astype(np.int64))], ANY)
case("ScatterND", [node("ScatterND", "x i v")], {"x": X, "v": floats(1, 5, 3)}, [("i", ints([-1]))], ANY)
for start, end, step in ((-1, 2 ** 62, 1), (-2, -1, 1), (0, -1, 2), (-1, -2 ** 62, -1)):
    case(f"Slice {start} {end} {step}", [node("Slice", "x s e a t")], {"x": X},
         [("s", ints(start)), ("e", ints(end)), ("a", ints(1)), ("t", ints(step))], ANY)
case("Shape", [node("Shape", "x")], {"x": X}, free={("x", 0)})
case("Shape of some", [node("Shape", "x", start=-2, end=3)], {"x": X}, free={("x", 1)})
case("Expand", [node("Shape", "x", "s"), node("Expand", "z s")], {"x": X, "z": floats(5, 1)}, free={("x", 0)})
case("Expand to a shape", [node("Expand", "x s")], {"x": floats(3, 1)}, [("s", ints(2, 1, 4))])
case("ConstantOfShape", [node("Shape", "x", "s"), node("ConstantOfShape", "s", value=numpy_helper.from_array(ints(7)))], {"x": X},
     free={("x", 0)})
case("Reshape alike", [node("Shape", "x", "s"), node("Reshape", "z s")], {"x": X, "z": floats(30)}, free={("x", 0)})

# --- bytes ----------------------------------------------------------------------------------------------------------------------

BYTES = random.integers(0, 256, (2, 3, 4)).astype(np.uint8)
for to in (TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL):
    case(f"bytes to {to}", [node("Cast", "x", to=to)], {"x": BYTES}, free={("x", 0)})
case("bytes moved", [node("Transpose", "x", "t", perm=[0, 2, 1]), node("Cast", "t", "f", to=TensorProto.FLOAT), node("Mul", "f k")],
     {"x": BYTES}, [("k", np.float32(1 / 255))])
case("bytes known", [node("Cast", "b", "c", to=TensorProto.FLOAT), node("Add", "x c")], {"x": floats(4)},
     [("b", np.array([0, 1, 128, 255], np.uint8))])

# --- images ---------------------------------------------------------------------------------------------------------------------

IMAGE = floats(1, 2, 5, 7)
for mode in ("reflect", "edge", "wrap"):
    for free in (set(), {("x", 2), ("x", 3)}):
        case(f"Pad {mode} {len(free)}", [node("Pad", "x p", mode=mode)], {"x": IMAGE}, [("p", ints(0, 0, 2, 1, 0, 0, 3, 4))], free,
             back=mode != "wrap")
case("Pad of axes", [node("Pad", "x p  a".replace("  ", " v "), mode="constant")], {"x": IMAGE},
     [("p", ints(1, -2)), ("v", np.float32(0.5)), ("a", ints(-1))])
PLACES = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners")
for mode in ("nearest", "linear", "cubic"):
    for places in PLACES:
        for free in (set(), {("x", 2), ("x", 3)}):
            # with align_corners, onnx's tests take scale times length, and onnxruntime takes the integer part of that
            for tall, wide in ((2.0, 2.0), (0.6, 1.5), (1.7, 0.5)) if places != "align_corners" else ((2.0, 3.0), (0.6, 1.0)):
                case(f"Resize {mode} {places} {tall} {wide} {len(free)}",
                     [node("Resize", "x n k", mode=mode, coordinate_transformation_mode=places)], {"x": IMAGE},
                     [("n", np.float32([])), ("k", np.float32([1, 1, tall, wide]))], free)
            case(f"Resize {mode} {places} to a size {len(free)}",
                 [node("Resize", "x n n s", mode=mode, coordinate_transformation_mode=places)], {"x": IMAGE},
                 [("n", np.float32([])), ("s", ints(1, 2, 8, 3))], free)
for rounds in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
    case(f"Resize {rounds}", [node("Resize", "x n k", mode="nearest", nearest_mode=rounds)], {"x": IMAGE},
         [("n", np.float32([])), ("k", np.float32([1, 1, 2, 0.4]))])
case("Resize of an axis", [node("Resize", "x n k", mode="linear", axes=[3])], {"x": IMAGE},
     [("n", np.float32([])), ("k", np.float32([3]))])
case("Resize excluded", [node("Resize", "x n k", mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5)], {"x": IMAGE},
     [("n", np.float32([])), ("k", np.float32([1, 1, 2, 2]))])

# --- what goes without saying ---------------------------------------------------------------------------------------------------

RECURRENT = {"x": floats(4, 2, 3)}
for op, gates, usual in (("LSTM", 4, ["Sigmoid", "Tanh", "Tanh"]), ("GRU", 3, ["Sigmoid", "Tanh"])):
    more = {"linear_before_reset": 1} if op == "GRU" else {}
    for way, n in (("forward", 1), ("bidirectional", 2)):
        case(f"{op} {way} says its activations",
             [node(op, "x w r", hidden_size=5, direction=way, activations=usual * n, **more)], RECURRENT,
             [("w", floats(n, gates * 5, 3)), ("r", floats(n, gates * 5, 5))])


for size in (1, 3, 5):
    case(f"LRN {size}", [node("LRN", "x", size=size, alpha=0.5, beta=0.6, bias=1.5)], {"x": floats(2, 6, 3, 2)}, free={("x", 1)})
case("Dropout with its mask", [node("Dropout", "x", "y m")], {"x": floats(2, 3)}, outputs=("y", "m"))
case("outputs that nobody wants", [node("MaxPool", "x", "y i", kernel_shape=[2, 2])], {"x": IMAGE})


def twice(model):
    model.opset_import.append(helper.make_opsetid("ai.onnx", 19))


case("opset twice", [node("Relu", "x")], {"x": X}, change=twice)


# --- running --------------------------------------------------------------------------------------------------------------------

def session_of(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def write(folder, model, feeds, outputs):
    os.makedirs(folder)
    onnx.save(model, os.path.join(folder, "model.onnx"))
    with open(os.path.join(folder, "inputs.txt"), "w") as file:
        for i, (name, array) in enumerate(feeds.items()):
            print(name, TYPES[array.dtype.name][0], array.ndim, *array.shape, file=file)
            array.tofile(os.path.join(folder, f"in{i}.bin"))
    with open(os.path.join(folder, "outputs.txt"), "w") as file:
        print(*outputs, sep="\n", file=file)


def differs(folder, want, back, feeds, outputs):
    """Why the case fails; None: it does not."""
    for name in ("error.txt", "back.txt"):
        if os.path.exists(os.path.join(folder, name)) and (name == "error.txt" or back):
            return open(os.path.join(folder, name)).read()
    again = session_of(os.path.join(folder, "back.onnx")).run([f"out{i}" for i in range(len(outputs))], feeds) if back else want
    for i, (a, c) in enumerate(zip(want, again)):
        b = np.fromfile(os.path.join(folder, f"out{i}.bin"), a.dtype)
        shape = [int(word) for word in open(os.path.join(folder, f"out{i}.txt")).read().split()]
        if shape != [TYPES[a.dtype.name][0], *a.shape]:
            return f"type and shape {shape}, expected {a.dtype} {a.shape}"
        for what, got in (("read", b.reshape(a.shape)), ("written back", c)):
            if got.shape != a.shape or not np.allclose(got, a, rtol=1e-5, atol=1e-5, equal_nan=True):
                return f"{what}: {got.ravel()[:14]}, expected {a.ravel()[:14]}"
    return None


def main():
    folders, wants, wrong = [], [], 0
    for i, (_, model, feeds, outputs, _) in enumerate(CASES):
        plain = onnx.ModelProto()
        plain.CopyFrom(model)
        del plain.opset_import[1:]
        wants.append(session_of(plain.SerializeToString()).run(list(outputs), feeds))
        folders.append(os.path.join(FOLDER, str(i)))
        write(folders[i], model, feeds, outputs)
    subprocess.run([RUN] + folders, check=True)
    for folder, want, (name, _, feeds, outputs, back) in zip(folders, wants, CASES):
        why = differs(folder, want, back, feeds, outputs)
        if why is not None:
            wrong += 1
            print(f"{name} ({folder}): {why}")
    print(f"{len(CASES)} cases, {wrong} differ")
    sys.exit(1 if wrong else 0)


main()
