"""Where elements lie: runs of equally spaced slots, and linear maps between slots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native
from .errors import ShapeError

MAX_ENTRIES = 1 << 23

Parts = list[_native.Ciphertext]
# Maps encoded before, by level and by the name of their slots and weights.
Prepared = dict[tuple[int, bytes], _native.PreparedMap]

# What the slots hold in which no element lies: anything, zeros, or (SAME - 1 + p) what lies p slots before, all along each
# row: those of a tensor of p numbers, its one number if it is SAME.
FREE, ZERO, SAME = 0, 1, 2

_layouts: dict[tuple[Any, ...], NDArray[np.int64]] = {}


class Slots(NamedTuple):
    """Slots of a ciphertext, and of a row of it."""

    total: int
    row: int

    @property
    def rows(self) -> int:
        """Rows of a ciphertext."""
        return self.total // self.row


def block(shape: tuple[int, ...], row: int) -> int:
    """Elements that a fresh tensor keeps together in a row of slots: the largest trailing axes that leave at most a third
    of it free, or the last one; 1 where that does not fit.
    """
    sizes = [int(np.prod(shape[k:], dtype=np.int64)) for k in range(1, len(shape))]
    fitting = [size for size in sizes if size <= row]
    return next((size for size in fitting if row % size <= row // 3), (fitting or [1])[-1])


def canonical(shape: tuple[int, ...], slots: Slots) -> NDArray[np.int64]:
    """The slots of a fresh tensor: its blocks one after another from slot 0; the same object for the same shape, mostly."""
    return blocks(shape, block(shape, slots.row), slots.row)


def blocks(shape: tuple[int, ...], size: int, row: int) -> NDArray[np.int64]:
    """Slots in blocks of ``size`` elements, as many in a row of slots as it holds whole ones."""
    usable = row // size * size
    count = int(np.prod(shape, dtype=np.int64))
    key = (shape, usable if count > usable else 0, row if count > usable else 0)
    at = _layouts.get(key)
    if at is None:
        flat = np.arange(count, dtype=np.int64)
        at = (flat + flat // usable * (row - usable)).reshape(shape)
        at.flags.writeable = False
        if len(_layouts) >= 256:
            _layouts.clear()
        _layouts[key] = at
    return at


def runs(columns: NDArray[np.int64], row: int) -> Iterator[tuple[int, int, int]]:
    """Start, length and stride of the stretches of rows in which every column is equally spaced in one row of slots."""
    total = len(columns)
    steps = np.diff(columns, axis=0)
    same = (columns[1:] // row == columns[:-1] // row).all(axis=1) & (steps == steps[:, :1]).all(axis=1)
    stride = np.where(same, steps[:, 0] if steps.shape[1] else 0, 0)
    # The next place after each at which the stride is another one.
    ends = np.append(np.flatnonzero(np.diff(stride)) + 1, len(stride))
    start = 0
    while start < total:
        if start == total - 1 or stride[start] == 0:
            yield start, 1, 1
            start += 1
            continue
        end = int(ends[np.searchsorted(ends, start, side="right")])
        yield start, end - start + 1, int(stride[start])
        start = end + 1


def one(operation: _native.Operation, *parts: _native.Ciphertext) -> _native.Ciphertext:
    """The operation on these ciphertexts."""
    return _native.each([operation], [list(parts)])[0]


def broadcast_shape(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that both broadcast to."""
    try:
        return np.broadcast_shapes(left, right)
    except ValueError:
        raise ShapeError(
            f"shapes {left} and {right} do not go together", kind="shape", remedy="use shapes that broadcast"
        ) from None


def same_inner(left: int, right: int) -> None:
    """Refuses a product over sizes that differ."""
    if left != right:
        raise ShapeError(f"inner sizes {left} and {right} differ", kind="shape", remedy="make them equal")


def wrong_product(left: tuple[int, ...], right: tuple[int, ...]) -> ShapeError:
    """The error for a product that is none."""
    return ShapeError(f"a product of shapes {left} and {right}", kind="shape", remedy="use vectors and matrices")


def too_many(count: int) -> ShapeError:
    """The error for a product of too many terms."""
    message = f"a product of {count} terms, the limit is {MAX_ENTRIES}"
    return ShapeError(message, kind="shape", remedy="multiply block by block")
