"""Sums over axes: all along the rows of slots where that repeats the results, else in stretches of equally spaced slots."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from . import _layout, _moves, _native
from ._layout import FREE, SAME, ZERO, Parts
from ._native import Operation
from ._ranges import Held
from .errors import ShapeError

if TYPE_CHECKING:
    from .tensor import Tensor

Places = NDArray[np.int64]

# What it is worth that results stand all along the rows: about every second one is spread over an axis, which then takes
# no level.
_REPEATED = _moves.LEVEL / 2


def over(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The sums over some axes, which stay with one element each."""
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape))
    columns = _columns(x._at, axes)
    if _period(x, columns) is None and len(axes) > 1 and sum(1 for _ in _layout.runs(columns, x.context.row)) > x.ciphertexts:
        # One axis after the other, where both together are no one stretch.
        return over(over(x, axes[-1:]), axes[:-1])
    return of_columns(x, columns).reshape(shape)


def of_columns(x: Tensor, columns: Places) -> Tensor:
    """The sums of the columns of a matrix of slots, of all elements or some."""
    period = _period(x, columns)
    if period is None:
        return _stretches(x, columns)
    slots = x._slots
    total = _added(x._parts)
    if slots.rows > 1:
        total = _layout.one(Operation.binary("add"), total, _layout.one(Operation.swap(), total))
    if period < slots.row:
        total = _layout.one(Operation.sum_slots(slots.row // period, period), total)
    held = None if x._held is None else Held.everywhere(x._held.elements.total(len(columns)))
    made = x._of("sum", [total], columns[0] % slots.row % period, SAME - 1 + period, held)
    # Zeros are no terms, whatever the certificate fears.
    return made if held is None or x.context.exact else made._certified(float(held.elements.reach) or 1.0)


def _columns(at: Places, axes: tuple[int, ...]) -> Places:
    """The slots with these axes as rows, all others as columns."""
    first = np.moveaxis(at, axes, range(len(axes)))
    count = int(np.prod([at.shape[k] for k in axes], dtype=np.int64))
    return first.reshape(count, -1)


def _period(x: Tensor, columns: Places) -> int | None:
    """Columns, if their sums repeat all along the rows when all slots at that distance are added, at no higher price."""
    slots, period = x._slots, columns.shape[1]
    if columns.size != x.size or slots.row % period or (x._rest != ZERO and x._is_padded):
        return None
    residues = columns % slots.row % period
    if (residues != residues[0]).any() or len(np.unique(residues[0])) != period:
        return None
    price = _moves.ROTATION * (_moves.rotations_of(slots.row // period) + (slots.rows > 1))
    apart = _moves.ROTATION * _moves.rotations_of(min(len(columns), slots.row // period))
    return period if price <= apart + _REPEATED else None


def _added(parts: Parts) -> _native.Ciphertext:
    return reduce(lambda total, part: _layout.one(Operation.binary("add"), total, part), parts)


class _Group:
    """Stretches that are added before they are summed: equally long ones, or such that end in zeros."""

    def __init__(self, run: Tensor) -> None:
        self.first = run
        self.parts = run._parts
        self.count = 0
        self.terms = 0
        self.runs = 0

    def add(self, run: Tensor) -> None:
        if self.runs:
            self.parts = _native.each([Operation.binary("add")] * len(self.parts), [list(p) for p in zip(self.parts, run._parts)])
        self.count = max(self.count, len(run))
        self.terms += len(run)
        self.runs += 1

    def sum(self, x: Tensor, stride: int) -> Tensor:
        operation = Operation.sum_slots(self.count, stride)
        parts = self.parts
        if self.count > 1:
            parts = _native.each([operation] * len(parts), [[part] for part in parts])
        held = self.first._held
        if held is not None:
            beside = held.beside if self.count == 1 else held.mixed().beside.and_zero().total(self.count)
            held = Held(held.elements.total(self.terms), beside.total(self.runs))
        return x._of("sum", parts, self.first._at[0], FREE, held)


def _stretches(x: Tensor, columns: Places) -> Tensor:
    groups: dict[tuple[int, int, bytes, int], _Group] = {}
    total = x.context.slots
    sizes = np.bincount(x._at.reshape(-1) // total)
    for start, count, stride in _layout.runs(columns, x.context.row):
        places = columns[start : start + count]
        run = x._view(places)
        own = np.unique(places // total)
        # Alone in its ciphertexts, with zeros beside it: as long as any other that begins at the same slots.
        alone = x._rest == ZERO and count > 1 and int(sizes[own].sum()) == places.size
        key = (0 if alone else count, stride, (run._at[0] if alone else run._at).tobytes(), len(run._parts))
        groups.setdefault(key, _Group(run)).add(run)
    result: Tensor | None = None
    for key, group in groups.items():
        term = group.sum(x, key[1])
        result = term if result is None else result._binary("add", term)
    if result is None:
        raise ShapeError("a sum over no elements", kind="shape", remedy="sum over an axis that has some")
    return result
