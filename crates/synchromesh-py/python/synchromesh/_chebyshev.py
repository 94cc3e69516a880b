"""Chebyshev interpolation with a bound on its error, by interval arithmetic with derivatives.

The function is called on an :class:`Enclosure` in the place of an array: on each of many small intervals, what its values
lie between, and what its derivative does. With those of the polynomial, |f - p| on an interval is at most what it is in
the middle plus half the width times the largest |f' - p'|. Operations of NumPy are taken to be right to four units in the
last place.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple, Union

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from . import _numbers
from .errors import InputError, ShapeError

Reals = NDArray[np.float64]
_LEAST, _MOST = 1 << 10, 1 << 17
# Rounding of an operation on doubles, with room.
_UNIT = 2.0**-50


class Unbounded(Exception):
    """A function that interval arithmetic does not follow."""


class Span(NamedTuple):
    """Numbers between ``low`` and ``high``, on each of many intervals."""

    low: Reals
    high: Reals

    @classmethod
    def of(cls, *ends: Reals) -> Span:
        """The least one that holds all ends, and what rounding may have taken from it."""
        low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise Unbounded("it, or its derivative, grows beyond every bound on the interval")
        slack = _UNIT * np.maximum(np.abs(low), np.abs(high)) + 1e-300
        return cls(low - slack, high + slack)

    def plus(self, other: Span) -> Span:
        return Span.of(self.low + other.low, self.high + other.high)

    def times(self, other: Span) -> Span:
        return Span.of(*(a * b for a in self for b in other))

    def negated(self) -> Span:
        return Span(-self.high, -self.low)

    def inverse(self) -> Span:
        if np.any((self.low <= 0) & (self.high >= 0)):
            raise Unbounded("it divides by 0 on the interval")
        return Span.of(1.0 / self.low, 1.0 / self.high)

    def mapped(self, rising: Callable[[Reals], Reals]) -> Span:
        """Its image under a function that does not fall."""
        return Span.of(rising(self.low), rising(self.high))

    def squared(self) -> Span:
        zero = np.where((self.low < 0) & (self.high > 0), 0.0, self.low**2)
        return Span.of(zero, self.low**2, self.high**2)

    def near(self, function: Callable[[Reals], Reals]) -> Span:
        """Its image under a function within [-1, 1] whose derivative is within [-1, 1]."""
        middle, half = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        value = function(middle)
        return Span.of(np.maximum(value - half, -1.0), np.minimum(value + half, 1.0))

    def power(self, exponent: float) -> Span:
        whole = float(exponent).is_integer()
        if not whole and np.any(self.low <= 0):
            raise Unbounded(f"it has the power {exponent} of numbers that are not positive")
        if exponent < 0:
            return self.power(-exponent).inverse()
        ends = [self.low**exponent, self.high**exponent]
        if whole and exponent and int(exponent) % 2 == 0:
            ends.append(np.where((self.low < 0) & (self.high > 0), 0.0, ends[0]))
        return Span.of(*ends)

    def positive(self) -> Span:
        if np.any(self.low <= 0):
            raise Unbounded("it has a root or logarithm of numbers that are not positive")
        return self


def _constant(number: float, like: Span) -> Span:
    full = np.full_like(like.low, number)
    return Span(full, full)


def _sign(x: Span) -> Span:
    return Span(np.where(x.low >= 0, 1.0, -1.0), np.where(x.high <= 0, -1.0, 1.0))


def _one_minus_square(y: Span) -> Span:
    return _constant(1.0, y).plus(y.squared().negated())


def _cosh(x: Span) -> Span:
    least = np.where((x.low < 0) & (x.high > 0), 1.0, np.cosh(x.low))
    return Span.of(least, np.cosh(x.low), np.cosh(x.high))


def _log1p(x: Span) -> Span:
    _constant(1.0, x).plus(x).positive()
    return x.mapped(np.log1p)


def _scaled(x: Span, number: float) -> Span:
    return x.times(_constant(number, x))


# Of each function: of the argument, the value and the derivative.
_RULES: dict[str, Callable[[Span], tuple[Span, Span]]] = {
    "exp": lambda x: (x.mapped(np.exp), x.mapped(np.exp)),
    "exp2": lambda x: (x.mapped(np.exp2), _scaled(x.mapped(np.exp2), float(np.log(2.0)))),
    "expm1": lambda x: (x.mapped(np.expm1), x.mapped(np.exp)),
    "log": lambda x: (x.positive().mapped(np.log), x.inverse()),
    "log2": lambda x: (x.positive().mapped(np.log2), _scaled(x.inverse(), float(1 / np.log(2.0)))),
    "log10": lambda x: (x.positive().mapped(np.log10), _scaled(x.inverse(), float(1 / np.log(10.0)))),
    "log1p": lambda x: (_log1p(x), _constant(1.0, x).plus(x).inverse()),
    "sqrt": lambda x: (x.positive().mapped(np.sqrt), _scaled(x.mapped(np.sqrt), 2.0).inverse()),
    "cbrt": lambda x: (x.mapped(np.cbrt), _scaled(x.mapped(np.cbrt).squared(), 3.0).inverse()),
    "tanh": lambda x: (x.mapped(np.tanh), _one_minus_square(x.mapped(np.tanh))),
    "sin": lambda x: (x.near(np.sin), x.near(np.cos)),
    "cos": lambda x: (x.near(np.cos), x.near(np.sin).negated()),
    "sinh": lambda x: (x.mapped(np.sinh), _cosh(x)),
    "cosh": lambda x: (_cosh(x), x.mapped(np.sinh)),
    "arctan": lambda x: (x.mapped(np.arctan), _constant(1.0, x).plus(x.squared()).inverse()),
    "square": lambda x: (x.squared(), _scaled(x, 2.0)),
    "reciprocal": lambda x: (x.inverse(), x.squared().inverse().negated()),
    "negative": lambda x: (x.negated(), _constant(-1.0, x)),
    "positive": lambda x: (x, _constant(1.0, x)),
    "absolute": lambda x: (_absolute(x), _sign(x)),
}


def _absolute(x: Span) -> Span:
    least = np.where((x.low < 0) & (x.high > 0), 0.0, np.abs(x.low))
    return Span.of(least, np.abs(x.low), np.abs(x.high))


class Enclosure(np.lib.mixins.NDArrayOperatorsMixin):
    """What a function's values, and its derivative, lie between on each of many intervals."""

    __slots__ = ("slope", "value")

    def __init__(self, value: Span, slope: Span) -> None:
        self.value = value
        self.slope = slope

    def _lifted(self, other: Any) -> Enclosure:
        if isinstance(other, Enclosure):
            return other
        number = np.asarray(other)
        if number.ndim or number.dtype.kind not in "biuf" or not np.isfinite(number):
            raise Unbounded(f"it takes a {type(other).__name__} together with its argument")
        return Enclosure(_constant(float(number), self.value), _constant(0.0, self.value))

    def _chained(self, value: Span, derivative: Span) -> Enclosure:
        return Enclosure(value, self.slope.times(derivative))

    def _negated(self) -> Enclosure:
        return Enclosure(self.value.negated(), self.slope.negated())

    def _times(self, other: Enclosure) -> Enclosure:
        if other is self:
            return self._chained(*_RULES["square"](self.value))
        slope = self.slope.times(other.value).plus(other.slope.times(self.value))
        return Enclosure(self.value.times(other.value), slope)

    def _larger(self, other: Enclosure) -> Enclosure:
        value = Span(*(np.maximum(a, b) for a, b in zip(self.value, other.value)))
        first, second = self.value.low >= other.value.high, other.value.low >= self.value.high
        slopes = [
            np.where(first, a, np.where(second, b, both(a, b)))
            for a, b, both in zip(self.slope, other.slope, (np.minimum, np.maximum))
        ]
        return Enclosure(value, Span(*slopes))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Enclosure:
        name = ufunc.__name__
        if method != "__call__" or kwargs:
            raise Unbounded(f"it calls np.{name} with more than numbers")
        if name in _RULES:
            (x,) = inputs
            return self._chained(*_RULES[name](self.value))
        if name in ("expit", "erf"):
            # Of scipy.special, by its own values.
            y = self.value.mapped(ufunc)
            if name == "expit":
                return self._chained(y, y.times(_constant(1.0, y).plus(y.negated())))
            bell = self.value.squared().negated().mapped(np.exp)
            return self._chained(y, _scaled(bell, float(2 / np.sqrt(np.pi))))
        if len(inputs) != 2:
            raise Unbounded(f"np.{name} is not followed")
        if name == "power":
            return self._raised(*inputs)
        a, b = (self._lifted(z) for z in inputs)
        if name == "add":
            return Enclosure(a.value.plus(b.value), a.slope.plus(b.slope))
        if name == "subtract":
            return Enclosure(a.value.plus(b.value.negated()), a.slope.plus(b.slope.negated()))
        if name == "multiply":
            return a._times(b)
        if name in ("divide", "true_divide"):
            return a._times(b._chained(*_RULES["reciprocal"](b.value)))
        if name == "maximum":
            return a._larger(b)
        if name == "minimum":
            return a._negated()._larger(b._negated())._negated()
        raise Unbounded(f"np.{name} is not followed")

    def _raised(self, base: Any, exponent: Any) -> Enclosure:
        if isinstance(exponent, Enclosure):
            if isinstance(base, Enclosure) or not base > 0:
                raise Unbounded("it has a power whose exponent is not a number")
            log = float(np.log(float(base)))
            value = _scaled(exponent.value, log).mapped(np.exp)
            return exponent._chained(value, _scaled(value, log))
        k = float(exponent)
        value = self.value.power(k)
        derivative = _scaled(self.value.power(k - 1.0), k) if k else _constant(0.0, value)
        return self._chained(value, derivative)

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        raise Unbounded("it makes an array of its argument")

    def __bool__(self) -> bool:
        raise Unbounded("it asks whether its argument is true")


class Series(NamedTuple):
    """A polynomial in Chebyshev's basis in the place of a function."""

    coefficients: Reals
    # Where the polynomial's values lie.
    low: float
    high: float
    # How far it is from the function at most; or why nobody knows, and how far it was seen to be.
    error: Union[float, str]
    seen: float


Function = Callable[[Any], Any]
_made: OrderedDict[tuple[Any, ...], tuple[Function, Series]] = OrderedDict()


def interpolated(function: Function, low: float, high: float, degree: int) -> Series:
    """The polynomial of this degree that interpolates the function at Chebyshev's points of the interval.

    Calls the function on arrays of numbers in the interval, and on an :class:`Enclosure`.
    """
    angles = (np.arange(degree + 1) + 0.5) * np.pi / (degree + 1)
    points = np.cos(angles)
    values = _called(function, low, high, points)
    coefficients = np.cos(np.outer(np.arange(degree + 1), angles)) @ values * (2.0 / (degree + 1))
    coefficients[0] *= 0.5
    # Another function with these values at these points would have to be called the same.
    key = (id(function), low, high, values.tobytes())
    found = _made.get(key)
    if found is None or found[0] is not function:
        found = (function, _judged(function, low, high, coefficients))
        _made[key] = found
        while len(_made) > 64:
            _made.popitem(last=False)
    return found[1]


def _called(function: Function, low: float, high: float, points: Reals) -> Reals:
    values = _numbers.flat(_numbers.as_array(function(_placed(low, high, points))), False).real
    if values.shape != points.shape:
        raise ShapeError("the function returns another shape", kind="shape", remedy="return one number for each")
    return np.asarray(values, dtype=np.float64)


def _placed(low: float, high: float, points: Reals) -> Reals:
    return np.clip(0.5 * (low + high) + 0.5 * (high - low) * points, low, high)


def _judged(function: Function, low: float, high: float, c: Reals) -> Series:
    size = float(np.abs(c).sum())
    count = max(_LEAST, 1 << int(np.ceil(np.log2(16 * len(c)))))
    while True:
        pieces = _Pieces(count, c)
        bounds = float(pieces.lowest), float(pieces.highest)
        seen = float(np.abs(_called(function, low, high, pieces.middle) - pieces.values).max())
        try:
            error = pieces.distance(function, low, high)
        except Unbounded as why:
            return Series(c, *bounds, str(why), seen)
        except Exception as why:
            return Series(c, *bounds, f"{type(why).__name__} where it is called on intervals", seen)
        if seen > error:
            return Series(c, *bounds, "it gives other values on arrays than on intervals", seen)
        if error <= 1.1 * seen + 2.0**-32 * size or count >= max(_MOST, 64 * len(c)):
            return Series(c, *bounds, error, seen)
        count *= 4


class _Pieces:
    """[-1, 1] in pieces, narrower towards its ends, with the values and the derivative of a polynomial on each."""

    def __init__(self, count: int, c: Reals) -> None:
        edges = np.cos(np.linspace(np.pi, 0.0, count + 1))
        edges[0], edges[-1] = -1.0, 1.0
        self.low, self.high = edges[:-1], edges[1:]
        self.middle = 0.5 * (self.low + self.high)
        self.half = (0.5 + _UNIT) * (self.high - self.low) + _UNIT
        # Each of n steps of Clenshaw's rounds, and what it rounds comes back at most n times as large.
        rounding = _UNIT * (len(c) + 4.0) ** 2
        self.slack = rounding * float(np.abs(c).sum())
        self.values = chebyshev.chebval(self.middle, c)
        slopes = chebyshev.chebder(c)
        # |T_k''| <= min(k^2 (k^2 - 1) / 3, (k^2 + k / s) / s^2) where s = sqrt(1 - u^2).
        k, size = np.arange(len(c), dtype=np.float64), np.abs(c)
        s = np.sqrt(np.maximum(1.0 - np.maximum(np.abs(self.low), np.abs(self.high)) ** 2, 1e-300))
        with np.errstate(over="ignore"):
            far = ((size * k**2).sum() + (size * k).sum() / s) / s**2
        bent = np.minimum((size * k**2 * (k**2 - 1.0) / 3.0).sum(), far)
        spread = bent * self.half + rounding * float(np.abs(slopes).sum())
        slope = chebyshev.chebval(self.middle, slopes)
        self.slope = Span.of(slope - spread, slope + spread)
        reach = np.maximum(np.abs(self.slope.low), np.abs(self.slope.high)) * self.half + self.slack
        self.lowest, self.highest = (self.values - reach).min(), (self.values + reach).max()

    def distance(self, function: Function, low: float, high: float) -> float:
        """How far the polynomial is from the function at most."""
        with np.errstate(all="ignore"):
            middle, slope = self._enclosed(function, low, high)
        value = Span.of(middle.low - self.values - self.slack, middle.high - self.values + self.slack)
        apart = slope.plus(self.slope.negated())
        most = np.maximum(np.abs(value.low), np.abs(value.high))
        most = most + self.half * np.maximum(np.abs(apart.low), np.abs(apart.high))
        return float(most.max() * (1.0 + _UNIT))

    def _enclosed(self, function: Function, low: float, high: float) -> tuple[Span, Span]:
        """The function's values in the middle of each piece, and its derivative on each."""
        count, stretch = len(self.middle), 0.5 * (high - low)
        at = [np.concatenate([self.middle, ends]) for ends in (self.low, self.high)]
        x = Span.of(*(_placed(low, high, u) for u in at))
        # Outside the interval the function need not be.
        x = Span(np.maximum(x.low, low), np.minimum(x.high, high))
        found = function(Enclosure(x, _constant(stretch, x)))
        if not isinstance(found, Enclosure):
            raise Unbounded(f"it returns {type(found).__name__} where it is called on intervals")
        slope = Span(found.slope.low[count:], found.slope.high[count:])
        return Span(found.value.low[:count], found.value.high[:count]), slope


def required(series: Series, degree: int, error: Any) -> float:
    """The error that counts: what the caller answers for, else what was proved."""
    if error is None:
        if isinstance(series.error, float):
            return series.error
        raise InputError(
            f"how far a polynomial of degree {degree} is from the function cannot be bounded: {series.error}; "
            f"{series.seen:.3g} was seen",
            kind="approximation",
            remedy="pass error= as you know it, or 0 if the polynomial itself is what you want; or write the function with "
            "NumPy's arithmetic, exp, log, sqrt, tanh, sin, cos and the like",
        )
    try:
        number = float(error)
    except (TypeError, ValueError, OverflowError):
        number = -1.0
    if not 0.0 <= number < float("inf"):
        raise InputError(f"error is {error!r}", kind="approximation", remedy="pass a number that is not negative")
    if number and series.seen > number * (1.0 + 1e-9):
        raise InputError(
            f"the polynomial of degree {degree} is {series.seen:.3g} from the function somewhere, and error is {number:.3g}",
            kind="approximation",
            remedy="raise the degree, or pass a larger error",
        )
    return number
