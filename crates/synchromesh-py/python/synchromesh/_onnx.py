"""ONNX graphs as networks: each operator is an affine layer, a function, or a number that is known before the samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from . import functions
from ._network import Graph, Shape, Signal, convolved, pooled, scaled
from .errors import InputError, ShapeError, SynchromeshError

Reals = NDArray[np.float64]
Attributes = Mapping[str, Any]
# What an operator gets: what depends on the samples, numbers, and nothing where an input is left out.
Value = Union[Signal, NDArray[Any], None]


def network(source: Any, shape: Shape | None, tolerance: float | None) -> tuple[Graph, Callable[[Reals], Any], str]:
    """The graph, how its decrypted results are read, and what they are called."""
    onnx = _package()
    model = _loaded(onnx, source)
    reader = _Reader(onnx, model, tolerance)
    graph = Graph(_sample_shape(model.graph, shape, set(reader.values)))
    nodes = list(model.graph.node)
    if len(model.graph.output) != 1:
        raise _refused(f"a graph with {len(model.graph.output)} outputs", "export the one that is to be computed")
    wanted = model.graph.output[0].name
    read: list[Callable[[Reals], Any]] = []
    # What changes no order at the end is done in the clear.
    while nodes and list(nodes[-1].output)[:1] == [wanted] and (late := _late(onnx, nodes[-1])) is not None:
        wanted = nodes.pop().input[0]
        read.insert(0, late)
    reader.values[_samples_name(model.graph, set(reader.values))] = graph.samples
    for node in nodes:
        reader.values.update(zip(node.output, [reader.made(node)]))
    signal = reader.values.get(wanted)
    if not isinstance(signal, Signal):
        raise _refused(f"output {wanted!r} does not depend on the input", "export the network with its input")

    def reading(results: Reals) -> Any:
        for step in read:
            results = step(results)
        return results

    return graph.ending(signal), reading, "scores" if read else "values"


def _package() -> Any:
    try:
        import onnx
        import onnx.reference
    except ImportError:
        raise InputError("the package onnx is not installed", kind="model", remedy="pip install onnx") from None
    return onnx


def _loaded(onnx: Any, source: Any) -> Any:
    try:
        if isinstance(source, onnx.ModelProto):
            model = source
        elif isinstance(source, (bytes, bytearray)):
            model = onnx.load_model_from_string(bytes(source))
        else:
            model = onnx.load(os.fspath(source))
        onnx.checker.check_model(model)
        return model
    except FileNotFoundError:
        raise InputError(f"there is no file {source}", kind="model", remedy="pass the path of an ONNX file") from None
    except Exception as error:
        first = str(error).strip().splitlines() or [type(error).__name__]
        raise _refused(f"no ONNX model: {first[0]}", "pass the path, the bytes, or the ModelProto of one") from None


def _refused(what: str, remedy: str) -> InputError:
    return InputError(what, kind="model", remedy=remedy)


def _samples_name(graph: Any, known: set[str]) -> str:
    names = [value.name for value in graph.input if value.name not in known]
    if len(names) != 1:
        raise _refused(f"a graph with {len(names)} inputs", "export it with samples as its one input")
    return str(names[0])


def _sample_shape(graph: Any, shape: Shape | None, known: set[str]) -> Shape:
    name = _samples_name(graph, known)
    dims = next(value for value in graph.input if value.name == name).type.tensor_type.shape.dim
    declared = tuple(dim.dim_value if dim.HasField("dim_value") else 0 for dim in dims)[1:]
    if shape is None:
        if not declared or min(declared) < 1:
            raise _refused(f"input {name!r} has axes of open length: {declared}", "pass shape=, that of one sample")
        return declared
    if declared and (len(declared) != len(shape) or any(d not in (0, s) for d, s in zip(declared, shape))):
        raise ShapeError(f"samples of shape {shape}", kind="shape", remedy=f"the file's are {declared}, 0 where open")
    return shape


def _attributes(onnx: Any, node: Any) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        return value.decode() if isinstance(value, bytes) else value

    return {a.name: plain(onnx.helper.get_attribute_value(a)) for a in node.attribute}


def _late(onnx: Any, node: Any) -> Callable[[Reals], Any] | None:
    """What a last operator does, to results in the clear."""
    attributes = _attributes(onnx, node)
    axis = attributes.get("axis", 0 if node.op_type == "ArgMax" else -1)
    if node.op_type == "Softmax":
        return lambda y: functions.softmax(y, axis=axis)
    if node.op_type == "LogSoftmax":
        return lambda y: np.asarray(np.log(functions.softmax(y, axis=axis)))
    if node.op_type == "Sigmoid":
        return functions.sigmoid
    if node.op_type == "ArgMax":
        kept = bool(attributes.get("keepdims", 1))
        return lambda y: np.argmax(y, axis=axis, keepdims=kept)
    return None


class _Reader:
    """Values by their names, and what operators make of them."""

    def __init__(self, onnx: Any, model: Any, tolerance: float | None) -> None:
        self._onnx, self._tolerance = onnx, tolerance
        self._versions = model.opset_import
        self._version = next((v.version for v in model.opset_import if v.domain in ("", "ai.onnx")), 1)
        self.values: dict[str, Value] = {}
        for one in model.graph.initializer:
            try:
                self.values[one.name] = onnx.numpy_helper.to_array(one)
            except Exception as error:
                raise _refused(f"numbers {one.name!r}: {error!r}", "export the model again") from None

    def made(self, node: Any) -> Value:
        inputs = [self.values.get(name) if name else None for name in node.input]
        if node.op_type == "Shape" and isinstance(inputs[0], Signal):
            # Samples as if they came one at a time.
            whole = np.array([1, *inputs[0].shape], dtype=np.int64)
            attributes = _attributes(self._onnx, node)
            return whole[attributes.get("start", 0) : attributes.get("end")]
        if not any(isinstance(value, Signal) for value in inputs):
            return self._known(node, inputs)
        maker = _OPERATORS.get(node.op_type)
        if maker is None or node.domain not in ("", "ai.onnx"):
            raise self._unknown(node)
        try:
            return maker(self, _attributes(self._onnx, node), inputs)
        except _Unsupported as reason:
            raise _refused(f"operator {_named(node)}: {reason}", f"known are {', '.join(sorted(_OPERATORS))}") from None
        except SynchromeshError:
            raise
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise _refused(f"operator {_named(node)}: {error!r}", "export the model again") from None

    def _known(self, node: Any, inputs: Sequence[Value]) -> NDArray[Any]:
        """An operator on numbers alone."""
        if any(name and value is None for name, value in zip(node.input, inputs)):
            raise _refused(f"operator {_named(node)} has an input that nothing makes", "export the model again")
        helper = self._onnx.helper
        given = {name: value for name, value in zip(node.input, inputs) if name}
        described = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), None) for name, v in given.items() if isinstance(v, np.ndarray)]
        made = helper.make_empty_tensor_value_info(node.output[0])
        graph = helper.make_graph([node], "known", described, [made])
        one = helper.make_model(graph, opset_imports=list(self._versions))
        try:
            return np.asarray(self._onnx.reference.ReferenceEvaluator(one).run([node.output[0]], given)[0])
        except Exception as error:
            raise _refused(f"operator {_named(node)}: {error}", "export the model with constants folded") from None

    def _unknown(self, node: Any) -> InputError:
        instead = {
            "MaxPool": "train with average pooling",
            "GlobalMaxPool": "train with average pooling",
            "Softmax": "softmax inside a network is not known, at its end it is",
        }.get(node.op_type, "write that part with tensors and sm.functions")
        return _refused(f"operator {_named(node)} is not known", f"{instead}; known are {', '.join(sorted(_OPERATORS))}")

    def function(self, name: str) -> Callable[[Any], Any]:
        """A function of this package with the tolerance that was asked for."""
        of, tolerance = getattr(functions, name), self._tolerance
        return lambda x: of(x, tolerance=tolerance)

    def version(self) -> int:
        return int(self._version)


def _named(node: Any) -> str:
    return f"{node.op_type} {node.name!r}" if node.name else str(node.op_type)


class _Unsupported(Exception):
    """What of an operator is not known."""


Inputs = Sequence[Value]
Maker = Callable[[_Reader, Attributes, Inputs], Value]


def _signal(inputs: Inputs, at: int = 0) -> Signal:
    value = inputs[at]
    if not isinstance(value, Signal):
        raise _Unsupported("the samples are not its first input")
    return value


def _numbers(inputs: Inputs, at: int) -> Reals | None:
    """Numbers at an input; nothing if it is left out."""
    value = inputs[at] if at < len(inputs) else None
    if isinstance(value, Signal):
        raise _Unsupported(f"input {at} depends on the samples")
    return None if value is None else np.asarray(value, dtype=np.float64)


def _whole(inputs: Inputs, at: int) -> list[int] | None:
    found = _numbers(inputs, at)
    return None if found is None else [int(n) for n in found.reshape(-1)]


def _needed(inputs: Inputs, at: int) -> Reals:
    found = _numbers(inputs, at)
    if found is None:
        raise _Unsupported(f"input {at} is left out")
    return found


def _gemm(_: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    x, weight, bias = _signal(inputs), _needed(inputs, 1), _numbers(inputs, 2)
    if attributes.get("transA", 0):
        raise _Unsupported("transA")
    weight = attributes.get("alpha", 1.0) * (weight.T if attributes.get("transB", 0) else weight)
    added = 0.0 if bias is None else attributes.get("beta", 1.0) * bias
    return x.then("Gemm", lambda y: y @ weight + added)


def _matmul(_: _Reader, __: Attributes, inputs: Inputs) -> Signal:
    weight = _needed(inputs, 1)
    if weight.ndim != 2:
        raise _Unsupported(f"a factor of shape {weight.shape}")
    return _signal(inputs).then("MatMul", lambda y: y @ weight)


def _conv(_: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    x, weight, bias = _signal(inputs), _needed(inputs, 1), _numbers(inputs, 2)
    _planar(x)
    dilation, stride = (_two(attributes.get(name, (1, 1))) for name in ("dilations", "strides"))
    reach = ((weight.shape[2] - 1) * dilation[0] + 1, (weight.shape[3] - 1) * dilation[1] + 1)
    return convolved(x, weight, bias, stride, _pads(x, attributes, reach, stride), dilation, int(attributes.get("group", 1)))


def _pool(_: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    x = _signal(inputs)
    _planar(x)
    if attributes.get("ceil_mode", 0) or any(d != 1 for d in attributes.get("dilations", ())):
        raise _Unsupported("ceil_mode or dilations")
    size, stride = _two(attributes["kernel_shape"]), _two(attributes.get("strides", (1, 1)))
    return pooled(x, size, stride, _pads(x, attributes, size, stride), bool(attributes.get("count_include_pad", 0)))


def _global_pool(_: _Reader, __: Attributes, inputs: Inputs) -> Signal:
    x = _signal(inputs)
    _planar(x)
    return pooled(x, (x.shape[1], x.shape[2]), (1, 1), (0, 0, 0, 0), True)


def _planar(x: Signal) -> None:
    if len(x.shape) != 3:
        raise _Unsupported(f"samples of shape {x.shape}: it takes channels, rows and columns")


def _two(values: Sequence[int]) -> tuple[int, int]:
    if len(values) != 2:
        raise _Unsupported(f"{len(values)} axes")
    return int(values[0]), int(values[1])


def _pads(
    x: Signal, attributes: Attributes, reach: tuple[int, int], stride: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Zeros above, on the left, below and on the right."""
    kind = attributes.get("auto_pad", "NOTSET")
    if kind == "VALID":
        return 0, 0, 0, 0
    if kind == "NOTSET":
        above, left, below, right = (int(n) for n in attributes.get("pads", (0, 0, 0, 0)))
        return above, left, below, right
    short = [max(0, (-(-n // s) - 1) * s + r - n) for n, s, r in zip(x.shape[1:], stride, reach)]
    first = [n // 2 if kind == "SAME_UPPER" else n - n // 2 for n in short]
    return first[0], first[1], short[0] - first[0], short[1] - first[1]


def _norm(_: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    if attributes.get("training_mode", 0):
        raise _Unsupported("training_mode")
    scale, bias, mean, variance = (_needed(inputs, at) for at in range(1, 5))
    factor = scale / np.sqrt(variance + attributes.get("epsilon", 1e-5))
    return scaled(_signal(inputs), factor, bias - mean * factor)


def _flatten(_: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    if attributes.get("axis", 1) != 1:
        raise _Unsupported("an axis other than 1")
    return _signal(inputs).then("Flatten", lambda y: y.reshape(len(y), -1))


def _reshape(_: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    x, target = _signal(inputs), _whole(inputs, 1)
    if not target or target[0] not in (-1, 0, 1) or (target[0] == -1 and -1 in target[1:]):
        raise _Unsupported(f"to {target}: samples must stay along the first axis")
    shape = [x.shape[at] if n == 0 and not attributes.get("allowzero", 0) else n for at, n in enumerate(target[1:])]
    return x.then("Reshape", lambda y: y.reshape(len(y), *shape))


def _transpose(_: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    x, order = _signal(inputs), list(attributes.get("perm", ()))
    if not order or order[0] != 0:
        raise _Unsupported("samples must stay along the first axis")
    return x.then("Transpose", lambda y: y.transpose(order))


def _axes(reader: _Reader, attributes: Attributes, inputs: Inputs, x: Signal, since: int) -> tuple[int, ...]:
    """Axes by an attribute, since some version by an input; never that of samples."""
    given = _whole(inputs, 1) if reader.version() >= since else attributes.get("axes")
    axes = tuple(int(a) % (len(x.shape) + 1) for a in (given or range(1, len(x.shape) + 1)))
    if 0 in axes:
        raise _Unsupported("over the axis of samples")
    return axes


def _mean(reader: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    x = _signal(inputs)
    axes, kept = _axes(reader, attributes, inputs, x, 18), bool(attributes.get("keepdims", 1))
    return x.then("ReduceMean", lambda y: y.mean(axis=axes, keepdims=kept))


def _total(reader: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    x = _signal(inputs)
    axes, kept = _axes(reader, attributes, inputs, x, 13), bool(attributes.get("keepdims", 1))
    return x.then("ReduceSum", lambda y: y.sum(axis=axes, keepdims=kept))


def _squeeze(reader: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    x = _signal(inputs)
    axes = _axes(reader, attributes, inputs, x, 13)
    return x.then("Squeeze", lambda y: y.squeeze(axis=axes))


def _pad(reader: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    x = _signal(inputs)
    given = _whole(inputs, 1) if reader.version() >= 11 else list(attributes.get("pads", ()))
    value = _numbers(inputs, 2)
    beyond = attributes.get("mode", "constant") != "constant" or (value is not None and value.any())
    if given is None or len(given) != 2 * len(x.shape) + 2 or min(given) < 0 or beyond or attributes.get("value", 0.0):
        raise _Unsupported("other than zeros around each sample")
    around = list(zip(given[: len(given) // 2], given[len(given) // 2 :]))
    if around[0] != (0, 0):
        raise _Unsupported("samples are added")
    return x.then("Pad", lambda y: np.pad(y, around))


def _concat(_: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    first, *others = (_signal(inputs, at) for at in range(len(inputs)))
    axis = int(attributes["axis"]) % (len(first.shape) + 1)
    if axis == 0:
        raise _Unsupported("samples after samples")
    return first.beside(others, axis)


def _sum(sign: float) -> Maker:
    def made(_: _Reader, __: Attributes, inputs: Inputs) -> Signal:
        left, right = inputs[0], inputs[1]
        if isinstance(left, Signal) and isinstance(right, Signal):
            if left.shape != right.shape:
                raise _Unsupported(f"shapes {left.shape} and {right.shape}")
            return left.plus(right, sign)
        if isinstance(left, Signal):
            return _shifted(left, 1.0, sign * _needed(inputs, 1))
        return _shifted(_signal(inputs, 1), sign, _needed(inputs, 0))

    return made


def _shifted(x: Signal, factor: float, added: Reals) -> Signal:
    channels = _of_channels(added, x.shape)
    if channels is not None:
        return scaled(x, factor, channels)
    return x.then("Add", lambda y: factor * y + _beside_samples(added, y))


def _mul(_: _Reader, __: Attributes, inputs: Inputs) -> Signal:
    left, right = inputs[0], inputs[1]
    if isinstance(left, Signal) and isinstance(right, Signal):
        if left.shape != right.shape:
            raise _Unsupported(f"shapes {left.shape} and {right.shape}")
        return left.times(right)
    at = 0 if isinstance(left, Signal) else 1
    return _times(_signal(inputs, at), _needed(inputs, 1 - at))


def _div(_: _Reader, __: Attributes, inputs: Inputs) -> Signal:
    divisor = _needed(inputs, 1)
    if not divisor.all():
        raise _Unsupported("by 0")
    return _times(_signal(inputs), 1.0 / divisor)


def _times(x: Signal, factor: Reals) -> Signal:
    channels = _of_channels(factor, x.shape)
    if channels is not None:
        return scaled(x, channels, 0.0)
    return x.then("Mul", lambda y: y * _beside_samples(factor, y))


def _of_channels(numbers: Reals, shape: Shape) -> Reals | None:
    """A number for each channel, or for all, if it is no more."""
    if numbers.size == 1 and numbers.ndim <= len(shape) + 1:
        return numbers.reshape(1)
    axis = numbers.ndim - len(shape)
    if 0 <= axis <= 1 and numbers.shape[axis] == numbers.size == shape[0]:
        return numbers.reshape(-1)
    return None


def _beside_samples(numbers: Reals, samples: Reals) -> Reals:
    if numbers.ndim > samples.ndim or (numbers.ndim == samples.ndim and numbers.shape[0] != 1):
        raise ValueError(f"numbers of shape {numbers.shape}")
    return numbers


def _pow(_: _Reader, __: Attributes, inputs: Inputs) -> Signal:
    exponent = _needed(inputs, 1)
    k = int(exponent.reshape(-1)[0]) if exponent.size == 1 else 0
    if exponent.size != 1 or k < 1 or k != exponent.reshape(-1)[0]:
        raise _Unsupported(f"to {exponent}: it takes a whole number from 1")
    return _signal(inputs).applied(lambda x: x**k)


def _clip(reader: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    ends = [attributes.get(name) if reader.version() < 11 else _numbers(inputs, at) for at, name in ((1, "min"), (2, "max"))]
    if any(end is None for end in ends):
        raise _Unsupported("one end alone")
    low, high = (float(np.asarray(end).reshape(-1)[0]) for end in ends)
    tolerance = reader._tolerance
    return _signal(inputs).applied(lambda x: functions.clip(x, low, high, tolerance=tolerance))


def _leaky(reader: _Reader, attributes: Attributes, inputs: Inputs) -> Signal:
    below, relu = float(attributes.get("alpha", 0.01)), reader.function("relu")
    return _signal(inputs).applied(lambda x: below * x + (1.0 - below) * relu(x))


def _neg(_: _Reader, __: Attributes, inputs: Inputs) -> Signal:
    return scaled(_signal(inputs), -1.0, 0.0)


def _identity(_: _Reader, __: Attributes, inputs: Inputs) -> Signal:
    return _signal(inputs)


def _function(name: str) -> Maker:
    return lambda reader, _, inputs: _signal(inputs).applied(reader.function(name))


_OPERATORS: dict[str, Maker] = {
    "Abs": _function("absolute"),
    "Add": _sum(1.0),
    "AveragePool": _pool,
    "BatchNormalization": _norm,
    "Clip": _clip,
    "Concat": _concat,
    "Conv": _conv,
    "Div": _div,
    "Dropout": _identity,
    "Exp": _function("exp"),
    "Flatten": _flatten,
    "Gelu": _function("gelu"),
    "Gemm": _gemm,
    "GlobalAveragePool": _global_pool,
    "Identity": _identity,
    "LeakyRelu": _leaky,
    "Log": _function("log"),
    "MatMul": _matmul,
    "Mul": _mul,
    "Neg": _neg,
    "Pad": _pad,
    "Pow": _pow,
    "ReduceMean": _mean,
    "ReduceSum": _total,
    "Reciprocal": _function("inverse"),
    "Relu": _function("relu"),
    "Reshape": _reshape,
    "Sigmoid": _function("sigmoid"),
    "Sqrt": _function("sqrt"),
    "Squeeze": _squeeze,
    "Sub": _sum(-1.0),
    "Tanh": _function("tanh"),
    "Transpose": _transpose,
}
