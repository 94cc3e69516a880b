"""What is known of the numbers in slots: an interval that holds all of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from .errors import DTypeError, InputError

Number = Union[int, float]
Bound = Union[float, "tuple[float, float]"]

# Wider than any plaintext modulus; integers grow no further.
_MOST = 1 << 1000
# Part of an interval's width by which doubles may miss its ends.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Range:
    """No number is below ``low`` or above ``high``.

    ``public`` where that was declared; otherwise it was seen in the data, and is for no file.
    """

    low: Number
    high: Number
    public: bool = True

    @classmethod
    def of(cls, array: NDArray[Any], public: bool = True) -> Range | None:
        """That of an array's numbers; none of complex ones."""
        if array.dtype.kind == "c" or array.size == 0:
            return None
        low, high = array.min(), array.max()
        exact = array.dtype.kind in "biuO"
        return cls(int(low), int(high), public) if exact else cls(float(low), float(high), public)

    @classmethod
    def declared(cls, bound: Any, exact: bool, what: str = "bound") -> Range | None:
        """Of a largest absolute value, or of a pair of ends; none where it is infinite, in an exact scheme."""
        pair = isinstance(bound, (tuple, list))
        try:
            low, high = bound if pair else (-bound, bound)
            ends = float(low), float(high)
        except (TypeError, ValueError, OverflowError):
            remedy = "pass a number, or a pair of the lowest and the highest one"
            raise DTypeError(f"{what} is {bound!r}, no number", kind="dtype", remedy=remedy) from None
        if exact and ends[0] < ends[1] and math.inf in (ends[1], -ends[0]):
            return None
        if not (math.isfinite(ends[0]) and math.isfinite(ends[1]) and (ends[0] < ends[1] or (pair and ends[0] == ends[1]))):
            remedy = "pass a positive number, or the lowest and the highest one"
            raise InputError(f"{what} is {bound!r}", kind="bound_out_of_range", remedy=remedy)
        # Integers as they are: a double does not hold all of them.
        return cls(math.ceil(low), math.floor(high)) if exact else cls(*ends)

    @property
    def reach(self) -> Number:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    def __str__(self) -> str:
        return f"{shown(self.low)} to {shown(self.high)}"

    def holds(self, other: Range) -> bool:
        """Whether the other one lies in this one, up to the rounding of doubles."""
        slack = _ROUNDING * (self.high - self.low) if isinstance(self.low, float) else 0
        return bool(self.low - slack <= other.low and other.high <= self.high + slack)

    @property
    def zero(self) -> Range:
        """0 alone, as numbers of the same kind."""
        nothing = type(self.low)(0)
        return Range(nothing, nothing)

    @property
    def unknown(self) -> Range:
        """All numbers of the same kind."""
        return Range(-_MOST, _MOST) if isinstance(self.low, int) else Range(-math.inf, math.inf)

    def and_zero(self) -> Range:
        """This one and 0."""
        return self.hull(self.zero)

    def common(self, other: Range) -> Range | None:
        """What lies in both."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Range(low, high, self.public and other.public) if low <= high else None

    def hull(self, other: Range) -> Range:
        """The least one that holds both."""
        return Range(min(self.low, other.low), max(self.high, other.high), self.public and other.public)

    def _made(self, *ends: Number, public: bool = True) -> Range:
        if any(x != x for x in ends):
            ends = (-math.inf, math.inf)
        low, high = min(ends), max(ends)
        if isinstance(low, float):
            return Range(low, high, self.public and public)
        return Range(max(low, -_MOST), min(high, _MOST), self.public and public)

    def add(self, other: Range) -> Range:
        """x + y."""
        return self._made(self.low + other.low, self.high + other.high, public=other.public)

    def sub(self, other: Range) -> Range:
        """x - y."""
        return self._made(self.low - other.high, self.high - other.low, public=other.public)

    def mul(self, other: Range) -> Range:
        """x y."""
        products = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return self._made(*products, public=other.public)

    def square(self) -> Range:
        """x^2."""
        ends = [self.low * self.low, self.high * self.high]
        return self._made(*ends, *self._straddled(True))

    def neg(self) -> Range:
        """-x."""
        return self._made(-self.low, -self.high)

    def total(self, count: int) -> Range:
        """The sum of ``count`` of them."""
        return self._made(count * self.low, count * self.high)

    def weighted(self, rows: NDArray[Any]) -> Range:
        """The sums of them with the weights in each row."""
        if rows.dtype.kind in "biu" and int(np.abs(rows).max()) * rows.shape[1] >= 1 << 62:
            rows = rows.astype(object)
        above, below = (rows.sum(axis=1, where=chosen(rows, 0)) for chosen in (np.greater, np.less))
        if rows.dtype.kind in "biu" and int(above.max() - below.min()) * self.reach >= 1 << 62:
            above, below = above.astype(object), below.astype(object)
        low, high = (above * self.low + below * self.high).min(), (above * self.high + below * self.low).max()
        exact = isinstance(self.low, int)
        return self._made(int(low), int(high)) if exact else self._made(float(low), float(high))

    def polynomial(self, coefficients: NDArray[Any]) -> Range:
        """c_0 + c_1 x + c_2 x^2 + .."""
        kind = type(self.low)
        total, power = self.zero, Range(kind(1), kind(1))
        for k, c in enumerate(coefficients):
            if k:
                power = self._made(*(_power(x, k) for x in (self.low, self.high)), *self._straddled(k % 2 == 0))
            total = total.add(power.mul(Range(kind(c), kind(c))))
        return Range(total.low, total.high, self.public)

    def _straddled(self, even: bool) -> list[Number]:
        """0 where an even function has its least value between the ends."""
        return [type(self.low)(0)] if even and self.low < 0 < self.high else []


@dataclass(frozen=True)
class Held:
    """Where a tensor's numbers lie: its elements, and what its other slots hold."""

    elements: Range
    beside: Range

    @classmethod
    def alone(cls, elements: Range | None) -> Held | None:
        """Elements with zeros beside them."""
        return None if elements is None else cls(elements, elements.zero)

    @classmethod
    def everywhere(cls, held: Range | None) -> Held | None:
        """One range for all slots."""
        return None if held is None else cls(held, held)

    def mixed(self) -> Held:
        """Elements in other slots, and beside them what they and their neighbours were."""
        both = self.elements.hull(self.beside)
        return Held(both, both)

    def mapped(self, function: Callable[[Range], Range]) -> Held:
        """A function of every number."""
        return Held(function(self.elements), function(self.beside))

    def combined(self, op: str, other: Held) -> Held:
        """x + y, x - y or x y of every number."""
        name = {"add": Range.add, "sub": Range.sub, "mul": Range.mul}[op]
        return Held(name(self.elements, other.elements), name(self.beside, other.beside))


def _power(x: Number, k: int) -> Number:
    """x^k; of what is beyond any modulus or double, its sign."""
    sign = -1 if x < 0 and k % 2 else 1
    if isinstance(x, int):
        return x**k if x.bit_length() * k <= 1100 else sign * _MOST
    return x**k if not x or k * math.log2(abs(x)) < 1000 else sign * math.inf


def shown(x: Number) -> str:
    """A number as messages show it."""
    if isinstance(x, float):
        return f"{x:.6g}"
    return str(x) if abs(x) < 10**15 else f"{'-' if x < 0 else ''}2^{abs(x).bit_length()}"
