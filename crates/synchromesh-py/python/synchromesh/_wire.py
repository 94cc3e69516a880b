"""What a file says of a tensor beside its ciphertexts: shape, dtype, slots."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _numbers
from ._layout import FREE, SAME, ZERO, Slots, blocks
from ._ranges import Held, Range
from .errors import DecodeError

class Head:
    """What a file says of a tensor, checked."""

    def __init__(
        self, at: NDArray[np.int64], dtype: np.dtype[Any], rest: int, held: Held | None = None
    ) -> None:
        self.at = at
        self.dtype = dtype
        self.rest = rest
        self.held = held

    @classmethod
    def read(cls, data: bytes | None, rows: int, parts: int, of: Slots, exact: bool) -> Head:
        slots = of.total
        if slots == 0 or rows <= 0 or rows > parts * slots or rows <= (parts - 1) * slots:
            raise _unreadable(f"{parts} ciphertexts of {slots} slots do not make {rows} rows")
        if data is None:
            return cls(blocks((rows,), 1, of.row), np.dtype(np.int64 if exact else np.float64), FREE)
        try:
            head = json.loads(bytes(data))
            shape = tuple(_numbers.whole(n, "axis", 1, 1 << 40) for n in head["shape"])
            dtype = np.dtype(str(head["dtype"]))
            listed = None if "block" in head else head.get("slots")
            rest = _numbers.whole(head["rest"], "rest", FREE, SAME)
            held = _read(head, exact, rest)
            size = int(np.prod(shape, dtype=object)) if shape else 1
            if size > rows or dtype not in _DTYPES:
                raise _unreadable(f"shape {shape} of {dtype} in {rows} rows")
            block = _numbers.whole(head.get("block", 1), "block", 1, of.row)
            at = blocks(shape, block, of.row) if listed is None else np.asarray(listed, dtype=np.int64).reshape(shape)
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, MemoryError) as error:
            raise _unreadable(str(error)) from None
        if at.min() < 0 or at.max() >= parts * slots or len(np.unique(at)) != at.size:
            raise _unreadable("slots that there are not, or twice")
        return cls(at, dtype, rest, held)


_DTYPES = (np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.complex128))


def _unreadable(message: str) -> DecodeError:
    return DecodeError(f"the tensor cannot be read: {message}", kind="session", remedy="use an unaltered file")


def written(held: Held) -> dict[str, Any]:
    """What a file says of ranges: those that were declared, and are finite."""
    ranges = {"range": held.elements, "beside": held.beside}
    found = {name: [r.low, r.high] for name, r in ranges.items() if r.public and abs(float(r.reach)) < float("inf")}
    return found if "range" in found else {}


def _read(head: Any, exact: bool, rest: int) -> Held | None:
    if head.get("range") is None:
        return None
    elements = Range.declared(tuple(head["range"]), exact, "range")
    if elements is None:
        return None
    if rest == ZERO:
        return Held.alone(elements)
    beside = None if head.get("beside") is None else Range.declared(tuple(head["beside"]), exact, "range")
    return Held(elements, elements.unknown if beside is None else beside)
