"""Neural networks on encrypted samples: what they compute is what ONNX's own reference, or NumPy, computes in the clear."""

from __future__ import annotations

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import errors, nn
from synchromesh._network import Affine, Window
from synchromesh._onnx import _OPERATORS

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

RNG = np.random.default_rng(11)


def some(*shape):
    return RNG.normal(size=shape) / np.prod(shape[1:])


def made(nodes, shape, numbers=None, version=18):
    """A model of nodes with an input x and an output y, in double precision."""
    ends = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, dims) for name, dims in (("x", ["n", *shape]), ("y", ["n"]))]
    kept = [numpy_helper.from_array(np.asarray(value), name) for name, value in (numbers or {}).items()]
    graph = helper.make_graph(nodes, "network", ends[:1], ends[1:], kept)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version), helper.make_opsetid("com.example", 1)], ir_version=9)


def node(kind, inputs, output="y", **attributes):
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def reference(model, samples):
    return ReferenceEvaluator(model).run(None, {"x": samples})[0]


def encrypted(network, samples, precision):
    """What a network makes of encrypted samples, decrypted, and its certificate."""
    plan = sm.plan(network, [samples], precision=precision, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    found = network(context.encrypt(samples, key=keys.public, bound=float(np.abs(samples).max())))
    return keys.secret.decrypt(found), found.error_bound


def perceptron():
    numbers = {"w1": some(6, 8), "b1": some(6), "w2": some(6, 3), "b2": some(3)}
    nodes = [
        node("Gemm", "x w1 b1", "a", transB=1, alpha=1.5),
        node("Tanh", "a", "b"),
        node("MatMul", "b w2", "c"),
        node("Add", "c b2", "d"),
        node("Softmax", "d", axis=-1),
    ]
    return made(nodes, (8,), numbers), (8,)


def convolutional(padding):
    """Convolutions, batch norm, squares, pooling, and a shape that is computed from that of the samples."""
    pads = [padding] * 4
    side = 9 + 2 * padding
    left = ((side - 2) // 2 - 1) ** 2
    numbers = {
        "k1": some(2, 1, 3, 3),
        "b1": some(2),
        "scale": RNG.uniform(0.5, 1, 2),
        "shift": some(2),
        "mean": some(2),
        "var": RNG.uniform(0.5, 1, 2),
        "k2": some(3, 2, 2, 2),
        "w": some(3 * left, 4),
        "first": np.array(0),
        "zero": np.array([0]),
        "rest": np.array([-1]),
    }
    nodes = [
        node("Conv", "x k1 b1", "a", pads=pads),
        node("BatchNormalization", "a scale shift mean var", "b"),
        node("AveragePool", "b", "c", kernel_shape=[2, 2], strides=[2, 2]),
        node("Mul", "c c", "d"),
        node("Conv", "d k2", "e"),
        node("Shape", "e", "f"),
        node("Gather", "f first", "g"),
        node("Unsqueeze", "g zero", "h"),
        node("Concat", "h rest", "i", axis=0),
        node("Reshape", "e i", "j"),
        node("MatMul", "j w"),
    ]
    return made(nodes, (1, 9, 9), numbers), (1, 9, 9)


def residual():
    """A block that its argument is added to, and two branches side by side."""
    numbers = {"k1": some(2, 2, 3, 3), "k2": some(2, 2, 1, 1), "w": some(4, 3)}
    nodes = [
        node("Conv", "x k1", "a", pads=[1, 1, 1, 1]),
        node("Relu", "a", "b"),
        node("Conv", "b k2", "c"),
        node("Add", "c x", "d"),
        node("Concat", "d x", "e", axis=1),
        node("GlobalAveragePool", "e", "f"),
        node("Flatten", "f", "g"),
        node("MatMul", "g w"),
    ]
    return made(nodes, (2, 4, 4), numbers), (2, 4, 4)


@pytest.mark.parametrize(
    ("build", "precision"),
    [(perceptron, 8), (lambda: convolutional(0), 10), (lambda: convolutional(1), 10), (residual, 5)],
    ids=["perceptron", "convolutions", "padded convolutions", "residual"],
)
def test_networks_of_onnx(build, precision):
    model, shape = build()
    network = nn.from_onnx(model)
    samples = RNG.uniform(-1, 1, (4, *shape))
    expected = reference(model, samples)
    clear = network(samples)
    np.testing.assert_allclose(network.read(clear), expected, atol=1e-12)
    found, bound = encrypted(network, samples, precision)
    assert bound <= 2.0**-precision
    assert np.abs(found - clear).max() <= bound
    np.testing.assert_allclose(network.read(found), expected, atol=2 * bound)


CHANNELS = (2, 6, 6)
OPERATORS = [
    ([node("Conv", "x k", group=2, strides=[2, 1], dilations=[2, 1], auto_pad="SAME_UPPER")], {"k": some(4, 1, 3, 2)}),
    ([node("Conv", "x k", auto_pad="SAME_LOWER", strides=[2, 2])], {"k": some(1, 2, 3, 3)}),
    ([node("Conv", "x k b", pads=[0, 1, 2, 0])], {"k": some(3, 2, 2, 3), "b": some(3)}),
    ([node("AveragePool", "x", kernel_shape=[3, 3], pads=[1, 1, 1, 1])], {}),
    ([node("AveragePool", "x", kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1], count_include_pad=1)], {}),
    ([node("Pad", "x p", "a"), node("Transpose", "a", perm=[0, 2, 3, 1])], {"p": np.array([0, 0, 1, 2, 0, 1, 0, 0])}),
    ([node("Sub", "c x", "a"), node("Mul", "a d", "b"), node("Div", "b e")], {"c": some(6), "d": some(2, 1, 1), "e": 0.5}),
    ([node("Add", "x c", "a"), node("Neg", "a", "b"), node("Sub", "b x", "e"), node("Mul", "e x")], {"c": some(1, 2, 6, 1)}),
    ([node("Tanh", "x", "a"), node("Sub", "a x", "b"), node("Mul", "b a", "c"), node("Concat", "c a", axis=1)], {}),
    ([node("ReduceMean", "x a", keepdims=0)], {"a": np.array([2, -1])}),
    ([node("ReduceSum", "x a", "b"), node("Squeeze", "b s")], {"a": np.array([3]), "s": np.array([3])}),
    ([node("Pow", "x k", "a"), node("Dropout", "a", "b"), node("Identity", "b")], {"k": np.array(3.0)}),
    ([node("Clip", "x l h", "a"), node("LeakyRelu", "a", "b", alpha=0.1), node("Abs", "b")], {"l": -0.5, "h": 0.5}),
    ([node("Exp", "x", "a"), node("Log", "a", "b"), node("Sigmoid", "b", "c"), node("Reciprocal", "c", "d"), node("Sqrt", "d", "e"),
      node("Gelu", "e", "f"), node("Relu", "f")], {}),
    ([node("Gemm", "x w b", beta=0.5)], {"w": some(6, 2), "b": some(2)}),
    ([node("Flatten", "x", "a"), node("ArgMax", "a", axis=1, keepdims=0)], {}),
    ([node("Flatten", "x", "a"), node("LogSoftmax", "a")], {}),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "numbers"), OPERATORS, ids=[str(n[0].op_type) for n, _ in OPERATORS])
def test_operators_are_onnx_s(nodes, numbers):
    shape = (6,) if nodes[0].op_type == "Gemm" else CHANNELS
    model = made(nodes, shape, numbers, 20)
    samples = RNG.uniform(-1, 1, (3, *shape))
    if nodes[-1].op_type in ("ArgMax", "LogSoftmax"):
        # A function of what a network makes, not of its input.
        model.graph.node.insert(1, node("Tanh", "a", "t"))
        model.graph.node[2].input[0] = "t"
    network = nn.from_onnx(model.SerializeToString())
    np.testing.assert_allclose(network.read(network(samples)), reference(model, samples), atol=1e-12)


def test_all_operators_are_tried():
    builds = [perceptron()[0], convolutional(0)[0], residual()[0]]
    tried = {n.op_type for nodes, _ in OPERATORS for n in nodes} | {n.op_type for m in builds for n in m.graph.node}
    assert set(_OPERATORS) - tried == set()


STATE = {
    "body.0.weight": some(2, 1, 3, 3),
    "body.0.bias": some(2),
    "norm.weight": RNG.uniform(0.5, 1, 2),
    "norm.bias": some(2),
    "norm.running_mean": some(2),
    "norm.running_var": RNG.uniform(0.5, 1, 2),
    "norm.num_batches_tracked": np.array(7),
    "head.weight": some(3, 18),
}
LAYERS = {
    "body.0": nn.Conv2d(),
    "norm": nn.BatchNorm(),
    "square": np.square,
    "pool": nn.AvgPool2d(2),
    "drop": nn.Identity(),
    "flat": nn.Flatten(),
    "head": nn.Linear(),
}


def test_networks_of_a_state_dict():
    network = nn.from_state_dict(LAYERS, STATE, (1, 8, 8))
    samples = RNG.uniform(-1, 1, (3, 1, 8, 8))
    # Layer by layer, place by place.
    k, b = STATE["body.0.weight"], STATE["body.0.bias"]
    y = np.array([[[[(x[:, i : i + 3, j : j + 3] * k[o]).sum() + b[o] for j in range(6)] for i in range(6)] for o in range(2)] for x in samples])
    mean, var, scale, shift = (STATE[f"norm.{n}"][:, None, None] for n in ("running_mean", "running_var", "weight", "bias"))
    y = ((y - mean) / np.sqrt(var + 1e-5) * scale + shift) ** 2
    y = y.reshape(3, 2, 3, 2, 3, 2).mean(axis=(3, 5)).reshape(3, -1) @ STATE["head.weight"].T
    np.testing.assert_allclose(network(samples), y, atol=1e-12)
    found, bound = encrypted(network, samples, 10)
    assert np.abs(found - y).max() <= bound <= 2**-10
    # The square and two products: what is between functions is one.
    plan = sm.plan(network, [samples], precision=10, security="insecure")
    assert plan.depth == 3


def test_windows_and_matrices_are_the_same_function():
    kernels = [(some(2, 2, 2, 3), some(2), (2, 1)), (some(3, 2, 2, 2), some(3), (1, 2))]
    kernels[0][0][:, 1, 0, 1] = 0.0
    kernels[1][0][2] = 0.0
    first, second = (Window(*given) for given in kernels)
    samples = RNG.uniform(-1, 1, (3, 2, 7, 8))
    clear = second.of_array(first.of_array(samples))
    np.testing.assert_allclose(first.then(second).of_array(samples), clear, atol=1e-12)
    affine = Affine.identity((2, 7, 8)).then(first.of_array, first).then(second.of_array, second)
    matrix, constant = affine.matrix

    def both(x):
        return affine.window.of_tensor(x), (x.reshape(3, -1) @ matrix + constant).reshape(clear.shape)

    plan = sm.plan(both, [samples], precision=10, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    x = context.encrypt(samples, bound=1.0)
    for found in both(x):
        assert np.abs(keys.secret.decrypt(found) - clear).max() <= found.error_bound <= 2**-10


def test_weights_may_be_zeros():
    for kernel in (np.zeros((2, 1, 2, 2)), np.array([[[[0.0, 0.5], [0.0, 0.0]]], [[[0.0, 0.0], [0.0, 0.0]]]])):
        network = nn.from_state_dict([nn.Conv2d()], {"0.weight": kernel, "0.bias": np.array([0.25, -0.5])}, (1, 6, 6))
        samples = RNG.uniform(-1, 1, (3, 1, 6, 6))
        found, bound = encrypted(network, samples, 10)
        assert np.abs(found - network(samples)).max() <= bound <= 2**-10


def test_windows_slide_where_that_is_cheaper():
    # A rotation for each place of a window, where the matrix has diagonals of all distances.
    state = {"0.weight": some(4, 1, 3, 3), "2.weight": some(4, 10)}
    layers = [nn.Conv2d(stride=2), np.square]
    network = nn.from_state_dict(layers, {"0.weight": state["0.weight"]}, (1, 28, 28))
    plan = sm.plan(network, [(8, 1, 28, 28)], precision=10, bounds=1, security="insecure")
    assert len(plan.rotations) <= 9
    # And the matrix where samples are small.
    network = nn.from_state_dict([nn.Linear()], {"0.weight": state["2.weight"].T}, (4,))
    assert len(sm.plan(network, [(8, 4)], precision=10, bounds=1, security="insecure").rotations) <= 9


def test_layers_in_a_sequence_have_the_names_of_sequential():
    state = {"0.weight": some(4, 5), "2.weight": some(1, 4), "2.bias": some(1)}
    network = nn.from_state_dict([nn.Linear(), sm.functions.sigmoid, nn.Linear()], state, (5,))
    samples = RNG.uniform(-1, 1, (6, 5))
    clear = 1 / (1 + np.exp(-samples @ state["0.weight"].T)) @ state["2.weight"].T + state["2.bias"]
    np.testing.assert_allclose(network(samples), clear, atol=1e-12)
    found, bound = encrypted(network, samples, 8)
    assert np.abs(found - clear).max() <= bound <= 2**-8


@pytest.mark.parametrize(
    ("layers", "state", "shape", "message"),
    [
        ([nn.Linear()], {}, (5,), "no parameter '0.weight'"),
        ([nn.Linear()], {"0.weight": some(2, 5), "1.weight": some(2, 5)}, (5,), "no layer takes: 1.weight"),
        ([nn.Linear()], {"0.weight": some(2, 5)}, (4,), r"Linear of samples of shape \(4,\)"),
        ([nn.Linear()], {"0.weight": some(5)}, (5,), r"'0.weight' of shape \(5,\)"),
        ([nn.Linear()], {"0.weight": np.full((2, 5), np.nan)}, (5,), "finite"),
        ([nn.Conv2d()], {"0.weight": some(1, 1, 3, 3)}, (1, 2, 2), "Conv of samples"),
        ([nn.Linear], {}, (5,), "layer '0' is"),
        ([nn.Identity()], {}, (5,), "without layers"),
        ([np.square], {}, (0,), "pass that of one sample"),
        ([np.square], {}, "one", "pass that of one sample"),
    ],
)
def test_what_does_not_fit_is_said(layers, state, shape, message):
    with pytest.raises((errors.InputError, errors.ShapeError), match=message):
        nn.from_state_dict(layers, state, shape)


@pytest.mark.parametrize(
    ("nodes", "numbers", "message"),
    [
        ([node("MaxPool", "x", kernel_shape=[2, 2])], {}, r"MaxPool is not known.*average pooling"),
        ([node("Softmax", "x", "a"), node("Relu", "a")], {}, "at its end it is"),
        ([node("Relu", "x", domain="com.example")], {}, "Relu"),
        ([node("Reshape", "x s")], {"s": np.array([-1, 6])}, "shape"),
        ([node("Reshape", "x s")], {"s": np.array([2, -1])}, "samples must stay"),
        ([node("Transpose", "x", perm=[1, 0, 2, 3])], {}, "samples must stay"),
        ([node("ReduceMean", "x a")], {"a": np.array([0])}, "axis of samples"),
        ([node("Concat", "x x", axis=0)], {}, "samples after samples"),
        ([node("Div", "x c")], {"c": np.array(0.0)}, "by 0"),
        ([node("Div", "c x")], {"c": np.array(1.0)}, "depends on the samples"),
        ([node("Pow", "x c")], {"c": np.array(0.5)}, "whole number"),
        ([node("Clip", "x c")], {"c": np.array(0.5)}, "one end alone"),
        ([node("Add", "x c")], {"c": some(5)}, "Add of samples"),
        ([node("AveragePool", "x", kernel_shape=[2, 2], ceil_mode=1)], {}, "ceil_mode"),
        ([node("Conv", "x k")], {"k": some(1, 3, 3, 3)}, "Conv of samples"),
        ([node("MatMul", "x c")], {"c": some(1, 6, 6)}, "a factor of shape"),
        ([node("Identity", "c")], {"c": np.array(1.0)}, "does not depend"),
        ([node("Gather", "c i", "a"), node("Add", "x a")], {"c": some(3), "i": np.array(9)}, "Gather"),
        ([node("Tanh", "x"), node("Tanh", "x", "z")], {}, None),
    ],
)
def test_operators_that_are_not_known_are_named(nodes, numbers, message):
    model = made(nodes, CHANNELS, numbers)
    if message is None:
        nn.from_onnx(model)
        return
    with pytest.raises((errors.InputError, errors.ShapeError), match=message):
        nn.from_onnx(model)


def test_files_that_are_no_models_are_refused(tmp_path):
    path = tmp_path / "network.onnx"
    with pytest.raises(errors.InputError, match="no file"):
        nn.from_onnx(path)
    model, _ = perceptron()
    onnx.save(model, path)
    samples = RNG.uniform(-1, 1, (2, 8))
    np.testing.assert_allclose(nn.from_onnx(path).read(nn.from_onnx(path)(samples)), reference(model, samples), atol=1e-12)
    whole = path.read_bytes()
    for wrong in (b"", b"no model", whole[: len(whole) // 2], 7):
        with pytest.raises(errors.InputError, match="no ONNX model"):
            nn.from_onnx(wrong)
    # Every byte once: a model or a typed error.
    rng = np.random.default_rng(3)
    for at in rng.choice(len(whole), 60, replace=False):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << rng.integers(8)
        try:
            nn.from_onnx(bytes(damaged))
        except errors.SynchromeshError:
            pass


def test_shapes_that_a_file_leaves_open_are_given():
    model = made([node("GlobalAveragePool", "x")], ("c", "h", 6))
    with pytest.raises(errors.InputError, match=r"open length: \(0, 0, 6\)"):
        nn.from_onnx(model)
    with pytest.raises(errors.ShapeError, match="0 where open"):
        nn.from_onnx(model, shape=(2, 6, 5))
    samples = RNG.uniform(-1, 1, (2, 2, 6, 6))
    np.testing.assert_allclose(nn.from_onnx(model, shape=(2, 6, 6))(samples), reference(model, samples), atol=1e-12)
