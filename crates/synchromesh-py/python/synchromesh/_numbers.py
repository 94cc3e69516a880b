"""Numbers between NumPy arrays and the native module: dtypes, ranges, integers wider than 63 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DTypeError, InputError, ShapeError, SynchromeshError

WIDE_BYTES = 32
MAX_ELEMENTS = 1 << 28


def as_array(values: Any) -> NDArray[Any]:
    """An array of numbers; anything else is refused by its dtype."""
    try:
        array = np.asarray(values)
    except SynchromeshError:
        raise
    except (ValueError, TypeError, OverflowError, AttributeError) as error:
        raise ShapeError(f"these values are no array: {error}", kind="shape", remedy="pass a regular array") from None
    if array.size > MAX_ELEMENTS:
        raise ShapeError(
            f"{array.size} numbers, the limit is {MAX_ELEMENTS}", kind="shape", remedy="encrypt it in pieces"
        )
    if array.dtype.kind not in "biufcO":
        raise DTypeError(
            f"dtype {array.dtype} holds no numbers", kind="dtype", remedy="convert it to float64, complex128 or int64"
        )
    return array


def flat(array: NDArray[Any], exact: bool) -> NDArray[Any]:
    """A contiguous vector in a form the native module takes: float64, complex128, int64, or rows of bytes."""
    return _integers(array) if exact else _reals(array)


def result_dtype(array: NDArray[Any], exact: bool) -> np.dtype[Any]:
    """The dtype of the numbers that decryption gives for an array."""
    if exact:
        return np.dtype(np.int64)
    return np.dtype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _reals(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            raise DTypeError(
                "an array of objects that are no numbers", kind="dtype", remedy="convert it to float64"
            ) from None
    kind = np.complex128 if array.dtype.kind == "c" else np.float64
    vector = np.ascontiguousarray(array, dtype=kind).reshape(-1)
    if not np.isfinite(vector).all():
        index = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise InputError(
            f"number {index} is not finite", kind="not_finite", remedy="remove or replace NaN and infinite numbers"
        )
    return vector


def _integers(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind in "fc":
        raise DTypeError(
            f"dtype {array.dtype} where bfv and bgv compute with integers",
            kind="dtype",
            remedy="round the numbers and convert them to int64, or plan for ckks",
        )
    if array.dtype.kind == "O" or (array.dtype.kind == "u" and array.dtype.itemsize == 8):
        return _wide(array.reshape(-1))
    return np.ascontiguousarray(array, dtype=np.int64).reshape(-1)


def _wide(vector: NDArray[Any]) -> NDArray[Any]:
    try:
        rows = b"".join(_index(x).to_bytes(WIDE_BYTES, "little", signed=True) for x in vector)
    except OverflowError:
        raise InputError(
            "an integer has more than 255 bits", kind="value_exceeds_modulus", remedy="scale the numbers down"
        ) from None
    return np.frombuffer(rows, dtype=np.uint8).reshape(-1, WIDE_BYTES)


def _index(x: Any) -> int:
    if not isinstance(x, (int, np.integer)):
        raise DTypeError(f"{type(x).__name__} where an integer is needed", kind="dtype", remedy="convert it to int")
    return int(x)


def from_native(values: NDArray[Any]) -> NDArray[Any]:
    """The numbers of a vector from the native module: rows of bytes become Python integers."""
    if values.ndim == 1:
        return values
    out = np.empty(len(values), dtype=object)
    for i, row in enumerate(values):
        out[i] = int.from_bytes(row.tobytes(), "little", signed=True)
    return out


def buffer(data: Any) -> NDArray[np.uint8]:
    """The bytes of any object with a buffer."""
    try:
        return np.frombuffer(data, dtype=np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise DTypeError(
            f"{type(data).__name__} has no bytes: {error}", kind="dtype", remedy="pass bytes or a memoryview"
        ) from None


def whole(value: Any, what: str, low: int, high: int) -> int:
    """An integer in a range, from anything that is one."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise DTypeError(f"{what} is {value!r}, not an integer", kind="dtype", remedy="pass an int")
    number = int(value)
    if not low <= number <= high:
        raise InputError(f"{what} is {number}, outside {low} to {high}", kind="operation", remedy="choose another")
    return number
