"""Ciphertexts times a number that nobody has asked for yet: in CKKS a product takes a level unless what follows takes it along."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import _native, _numbers
from ._layout import Parts
from ._native import Operation


class Due:
    """Ciphertexts, and a number that they are to be multiplied by."""

    __slots__ = ("_made", "factor", "own")

    def __init__(self, own: Parts, factor: float = 1.0) -> None:
        self.own = own
        self.factor = factor
        self._made: Parts | None = own if factor == 1.0 else None

    def parts(self, made: Callable[[Parts], None]) -> Parts:
        """The products; ``made`` is told when they are made."""
        if self._made is None:
            self._made = scaled(self.own, self.factor)
            made(self._made)
        return self._made

    @property
    def level(self) -> int:
        """Levels that remain before the product."""
        return min(part.level for part in self.own)


def scaled(parts: Parts, factor: float) -> Parts:
    """The ciphertexts times a number."""
    if factor == 1.0:
        return parts
    operation = Operation.scalar("mul", _numbers.flat(np.asarray(factor), False))
    return _native.each([operation] * len(parts), [[part] for part in parts])


def spared(x: Due, y: Due) -> tuple[Parts, Parts] | None:
    """Ciphertexts whose products are those of both, if one of both has a level to spare for the numbers that are due."""
    factor = x.factor * y.factor
    if x.factor == 1.0 and y.factor == 1.0:
        return x.own, y.own
    if x.level > y.level:
        return scaled(x.own, factor), y.own
    return (x.own, scaled(y.own, factor)) if y.level > x.level else None
