"""Networks as graphs: stretches of affine layers, each one function of a sample, and what is applied between them.

A stretch is written down once, in NumPy. Applied to the unit vectors it says its matrix, so that layers that follow one
another are one product, in one level. A stretch that slides one window over a sample of channels knows that window too:
the sum of samples moved by each of its places is cheaper then, mostly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _layout, _products
from ._moves import KEY, PRODUCT, ROTATION
from .errors import InputError, ShapeError
from .tensor import Tensor, concatenate

Reals = NDArray[np.float64]
Shape = tuple[int, ...]

# Of a rotation, the price of a product with a number and a sum.
_SCALAR = 0.1
# Numbers of a matrix that is made of unit vectors at a time.
_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Window:
    """A kernel (out, in, height, width) that slides over the places of a sample, none of them beyond its edges."""

    kernel: Reals
    bias: Reals
    stride: tuple[int, int] = (1, 1)

    @classmethod
    def of_channels(cls, factors: Any, bias: Any) -> Window:
        """Each channel times a number, plus another."""
        return cls(np.diag(np.asarray(factors, dtype=np.float64))[:, :, None, None], np.asarray(bias, dtype=np.float64))

    def then(self, other: Window) -> Window:
        """Both windows as one."""
        (up, across), (height, width) = self.stride, self.kernel.shape[2:]
        rows, columns = other.kernel.shape[2:]
        kernel = np.zeros((len(other.kernel), self.kernel.shape[1], height + up * (rows - 1), width + across * (columns - 1)))
        for i in range(rows):
            for j in range(columns):
                part = np.tensordot(other.kernel[:, :, i, j], self.kernel, axes=1)
                kernel[:, :, i * up : i * up + height, j * across : j * across + width] += part
        bias = other.bias + other.kernel.sum(axis=(2, 3)) @ self.bias
        return Window(kernel, bias, (up * other.stride[0], across * other.stride[1]))

    def of_array(self, x: Reals) -> Reals:
        """The sums of samples (m, in, height, width) in the clear."""
        if x.shape[1] != self.kernel.shape[1] or any(n < k for n, k in zip(x.shape[2:], self.kernel.shape[2:])):
            raise ValueError(f"a kernel of shape {self.kernel.shape} on samples of shape {x.shape[1:]}")
        places = np.lib.stride_tricks.sliding_window_view(x, self.kernel.shape[2:], axis=(2, 3))
        places = places[:, :, :: self.stride[0], :: self.stride[1]]
        sums = np.tensordot(places, self.kernel, axes=((1, 4, 5), (1, 2, 3)))
        return np.moveaxis(sums, -1, 1) + self.bias[:, None, None]

    def price(self, x: Tensor) -> float:
        """In rotations: of samples that move, of sums, and of what comes after, on a ciphertext or more for each channel."""
        parts = np.array([x[:, channel].ciphertexts for channel in range(x.shape[1])])
        taken = (self.kernel != 0).sum(axis=0)
        moves = (taken > 0).sum(axis=(1, 2))
        made = PRODUCT * len(self.kernel) * int(parts.max())
        return float((ROTATION + KEY) * (moves @ parts) + _SCALAR * (taken.sum(axis=(1, 2)) @ parts) + made)

    def of_tensor(self, x: Tensor) -> Tensor:
        """The same of encrypted samples: results lie where their windows begin."""
        rows, columns = ((n - k) // s + 1 for n, k, s in zip(x.shape[2:], self.kernel.shape[2:], self.stride))

        def moved(channel: int, i: int, j: int) -> Tensor:
            (up, across) = self.stride
            return x[:, channel, i : i + up * (rows - 1) + 1 : up, j : j + across * (columns - 1) + 1 : across]

        taken = [tuple(map(int, place)) for place in np.argwhere((self.kernel != 0).any(axis=0))]
        samples = {place: moved(*place) for place in taken}

        def channel(kernel: Reals, bias: float) -> Tensor:
            terms = [samples[place] * float(kernel[place]) for place in taken if kernel[place]]
            total = sum(terms[1:], terms[0]) if terms else samples[taken[0]] * 0.0
            return total + bias if bias else total

        made = [channel(kernel, float(bias)) for kernel, bias in zip(self.kernel, self.bias)]
        return concatenate([one.reshape(one.shape[0], 1, *one.shape[1:]) for one in made], axis=1)


@dataclass(frozen=True, eq=False)
class Affine:
    """An affine function of samples (m, *source), all at once."""

    source: Shape
    function: Callable[[Reals], Reals]
    window: Window | None = None

    @classmethod
    def identity(cls, source: Shape) -> Affine:
        return cls(source, lambda x: x, Window.of_channels(np.ones(source[0]), np.zeros(source[0])) if len(source) == 3 else None)

    @cached_property
    def shape(self) -> Shape:
        """Of a result."""
        return self.function(np.zeros((1, *self.source))).shape[1:]

    def then(self, function: Callable[[Reals], Reals], window: Window | None = None) -> Affine:
        """This function, then another one, which is that window if one is given."""
        first = self.function
        both = None if window is None or self.window is None else self.window.then(window)
        return Affine(self.source, lambda x: function(first(x)), both)

    @cached_property
    def matrix(self) -> tuple[Reals, Reals]:
        """(in, out), and what is added."""
        (size, made), constant = (int(np.prod(s)) for s in (self.source, self.shape)), self.function(np.zeros((1, *self.source)))
        if size * made > _layout.MAX_ENTRIES:
            raise _layout.too_many(size * made)
        rows = max(1, _AT_ONCE // max(made, size))
        found = np.empty((size, made))
        for start in range(0, size, rows):
            units = np.eye(min(rows, size - start), size, start).reshape(-1, *self.source)
            found[start : start + rows] = (self.function(units) - constant).reshape(-1, made)
        return found, constant.reshape(-1)

    def __call__(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return self.function(x)
        if self.window is not None and self._slides(x, self.window):
            return self.window.of_tensor(x)
        matrix, constant = self.matrix
        y = x.reshape(x.shape[0], -1) @ matrix
        return (y + constant if constant.any() else y).reshape(x.shape[0], *self.shape)

    def _slides(self, x: Tensor, window: Window) -> bool:
        if not window.kernel.any():
            return False
        if int(np.prod(self.source)) * int(np.prod(self.shape)) > _layout.MAX_ENTRIES:
            return True
        return window.price(x) < _products.price(x.reshape(x.shape[0], -1), self.matrix[0])


@dataclass(frozen=True)
class Signal:
    """What a layer gets: an affine function of a stage's result."""

    graph: Graph
    stage: int
    affine: Affine

    @property
    def shape(self) -> Shape:
        return self.affine.shape

    def then(self, what: str, function: Callable[[Reals], Reals], window: Window | None = None) -> Signal:
        """What an affine layer makes of it."""
        try:
            made = replace(self, affine=self.affine.then(function, window))
            made.shape
        except (ValueError, IndexError) as error:
            raise ShapeError(
                f"{what} of samples of shape {self.shape}: {error}",
                kind="shape",
                remedy="give the layers in the order and the samples in the shape that the network was trained with",
            ) from None
        return made

    def applied(self, function: Callable[[Any], Any]) -> Signal:
        """A function of every element."""
        return self.graph._stage([self._whole()], lambda values: function(values[0]), self.shape)

    def plus(self, other: Signal, sign: float = 1.0) -> Signal:
        """The sum, or the difference."""
        if self.stage == other.stage:
            left, right = self.affine.function, other.affine.function
            return replace(self, affine=Affine(self.affine.source, lambda x: left(x) + sign * right(x)))
        combined = self.graph._stage
        return combined([self._whole(), other._whole()], lambda values: values[0] + sign * values[1], self.shape)

    def times(self, other: Signal) -> Signal:
        """The product, element by element."""
        if self is other:
            return self.applied(lambda x: x * x)
        return self.graph._stage([self._whole(), other._whole()], lambda values: values[0] * values[1], self.shape)

    def beside(self, others: Sequence[Signal], axis: int) -> Signal:
        """All of them along an axis of the samples, counted with that of samples."""
        signals = [self, *others]
        if all(other.stage == self.stage for other in others):
            functions = [signal.affine.function for signal in signals]
            joined = Affine(self.affine.source, lambda x: np.concatenate([f(x) for f in functions], axis=axis))
            return replace(self, affine=joined)

        def combined(values: Sequence[Any]) -> Any:
            return (concatenate if isinstance(values[0], Tensor) else np.concatenate)(list(values), axis=axis)

        shape = list(self.shape)
        shape[axis - 1] = sum(signal.shape[axis - 1] for signal in signals)
        return self.graph._stage([signal._whole() for signal in signals], combined, tuple(shape))

    def _whole(self) -> int:
        """The stage that has the result itself."""
        made = self.graph._made.get(self.affine)
        if made is None:
            affine = self.affine
            made = self.graph._stage([self.stage], lambda values: affine(values[0]), self.shape).stage
            self.graph._made[affine] = made
        return made


class Graph:
    """Stages, each made of results of those before."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        """Of a sample."""
        self._stages: list[tuple[list[int], Callable[[Sequence[Any]], Any]]] = []
        # Stages that have the result of an affine function already.
        self._made: dict[Affine, int] = {}
        self._last = 0

    @property
    def samples(self) -> Signal:
        """What the network is called with."""
        return self._signal(0, self.shape)

    def _signal(self, stage: int, shape: Shape) -> Signal:
        identity = Affine.identity(shape)
        self._made[identity] = stage
        return Signal(self, stage, identity)

    def _stage(self, of: list[int], function: Callable[[Sequence[Any]], Any], shape: Shape) -> Signal:
        self._stages.append((of, function))
        return self._signal(len(self._stages), shape)

    def ending(self, signal: Signal) -> Graph:
        """The graph whose result is that signal."""
        self._last = signal._whole()
        if not self._stages:
            raise InputError("a network without layers", kind="model", remedy="give it one that computes")
        return self

    def __call__(self, x: Any) -> Any:
        values = [x]
        last = {at: k for k, (of, _) in enumerate(self._stages) for at in of}
        for k, (of, function) in enumerate(self._stages):
            values.append(function([values[at] for at in of]))
            for at in of:
                # What nothing needs any more is not kept.
                if last[at] == k and at != self._last:
                    values[at] = None
        return values[self._last]


# Layers on channels.


def convolved(
    x: Signal,
    weight: Reals,
    bias: Reals | None,
    stride: tuple[int, int],
    pads: tuple[int, int, int, int],
    dilation: tuple[int, int],
    groups: int,
) -> Signal:
    """A convolution, beside whose samples ``pads`` zeros stand: above, on the left, below, on the right."""
    out, own, height, width = weight.shape
    kernel = np.zeros((out, own * groups, (height - 1) * dilation[0] + 1, (width - 1) * dilation[1] + 1))
    for group in range(groups):
        rows = slice(group * out // groups, (group + 1) * out // groups)
        kernel[rows, group * own : (group + 1) * own, :: dilation[0], :: dilation[1]] = weight[rows]
    return _slid(x, "Conv", Window(kernel, np.zeros(out) if bias is None else bias, stride), pads)


def pooled(
    x: Signal, size: tuple[int, int], stride: tuple[int, int], pads: tuple[int, int, int, int], counted: bool
) -> Signal:
    """The means of windows; zeros beside the samples count or do not."""
    channels = x.shape[0]
    window = Window.of_channels(np.full(channels, 1.0 / (size[0] * size[1])), np.zeros(channels))
    window = Window(np.broadcast_to(window.kernel, (channels, channels, *size)).copy(), window.bias, stride)
    if counted or not any(pads):
        return _slid(x, "AveragePool", window, pads)
    shares = _padded(np.ones((1, *x.shape)), pads)
    return _slid(x, "AveragePool", window, pads).then("AveragePool", lambda y: y / window.of_array(shares))


def scaled(x: Signal, factor: Any, added: Any) -> Signal:
    """Each channel, or each feature, times a number, plus another."""
    factor, added = (np.broadcast_to(np.asarray(z, dtype=np.float64), x.shape[:1]) for z in (factor, added))
    column = (-1, *(1 for _ in x.shape[1:]))
    window = Window.of_channels(factor, added) if len(x.shape) == 3 else None
    return x.then("BatchNorm", lambda y: y * factor.reshape(column) + added.reshape(column), window)


def _slid(x: Signal, what: str, window: Window, pads: tuple[int, int, int, int]) -> Signal:
    return x.then(what, lambda y: window.of_array(_padded(y, pads)), None if any(pads) else window)


def _padded(x: Reals, pads: tuple[int, int, int, int]) -> Reals:
    above, left, below, right = pads
    return np.pad(x, ((0, 0), (0, 0), (above, below), (left, right))) if any(pads) else x
