"""Neural networks on encrypted samples, with public weights; CKKS. From a PyTorch ``state_dict`` or an ONNX file.

Layers that follow one another without a function between them are one: convolutions, average pooling, batch normalisation
and dense layers take a level together. Functions are polynomials in their place, with the intervals and proved bounds of
:mod:`synchromesh.functions`; squares and other polynomials are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from ._network import Graph, Shape, Signal, convolved, pooled, scaled
from .errors import InputError
from .models import Model

__all__ = ["AvgPool2d", "BatchNorm", "Conv2d", "Flatten", "Identity", "Linear", "from_onnx", "from_state_dict"]

Reals = NDArray[np.float64]
Pair = Union[int, "tuple[int, int]"]


class _Parameters:
    """A layer's arrays by their names in a state_dict."""

    def __init__(self, state: Mapping[str, Any], prefix: str, taken: set[str]) -> None:
        self._state, self._prefix, self._taken = state, prefix, taken

    def __call__(self, name: str, dimensions: int, optional: bool = False) -> Reals | None:
        full = f"{self._prefix}{name}"
        if full not in self._state:
            if optional:
                return None
            raise InputError(
                f"no parameter {full!r}",
                kind="model",
                remedy=f"there are {', '.join(self._state)}; name layers as the network does, or put Identity() where it "
                "has a module that computes nothing",
            )
        self._taken.add(full)
        value = self._state[full]
        # PyTorch's tensors, which may want a gradient or lie on a device.
        for method in ("detach", "cpu"):
            value = getattr(value, method)() if hasattr(value, method) else value
        array = np.asarray(value, dtype=np.float64)
        if array.ndim != dimensions or not np.isfinite(array).all():
            raise InputError(
                f"parameter {full!r} of shape {array.shape}", kind="model", remedy=f"pass finite numbers in {dimensions} axes"
            )
        return array

    def needed(self, name: str, dimensions: int) -> Reals:
        found = self(name, dimensions)
        assert found is not None
        return found


@dataclass(frozen=True)
class Linear:
    """A dense layer: ``weight`` (out, in) and, if there is one, ``bias``."""

    def _of(self, x: Signal, take: _Parameters) -> Signal:
        weight, bias = take.needed("weight", 2), take("bias", 1, optional=True)
        return x.then("Linear", lambda y: y @ weight.T + (0.0 if bias is None else bias))


@dataclass(frozen=True)
class Conv2d:
    """A convolution: ``weight`` (out, in / groups, height, width) and, if there is one, ``bias``."""

    stride: Pair = 1
    padding: Pair = 0
    dilation: Pair = 1
    groups: int = 1

    def _of(self, x: Signal, take: _Parameters) -> Signal:
        weight, bias = take.needed("weight", 4), take("bias", 1, optional=True)
        up, across = _pair(self.padding)
        return convolved(x, weight, bias, _pair(self.stride), (up, across, up, across), _pair(self.dilation), self.groups)


@dataclass(frozen=True)
class AvgPool2d:
    """The means of windows of that size, side by side unless ``stride`` says otherwise; padding counts as zeros."""

    kernel_size: Pair
    stride: Pair | None = None
    padding: Pair = 0

    def _of(self, x: Signal, take: _Parameters) -> Signal:
        size = _pair(self.kernel_size)
        up, across = _pair(self.padding)
        return pooled(x, size, size if self.stride is None else _pair(self.stride), (up, across, up, across), True)


@dataclass(frozen=True)
class BatchNorm:
    """``weight`` and ``bias``, if there are, with ``running_mean`` and ``running_var``: a factor and a sum for each channel."""

    eps: float = 1e-5

    def _of(self, x: Signal, take: _Parameters) -> Signal:
        mean, variance = take.needed("running_mean", 1), take.needed("running_var", 1)
        weight, bias = (take(name, 1, optional=True) for name in ("weight", "bias"))
        factor = (1.0 if weight is None else weight) / np.sqrt(variance + self.eps)
        return scaled(x, factor, (0.0 if bias is None else bias) - mean * factor)


@dataclass(frozen=True)
class Flatten:
    """Samples as vectors."""

    def _of(self, x: Signal, take: _Parameters) -> Signal:
        return x.then("Flatten", lambda y: y.reshape(len(y), -1))


@dataclass(frozen=True)
class Identity:
    """Nothing, in the place of dropout."""

    def _of(self, x: Signal, take: _Parameters) -> Signal:
        return x


Layer = Union[Linear, Conv2d, AvgPool2d, BatchNorm, Flatten, Identity, Callable[[Any], Any]]


def from_state_dict(
    layers: Sequence[Layer] | Mapping[str, Layer], state_dict: Mapping[str, Any], shape: Sequence[int]
) -> Model:
    """A network of layers with the parameters of a PyTorch ``state_dict``, for samples of a shape.

    ``layers`` in a sequence have the names "0", "1", .. that ``torch.nn.Sequential`` gives, in a mapping those of its keys.
    A layer is one of this module, or a function of tensors and arrays alike: ``numpy.square``, ``sm.functions.relu``, one of
    yours. Parameters that no layer takes are refused.
    """
    named = layers if isinstance(layers, Mapping) else {str(at): layer for at, layer in enumerate(layers)}
    graph = Graph(_shape(shape))
    signal, taken = graph.samples, {name for name in state_dict if name.endswith("num_batches_tracked")}
    for name, layer in named.items():
        if isinstance(layer, (Linear, Conv2d, AvgPool2d, BatchNorm, Flatten, Identity)):
            signal = layer._of(signal, _Parameters(state_dict, f"{name}.", taken))
        elif callable(layer) and not isinstance(layer, type):
            signal = signal.applied(layer)
        else:
            raise InputError(
                f"layer {name!r} is {layer!r}", kind="model", remedy=f"pass a function, or one of {', '.join(__all__[:6])}"
            )
    left = [name for name in state_dict if name not in taken]
    if left:
        raise InputError(
            f"parameters that no layer takes: {', '.join(left)}",
            kind="model",
            remedy="name layers as the network does; Identity() stands where it has a module that computes nothing",
        )
    return Model(graph.shape, [graph.ending(signal)], _same, "values")


def from_onnx(model: Any, *, shape: Sequence[int] | None = None, tolerance: float | None = None) -> Model:
    """A network from an ONNX file, its bytes, or what the ``onnx`` package made of them; that package reads it.

    Its one input has samples along the first axis; ``shape`` is that of a sample, if the file leaves it open. Softmax,
    sigmoid and argmax at the end are left to :meth:`Model.read`. ``tolerance`` is that of :mod:`synchromesh.functions`.
    Operators that are not known are named.
    """
    from . import _onnx

    graph, read, what = _onnx.network(model, None if shape is None else _shape(shape), tolerance)
    return Model(graph.shape, [graph], read, what)


def _shape(shape: Any) -> Shape:
    try:
        found = tuple(int(n) for n in (shape if isinstance(shape, Sequence) else (shape,)))
    except (TypeError, ValueError):
        found = ()
    if not found or min(found) < 1:
        raise InputError(f"samples of shape {shape}", kind="shape", remedy="pass that of one sample, as (1, 28, 28)")
    return found


def _same(results: Reals) -> Any:
    return results


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))
