"""Public matrices that are multiplied by many encrypted vectors: their diagonals are encoded once."""

from __future__ import annotations

import weakref
from typing import Any

from . import _layout, _numbers
from .context import Context
from .errors import DTypeError, ShapeError
from .tensor import Tensor

__all__ = ["PublicMatrix"]


class PublicMatrix:
    """A public matrix; ``matrix @ x`` and ``x @ matrix`` encode it for the level and layout of x once, and keep that."""

    __array_ufunc__ = None

    def __init__(self, matrix: Any) -> None:
        array = _numbers.as_array(matrix).copy()
        if array.ndim != 2 or array.size == 0:
            raise ShapeError(f"a matrix of shape {array.shape}", kind="shape", remedy="pass rows of numbers")
        array.flags.writeable = False
        self.array = array
        self._prepared: weakref.WeakKeyDictionary[Context, _layout.Prepared] = weakref.WeakKeyDictionary()

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        return self.array.shape

    def __repr__(self) -> str:
        return f"PublicMatrix({self.shape}, {self.encodings} encodings kept)"

    @property
    def encodings(self) -> int:
        """How many encodings are kept."""
        return sum(len(held) for held in self._prepared.values())

    def __matmul__(self, other: Any) -> Tensor:
        if not isinstance(other, Tensor):
            raise DTypeError(f"{type(other).__name__} is no Tensor", kind="dtype", remedy="multiply .array instead")
        return other.__rmatmul__(self.array, self._prepared.setdefault(other.context, {}))

    def __rmatmul__(self, other: Any) -> Tensor:
        if not isinstance(other, Tensor):
            raise DTypeError(f"{type(other).__name__} is no Tensor", kind="dtype", remedy="multiply .array instead")
        return other._times_public(self.array, self._prepared.setdefault(other.context, {}))

    def clear(self) -> None:
        """Forgets the encodings."""
        self._prepared.clear()
