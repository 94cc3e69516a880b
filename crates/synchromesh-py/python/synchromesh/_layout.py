"""Where elements lie: runs of equally spaced slots, and linear maps between slots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _native, _numbers
from .errors import ShapeError

MAX_ENTRIES = 1 << 23

# Maps encoded before, by ciphertext, level and entries.
Prepared = dict[tuple[int, int, int, bytes, bytes], _native.PreparedMap]

# What the slots hold in which no element lies: anything, zeros, or the tensor's one number.
FREE, ZERO, SAME = 0, 1, 2

_layouts: dict[tuple[int, ...], NDArray[np.int64]] = {}


def canonical(shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The slots of a fresh tensor: row after row from slot 0; the same object for the same shape, mostly."""
    at = _layouts.get(shape)
    if at is None:
        at = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.int64).reshape(shape)
        at.flags.writeable = False
        if len(_layouts) >= 256:
            _layouts.clear()
        _layouts[shape] = at
    return at


class Slots(NamedTuple):
    """Slots of a ciphertext, and of a row of it."""

    total: int
    row: int


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


def mapped(
    parts: list[_native.Ciphertext],
    slots: Slots,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    weights: NDArray[Any] | None,
    exact: bool,
    prepared: Prepared | None = None,
    clean: bool = False,
) -> list[_native.Ciphertext]:
    """The ciphertexts in whose slots ``target`` the sums of ``weights`` times the slots ``source`` lie.

    A move by which all elements keep their distances takes a rotation and no level, unless all other slots shall be zero
    (``clean``); any other a product by diagonals.
    """
    count = int(target.max()) // slots.total + 1
    return [_part(parts, slots, source, target, weights, exact, prepared, clean, i) for i in range(count)]


Placed = tuple[list[_native.Ciphertext], NDArray[np.int64]]


def product(context: _native.Context, left: Placed, right: Placed, exact: bool) -> Placed:
    """The product of two encrypted matrices, each its ciphertexts and the slots of its elements."""
    (rows, inner), columns = left[1].shape, right[1].shape[1]
    at = [np.ascontiguousarray(factor[1].reshape(-1)) for factor in (left, right)]
    made = context.matrix_product((rows, inner, columns), *at)
    slots = Slots(context.slots, context.row)
    factors = []
    for (parts, _), right_one in ((left, False), (right, True)):
        for source, target in made.moves(right_one):
            # What the left factor has beyond its elements meets zeros of the right one.
            parts = mapped(parts, slots, source, target, None, exact, clean=right_one)
        factors.append(parts)
    return made.multiply(*factors), made.places().reshape(rows, columns)


def _part(
    parts: list[_native.Ciphertext],
    slots: Slots,
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    weights: NDArray[Any] | None,
    exact: bool,
    prepared: Prepared | None,
    clean: bool,
    index: int,
) -> _native.Ciphertext:
    here = target // slots.total == index
    to, of = target[here] % slots.total, source[here]
    origin, slot = of // slots.total, of % slots.total
    step = (slot - to) % slots.row
    swap = slot // slots.row != to // slots.row
    if weights is None and not clean and len(of) and (origin == origin[0]).all() and (step == step[0]).all():
        if (swap == swap[0]).all():
            return _turned(parts[int(origin[0])], int(step[0]), bool(swap[0]), slots.row)
    values = np.ones(len(of), dtype=np.int64 if exact else np.float64) if weights is None else weights[here]
    total: _native.Ciphertext | None = None
    for k in np.unique(origin):
        own = origin == k
        flat = _numbers.flat(values[own], exact)
        part = parts[int(k)]
        if not flat.any():
            term = one(_native.Operation.scalar("mul", _numbers.flat(np.asarray(0), exact)), part)
        else:
            entries = _entries(to[own], slot[own])
            key = (index, int(k), part.level, entries[0].tobytes(), entries[1].tobytes())
            found = None if prepared is None else prepared.get(key)
            if found is None:
                found = part.prepare(*entries, flat)
                if prepared is not None:
                    prepared[key] = found
            term = part.apply(found)
        total = term if total is None else one(_native.Operation.binary("add"), total, term)
    if total is None:
        total = one(_native.Operation.scalar("mul", _numbers.flat(np.asarray(0), exact)), parts[0])
    return total


def one(operation: _native.Operation, *parts: _native.Ciphertext) -> _native.Ciphertext:
    """The operation on these ciphertexts."""
    return _native.each([operation], [list(parts)])[0]


def _entries(to: NDArray[np.int64], slot: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    return np.ascontiguousarray(to, dtype=np.int64), np.ascontiguousarray(slot, dtype=np.int64)


def _turned(part: _native.Ciphertext, step: int, swap: bool, row: int) -> _native.Ciphertext:
    part = one(_native.Operation.swap(), part) if swap else part
    step = step - row if step > row // 2 else step
    return one(_native.Operation.rotate(step), part) if step else part


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
