"""ONNX files that Plait must refuse before anything runs, with an error that names the reason.

usage: onnx_bad.py ONNX_RUN FOLDER"""
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, external_data_helper, helper, numpy_helper

RUN, FOLDER = sys.argv[1:]
F = TensorProto.FLOAT


def model(nodes, initial=(), inputs=None, outputs=None, opset=17, ir=8):
    inputs = inputs or [helper.make_tensor_value_info("x", F, [None, 4])]
    outputs = outputs or [helper.make_tensor_value_info("y", F, None)]
    graph = helper.make_graph(nodes, "bad", inputs, outputs, list(initial))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)


def node(op, inputs=("x",), outputs=("y",), **attrs):
    return helper.make_node(op, list(inputs), list(outputs), name=f"the {op}", **attrs)


def array(shape, name="w", dtype=np.float32):
    return numpy_helper.from_array(np.ones(shape, dtype), name)


def external():
    m = model([node("MatMul", ["x", "w"])], [array((4, 3))])
    tensor = m.graph.initializer[0]
    external_data_helper.set_external_data(tensor, location="w.bin")
    tensor.ClearField("raw_data")
    return m


def cut_short():
    m = model([node("MatMul", ["x", "w"])], [array((4, 3))])
    m.graph.initializer[0].raw_data = b"\0" * 47
    return m


def huge(*dims):
    m = model([node("MatMul", ["x", "w"])], [array((4, 3))])
    del m.graph.initializer[0].dims[:]
    m.graph.initializer[0].dims.extend(dims)
    return m


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def image(op, **attrs):
    return model([node(op, ["x", "w"] if op == "Conv" else ["x"], **attrs)], [array((1, 1, 3, 3))] if op == "Conv" else [],
                 inputs=[helper.make_tensor_value_info("x", F, [1, 1, 5, 5])])


def twice():
    m = model([node("Softmax", axis=0)])
    m.graph.node[0].attribute.append(helper.make_attribute("axis", 1))
    return m


def loss(how):
    return model([node("SoftmaxCrossEntropyLoss", ["x", "i"], reduction=how)], [ints("i", 0, 1)],
                 inputs=[helper.make_tensor_value_info("x", F, [2, 4])])


def resize(scales=(1, 2), **attrs):
    return model([node("Resize", ["x", "", "k"], **attrs)], [numpy_helper.from_array(np.array(scales, np.float32), "k")])


def texts(op):
    words = helper.make_tensor("t", TensorProto.STRING, [2], [b"no", b"yes"])
    return model([node(op, ["t", "t"], axis=0)], [words], outputs=[helper.make_tensor_value_info("y", TensorProto.STRING, [4])])


def two_opsets():
    m = model([node("Relu")])
    m.opset_import.append(helper.make_opsetid("ai.onnx", 18))
    return m


relu = node("Relu")
named = helper.make_tensor_value_info
CASES = [
    (model([node("Relux")]), ["'Relu'", "the Relux"]),
    (model([node("Loop", body=model([relu]).graph)]), ["Loop", "'body'"]),
    (model([helper.make_node("Relu", ["x"], ["y"], domain="com.example")]), ["com.example"]),
    (external(), ["'w'", "another file", "refused"]),
    (model([relu], opset=24), ["opset 24", "newer"]),
    (model([relu], ir=12), ["IR 12", "newer"]),
    (model([relu], opset=16), ["opset 16", "older", "version_converter"]),
    (model([node("Relu", ["b"], ["a"]), node("Tanh", ["a"], ["b"]), node("Add", ["a", "x"])]), ["cycle", "'a'", "'b'"]),
    (model([node("MatMul", ["x", "w"])], [array((5, 3))]), ["the MatMul", "placeholder 'x' f32[?, 4]", "variable 'w' f32[5, 3]"]),
    (model([node("Add", ["x", "w"])], [array((4,), dtype=np.float64)]), ["the Add", "f64", "f32"]),
    (model([node("Relu", ["z"])]), ["'z'", "the Relu"]),
    (model([node("Relu"), node("Tanh")]), ["two values named 'y'"]),
    (model([relu], outputs=[named("q", F, None)]), ["output", "'q'"]),
    (model([relu], outputs=[named("y", F, [None, 5])]), ["output 'y'", "f32[?, 5]", "f32[?, 4]"]),
    (cut_short(), ["'w'", "47 bytes", "48"]),
    (huge(2 ** 40, 2 ** 40), ["'w'", "larger than any array"]),
    (huge(-1, 3), ["'w'", "length of -1"]),
    (huge(*[1] * 9), ["'w'", "9 axes"]),
    (model([node("MatMul", ["x", "w"])], [array((4, 3), dtype=np.float16)]), ["'w'", "type 10"]),
    (model([node("Reshape", ["x", "s"])], inputs=[named("x", F, [None, 4]), named("s", TensorProto.INT64, [2])]), ["the Reshape", "computed"]),
    (model([node("GRU", ["x", "w", "r"], hidden_size=1)], [array((1, 3, 4)), array((1, 3, 1), "r")],
           inputs=[named("x", F, [3, 2, 4])]), ["linear_before_reset"]),
    (model([node("MaxPool", kernel_shape=[2, 2], ceil_mode=1)], inputs=[named("x", F, [1, 1, 5, 5])]), ["ceil_mode"]),
    (model([node("Pad", ["x", "p"], mode="mirror")], [numpy_helper.from_array(np.ones(4, np.int64), "p")]), ["'mirror'", "reflect"]),
    (model([node("Pad", ["x", "p"], mode="edge")], [ints("p", 0, -1, 0, 0)]), ["the Pad", "pads below 0"]),
    (resize(antialias=1), ["the Resize", "antialias is refused"]),
    (resize(coordinate_transformation_mode="tf_crop_and_resize"), ["tf_crop_and_resize is refused"]),
    (resize(coordinate_transformation_mode="half_pixels"), ["'half_pixels'", "half_pixel"]),
    (resize(exclude_outside=1), ["exclude_outside is refused"]),
    (resize(scales=(1, -2)), ["a scale of -2"]),
    (resize(scales=(1, 2, 3)), ["3 scales for 2 axes"]),
    (model([node("Resize", ["x"])]), ["either scales or sizes"]),
    (model([node("Squeeze")]), ["the Squeeze", "length of axis 0", "give it axes"]),
    (texts("Concat"), ["the Concat", "strings"]),
    (two_opsets(), ["two opsets", "17", "18"]),
    (model([node("Gather", ["x", "i"], axis=7)], [numpy_helper.from_array(np.zeros(1, np.int64), "i")]), ["axis 7 of 2"]),
    (model([relu], inputs=[named("x", TensorProto.STRING, [None])]), ["'x'", "strings"]),
    (onnx.ModelProto(), ["no graph"]),
    # attributes that are unknown, or of another kind, must not be ignored
    (model([node("Softmax", axis=1.0)]), ["the Softmax", "'axis' is a float", "an integer"]),
    (model([node("Elu", alpha=1)]), ["the Elu", "'alpha' is an integer", "a float"]),
    (model([node("Transpose", perm=1)]), ["'perm' is an integer", "integers"]),
    (model([node("Softmax", axes=1)]), ["unknown attribute 'axes'", "'axis'"]),
    (model([node("Clip", min=0.0)]), ["the Clip", "attribute 'min' is refused"]),
    (model([node("Dropout", ratio=0.3)]), ["the Dropout", "unknown attribute 'ratio'"]),
    (model([node("Relu", alpha=0.1)]), ["the Relu", "attribute 'alpha' is refused"]),
    (twice(), ["'axis' is there twice"]),
    (loss("max"), ["reduction 'max'", "none, sum and mean"]),
    (model([node("Split", outputs=("y", "z"), axis=1, num_outputs=3)], opset=18), ["num_outputs 3", "2 outputs"]),
    (model([node("RandomUniform", [], shape=[2, 2], seed=1.0)]), ["the RandomUniform", "'seed' is refused"]),
    (model([node("Dropout", ["x", "r", "t"], seed=7)], [array((), "r"), array((), "t", bool)]), ["the Dropout", "'seed' is refused"]),
    (model([node("Reshape", ["x", "s"])], [ints("s", -2, 4)]), ["the Reshape", "a length of -2"]),
    (model([node("ReduceSum", ["x", "a"], axes=[0])], [ints("a", 1)]), ["axes as an attribute and as an input"]),
    (model([node("LayerNormalization", ["x", "w"], stash_type=16)], [array((4,))]), ["stash_type"]),
    (image("Conv", kernel_shape=[2, 2]), ["the Conv", "kernel_shape"]),
    (image("MaxPool", kernel_shape=[2, 2], auto_pad="SAME_UPPER", pads=[1, 1, 0, 0]), ["pads beside auto_pad SAME_UPPER"]),
    (model([node("LSTM", ["x", "w", "r"], hidden_size=2)], [array((1, 4, 4)), array((1, 4, 1), "r")],
           inputs=[named("x", F, [3, 2, 4])]), ["hidden_size 2", "1 units"]),
    (model([node("LSTM", ["x", "w", "r"], activations=["Relu", "Tanh", "Tanh"])], [array((1, 4, 4)), array((1, 4, 1), "r")],
           inputs=[named("x", F, [3, 2, 4])]), ["LSTM", "activation 'Relu' is refused"]),
    (model([node("LSTM", ["x", "w", "r"], activations=["Sigmoid"])], [array((1, 4, 4)), array((1, 4, 1), "r")],
           inputs=[named("x", F, [3, 2, 4])]), ["LSTM", "1 activations", "3 each"]),
    (model([helper.make_node("Constant", [], ["y"], name="the Constant", value_int=1, value_float=2.0)]), ["more than one value"]),
    (model([helper.make_node("Constant", [], ["y"], name="the Constant", value_string="a")]), ["unknown attribute 'value_string'"]),
]


def main():
    wrong, folders = 0, []
    for i, (m, _) in enumerate(CASES):
        folders.append(os.path.join(FOLDER, str(i)))
        os.makedirs(folders[i])
        with open(os.path.join(folders[i], "model.onnx"), "wb") as file:
            file.write(m.SerializeToString() or b"\x3a\x00")
    subprocess.run([RUN] + folders, check=True)
    for folder, (_, parts) in zip(folders, CASES):
        path = os.path.join(folder, "error.txt")
        text = open(path).read() if os.path.exists(path) else "(it was taken)"
        if not all(part in text for part in parts + [f"{folder}/model.onnx: "]):
            wrong += 1
            print(f"{folder}: expected {parts}, got: {text}")
    print(f"{len(CASES)} files, {wrong} were not refused as expected")
    sys.exit(1 if wrong else 0)


main()
