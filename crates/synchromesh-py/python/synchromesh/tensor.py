"""Encrypted tensors: arrays of numbers spread over the slots of one or more ciphertexts.

An element lies in a global slot: slot ``s % slots`` of ciphertext ``s // slots``. A tensor keeps the slots of its
elements as an integer array of its own shape, so that slicing, transposing and reshaping move nothing. Slots that no
element lies in may hold anything (``FREE``), zeros (``ZERO``), or the tensor's one number (``SAME``).
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from . import _layout, _native, _numbers
from ._layout import FREE, SAME, ZERO, canonical
from ._native import Operation
from ._wire import Head
from .errors import DTypeError, InputError, MismatchError, ShapeError

if TYPE_CHECKING:
    from .context import Context

__all__ = ["Tensor", "concatenate"]

Slots = NDArray[np.int64]


class Tensor:
    """An encrypted array. Operations return new tensors; levels and scales are managed for you."""

    __slots__ = ("__weakref__", "_at", "_rest", "_parts", "context", "dtype")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    context: Context
    dtype: np.dtype[Any]
    _parts: list[_native.Ciphertext]
    _at: Slots
    _rest: int

    def __init__(self) -> None:
        raise DTypeError("tensors are made by encryption", kind="dtype", remedy="call Context.encrypt")

    @classmethod
    def _made(
        cls,
        context: Context,
        what: str,
        parts: list[_native.Ciphertext],
        at: Slots,
        dtype: np.dtype[Any],
        rest: int = FREE,
    ) -> Tensor:
        self = cls.__new__(cls)
        self.context = context
        self._parts = parts
        self._at = at
        self.dtype = dtype
        self._rest = rest
        if what and context._trace is not None:
            level, _, _, budget, error, bound = parts[0].state()
            context._trace.append((what, level, budget if context.exact else _precision(bound, error)))
        return self

    def _each(self, operation: Operation, *others: list[_native.Ciphertext]) -> list[_native.Ciphertext]:
        """The operation on each ciphertext, with the one in its place of each other list."""
        operands = [list(parts) for parts in zip(self._parts, *others)]
        return _native.each([operation] * len(operands), operands)

    def _with(self, what: str, parts: list[_native.Ciphertext], rest: int = FREE) -> Tensor:
        return Tensor._made(self.context, what, parts, self._at, self.dtype, rest)

    # What is known without the key.

    @property
    def shape(self) -> tuple[int, ...]:
        """As NumPy's."""
        return self._at.shape

    @property
    def ndim(self) -> int:
        """As NumPy's."""
        return self._at.ndim

    @property
    def size(self) -> int:
        """Elements."""
        return self._at.size

    @property
    def ciphertexts(self) -> int:
        """How many ciphertexts hold the elements."""
        return len(self._parts)

    @property
    def level(self) -> int:
        """Rescales or modulus switches that remain."""
        return min(part.level for part in self._parts)

    @property
    def noise_budget(self) -> float:
        """Bits by which the noise may still grow; by certificates, from public data only."""
        return min(part.state()[3] for part in self._parts)

    @property
    def error_bound(self) -> float:
        """CKKS: how far a decrypted element may be off, except with probability 2^-128; 0 in BFV and BGV."""
        return max(part.state()[4] for part in self._parts)

    @property
    def precision_bits(self) -> float:
        """CKKS: bits of the largest element that are surely right; infinite in BFV and BGV."""
        return min(_precision(*part.state()[5:3:-1]) for part in self._parts)

    @property
    def bound(self) -> float:
        """CKKS: no element exceeds it, by declaration; infinite in BFV and BGV."""
        return max(part.state()[5] for part in self._parts)

    @property
    def key_id(self) -> str:
        """Names the secret key that decrypts it."""
        return self._parts[0].state()[2]

    def __repr__(self) -> str:
        state = f"level {self.level} of {self.context.top_level}, {self.noise_budget:.1f} bits of noise left"
        if not self.context.exact:
            state += f", {self.precision_bits:.1f} bits of precision"
        return f"Tensor({self.context.scheme}, shape {self.shape}, {state})"

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise DTypeError("the truth of an encrypted value is unknown", kind="dtype", remedy="decrypt it first")

    # Shape: nothing moves.

    def __getitem__(self, key: Any) -> Tensor:
        """Elements by NumPy's basic and integer-array indexing."""
        try:
            at = np.asarray(self._at[key])
        except IndexError as error:
            raise ShapeError(f"{error}", kind="shape", remedy=f"index within shape {self.shape}") from None
        if at.size == 0:
            raise ShapeError("no elements are left", kind="shape", remedy="keep at least one")
        if len(np.unique(at)) != at.size:
            return self._gathered("index", at)
        return self._view(at)

    def _view(self, at: Slots) -> Tensor:
        """The elements at these slots, without the ciphertexts that none of them lies in."""
        slots = self.context.slots
        used = np.unique(at // slots)
        rest = self._rest if at.size == self.size else FREE
        parts = self._parts
        if len(used) < len(parts):
            at = np.searchsorted(used, at // slots) * slots + at % slots
            parts = [parts[i] for i in used]
        return Tensor._made(self.context, "", parts, at, self.dtype, rest)

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in another shape."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        try:
            at = self._at.reshape(tuple(wanted))
        except (ValueError, TypeError) as error:
            raise ShapeError(f"{error}", kind="shape", remedy=f"keep {self.size} elements") from None
        return Tensor._made(self.context, "", self._parts, at, self.dtype, self._rest)

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return Tensor._made(self.context, "", self._parts, self._at.T, self.dtype, self._rest)

    def transpose(self, *axes: int) -> Tensor:
        """The axes in another order, by default reversed."""
        try:
            at = self._at.transpose(*axes)
        except (ValueError, TypeError) as error:
            raise ShapeError(f"{error}", kind="shape", remedy=f"permute {self.ndim} axes") from None
        return Tensor._made(self.context, "", self._parts, at, self.dtype, self._rest)

    # Sums and products element by element.

    def __neg__(self) -> Tensor:
        return self._with("neg", self._each(Operation.neg()), self._rest)

    def __pos__(self) -> Tensor:
        return self

    def __add__(self, other: Any) -> Tensor:
        return self._binary("add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Tensor:
        return self._binary("sub", other)

    def __rsub__(self, other: Any) -> Tensor:
        return (-self)._binary("add", other)

    def __mul__(self, other: Any) -> Tensor:
        return self._binary("mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Tensor:
        if isinstance(other, Tensor) or self.context.exact:
            remedy = "multiply by a polynomial that approximates the inverse, in ckks"
            raise DTypeError("division by or of encrypted integers", kind="dtype", remedy=remedy)
        divisor = _numbers.as_array(other)
        if divisor.dtype.kind == "O" or not np.all(divisor):
            raise InputError("division by zero", kind="not_finite", remedy="divide by numbers other than 0")
        with np.errstate(all="ignore"):
            inverse = 1.0 / divisor
        return self._binary("mul", inverse)

    def __pow__(self, exponent: Any) -> Tensor:
        k = _numbers.whole(exponent, "exponent", 1, 1 << 12)
        power, square = None, self
        while True:
            if k & 1:
                power = square if power is None else power * square
            k >>= 1
            if not k:
                return power if power is not None else self
            square = square.square()

    def square(self) -> Tensor:
        """Every element squared."""
        return self._with("square", self._each(Operation.square()), self._rest)

    def _binary(self, op: str, other: Any) -> Tensor:
        if isinstance(other, Tensor):
            x, y = self._aligned(other)
            parts = x._each(Operation.binary(op), y._parts)
            rest = x._rest if x._rest == y._rest else ZERO if op == "mul" and ZERO in (x._rest, y._rest) else FREE
            return Tensor._made(x.context, op, parts, x._at, np.result_type(x.dtype, y.dtype), rest)
        array = _numbers.as_array(other)
        dtype = np.result_type(self.dtype, _numbers.result_dtype(array, self.context.exact))
        if array.ndim == 0:
            value = _numbers.flat(array, self.context.exact)
            parts = self._each(Operation.scalar(op, value))
            rest = self._rest if op == "mul" or self._rest == SAME else FREE
            return Tensor._made(self.context, op, parts, self._at, dtype, rest)
        x = self._broadcast(_layout.broadcast_shape(self.shape, array.shape))
        public = x._scattered(np.broadcast_to(array, x.shape))
        parts = _native.each([Operation.plain(op, values) for values in public], [[part] for part in x._parts])
        rest = ZERO if op == "mul" or x._rest == ZERO else FREE
        return Tensor._made(x.context, op, parts, x._at, dtype, rest)

    def _scattered(self, array: NDArray[Any]) -> list[NDArray[Any]]:
        """Public numbers in the slots of the elements, zeros elsewhere, a vector for each ciphertext."""
        vector = _numbers.flat(array, self.context.exact)
        slots = self.context.slots
        shape = (len(self._parts) * slots, *vector.shape[1:])
        spread = np.zeros(shape, dtype=vector.dtype)
        spread[self._at.reshape(-1)] = vector
        return [spread[i * slots : (i + 1) * slots] for i in range(len(self._parts))]

    def _aligned(self, other: Tensor) -> tuple[Tensor, Tensor]:
        """Both in one shape, with equal elements in equal slots."""
        if other.context is not self.context:
            self.context._require_own(other.context)
        if other._at is self._at and len(other._parts) == len(self._parts):
            return self, other
        shape = _layout.broadcast_shape(self.shape, other.shape)
        x, y = self._broadcast(shape), other._broadcast(shape)
        return x, y._moved(x._at)

    def _broadcast(self, shape: tuple[int, ...]) -> Tensor:
        if shape == self.shape:
            return self
        if self.size == 1:
            return self._everywhere(shape)
        return self._gathered("broadcast", np.broadcast_to(self._at, shape))

    def _everywhere(self, shape: tuple[int, ...]) -> Tensor:
        """One element, repeated."""
        slot = int(self._at.reshape(-1)[0])
        part = self._parts[slot // self.context.slots]
        if self._rest == FREE:
            mask = np.zeros(self.context.slots, dtype=np.int64 if self.context.exact else np.float64)
            mask[slot % self.context.slots] = 1
            part = _layout.one(Operation.plain("mul", mask), part)
        spread = part if self._rest == SAME else _layout.one(Operation.sum_slots(0, 1), part)
        at = canonical(shape)
        count = -(-at.size // self.context.slots)
        return Tensor._made(self.context, "broadcast", [spread] * count, at, self.dtype, SAME if at.size == 1 else FREE)

    # Elements in other slots.

    def _moved(self, at: Slots) -> Tensor:
        """The same elements in other slots."""
        if self._at is at or np.array_equal(self._at, at):
            return self
        return self._mapped("move", at, self._at.reshape(-1), at.reshape(-1), None)

    def _gathered(self, what: str, source: Slots) -> Tensor:
        """A fresh layout of elements that lie at ``source``, each as often as it is named."""
        at = canonical(source.shape)
        return self._mapped(what, at, source.reshape(-1), at.reshape(-1), None)

    def _mapped(
        self,
        what: str,
        at: Slots,
        source: Slots,
        target: Slots,
        weights: NDArray[Any] | None,
        prepared: _layout.Prepared | None = None,
    ) -> Tensor:
        """The linear map that adds ``weights`` times the element at ``source`` to the slot ``target``."""
        context = self.context
        slots = _layout.Slots(context.slots, context.row)
        parts = _layout.mapped(self._parts, slots, source, target, weights, context.exact, prepared)
        kind = self.dtype if weights is None else np.result_type(self.dtype, _kind_of(weights, context.exact))
        return Tensor._made(context, what, parts, at, kind)

    # Sums and products over axes.

    def sum(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The sum over an axis, or of all elements."""
        if axis is None:
            total = self._total()
            return total.reshape((1,) * self.ndim) if keepdims else total
        axis = _numbers.whole(axis, "axis", -self.ndim, self.ndim - 1) % max(self.ndim, 1)
        columns = np.moveaxis(self._at, axis, 0)
        result = self._sums(columns.reshape(len(columns), -1))
        shape = list(columns.shape[1:])
        if keepdims:
            shape.insert(axis, 1)
        return result.reshape(tuple(shape))

    def _total(self) -> Tensor:
        if self._rest != ZERO:
            return self._sums(self._at.reshape(-1, 1)).reshape(())
        part = self._parts[0]
        for other in self._parts[1:]:
            part = _layout.one(Operation.binary("add"), part, other)
        total = _layout.one(Operation.sum_slots(0, 1), part)
        return Tensor._made(self.context, "sum", [total], canonical(()), self.dtype, SAME)

    def _sums(self, columns: Slots) -> Tensor:
        """The sums of the columns of a matrix of slots."""
        groups: dict[tuple[int, int, bytes, int], Tensor] = {}
        for start, count, stride in _layout.runs(columns, self.context.row):
            run = self._view(columns[start : start + count])
            key = (count, stride, run._at.tobytes(), len(run._parts))
            have = groups.get(key)
            groups[key] = run if have is None else have._binary("add", run)
        result: Tensor | None = None
        for (count, stride, _, _), run in groups.items():
            parts = run._parts if count == 1 else run._each(Operation.sum_slots(count, stride))
            term = Tensor._made(self.context, "sum", parts, run._at[0], self.dtype)
            result = term if result is None else result._binary("add", term)
        if result is None:
            raise ShapeError("a sum over no elements", kind="shape", remedy="sum over an axis that has some")
        return result

    def mean(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The mean over an axis, or of all elements; CKKS only."""
        total = self.sum(axis, keepdims)
        return total.__truediv__(self.size // total.size)

    def dot(self, other: Any) -> Tensor:
        """As ``@``."""
        return self.__matmul__(other)

    def __matmul__(self, other: Any) -> Tensor:
        """The product with a public matrix or vector, or the inner product of two encrypted vectors."""
        if isinstance(other, Tensor):
            if self.ndim == 1 and other.ndim == 1:
                _layout.same_inner(self.shape[0], other.shape[0])
                return (self * other).sum()
            if self.ndim == 2 and other.ndim == 1:
                _layout.same_inner(self.shape[1], other.shape[0])
                return (self * other).sum(axis=1)
            if self.ndim == 1 and other.ndim == 2:
                return other.T @ self
            return self._times_encrypted(other)
        matrix = _numbers.as_array(other)
        if self.ndim not in (1, 2) or matrix.ndim not in (1, 2):
            raise _layout.wrong_product(self.shape, matrix.shape)
        _layout.same_inner(self.shape[-1], matrix.shape[0])
        if matrix.ndim == 1:
            return (self * matrix).sum() if self.ndim == 1 else (self * matrix).sum(axis=1)
        if self.ndim == 1:
            return self._times(self._at, matrix.T, canonical((matrix.shape[1],)))
        # A row of the result stays where the row of the argument is: then rotations do not depend on the row.
        rows, inner = self.shape
        outer = matrix.shape[1]
        steps = np.diff(self._at, axis=1)
        if outer <= inner and steps.size and (steps == 1).all():
            at = self._at[:, :outer]
        else:
            at = canonical((rows, outer))
        return self._times(self._at.T, matrix.T, at.T).T

    def _times_encrypted(self, other: Tensor) -> Tensor:
        """The product of encrypted matrices in blocks (Jiang et al., ePrint 2018/1041; ePrint 2023/593)."""
        if self.ndim != 2 or other.ndim != 2:
            raise _layout.wrong_product(self.shape, other.shape)
        _layout.same_inner(self.shape[1], other.shape[0])
        self.context._require_own(other.context)
        left, right = (self._parts, self._at), (other._parts, other._at)
        parts, at = _layout.product(self.context._native, left, right, self.context.exact)
        return Tensor._made(self.context, "matmul", parts, at, np.result_type(self.dtype, other.dtype))

    def __rmatmul__(self, other: Any, prepared: _layout.Prepared | None = None) -> Tensor:
        matrix = _numbers.as_array(other)
        if self.ndim not in (1, 2) or matrix.ndim not in (1, 2):
            raise _layout.wrong_product(matrix.shape, self.shape)
        _layout.same_inner(matrix.shape[-1], self.shape[0])
        if matrix.ndim == 1:
            return self @ matrix if self.ndim == 1 else (self.T @ matrix)
        return self._times(self._at, matrix, canonical((matrix.shape[0], *self.shape[1:])), prepared)

    def _times(
        self, columns: Slots, matrix: NDArray[Any], at: Slots, prepared: _layout.Prepared | None = None
    ) -> Tensor:
        """``matrix`` times the elements that lie at ``columns``, to ``at``; both have the vectors along their axis 0."""
        outer, inner = matrix.shape
        batch = columns.size // max(inner, 1)
        entries = outer * inner * batch
        if entries > _layout.MAX_ENTRIES:
            raise ShapeError(
                f"a product of {entries} terms, the limit is {_layout.MAX_ENTRIES}",
                kind="shape",
                remedy="multiply block by block",
            )
        source = np.broadcast_to(columns.reshape(1, inner, batch), (outer, inner, batch)).reshape(-1)
        target = np.broadcast_to(at.reshape(outer, 1, batch), (outer, inner, batch)).reshape(-1)
        weights = np.broadcast_to(matrix.reshape(outer, inner, 1), (outer, inner, batch)).reshape(-1)
        return self._mapped("matmul", at, source, target, weights, prepared)

    def polynomial(self, coefficients: Any) -> Tensor:
        """c_0 + c_1 x + c_2 x^2 + .. of every element x, in as few levels as its degree allows."""
        array = _numbers.as_array(coefficients)
        if array.ndim != 1 or array.size == 0:
            raise ShapeError("coefficients are no vector", kind="shape", remedy="pass c_0, c_1, ..")
        vector = _numbers.flat(array, self.context.exact)
        dtype = np.result_type(self.dtype, _numbers.result_dtype(array, self.context.exact))
        parts = self._each(Operation.polynomial(vector))
        return Tensor._made(self.context, "polynomial", parts, self._at, dtype)

    def chebyshev(self, function: Callable[[Any], Any], interval: Sequence[float], degree: int) -> Tensor:
        """A function of every element by Chebyshev interpolation on an interval that holds them all; CKKS only.

        The function gets and returns NumPy arrays. That elements lie in the interval is the caller's word.
        """
        low, high = (float(x) for x in interval)
        degree = _numbers.whole(degree, "degree", 1, 1 << 12)
        angles = (np.arange(degree + 1) + 0.5) * np.pi / (degree + 1)
        points = 0.5 * (low + high) + 0.5 * (high - low) * np.cos(angles)
        values = _numbers.flat(_numbers.as_array(function(points)), False).real
        if values.shape != points.shape:
            raise ShapeError("the function returns another shape", kind="shape", remedy="return one number for each")
        coefficients = np.cos(np.outer(np.arange(degree + 1), angles)) @ values * (2.0 / (degree + 1))
        coefficients[0] *= 0.5
        bounded = self.declare_bound(max(abs(low), abs(high)))
        parts = bounded._each(Operation.chebyshev([float(c) for c in coefficients], low, high))
        return Tensor._made(self.context, "chebyshev", parts, self._at, self.dtype)

    # Slots as such.

    def rotate(self, steps: int) -> Tensor:
        """Every row of slots of every ciphertext rotated to the left; elements keep their slots' places.

        In CKKS a ciphertext is one row, in BFV and BGV two, of half the slots each.
        """
        k = _numbers.whole(steps, "steps", -(1 << 40), 1 << 40)
        return self._with("rotate", self._each(Operation.rotate(k)))

    def conjugate(self) -> Tensor:
        """The complex conjugate of every element; CKKS only."""
        if self.context.exact:
            raise MismatchError("integers have no conjugates", kind="scheme", remedy="use swap_rows, or ckks")
        return self._with("conjugate", self._each(Operation.swap()), self._rest)

    def swap_rows(self) -> Tensor:
        """The two rows of slots swapped; BFV and BGV only."""
        if not self.context.exact:
            raise MismatchError("ckks has one row of slots", kind="scheme", remedy="use rotate or conjugate")
        return self._with("swap_rows", self._each(Operation.swap()))

    # Levels and bounds.

    def at_level(self, level: int) -> Tensor:
        """The tensor at a lower level, smaller and faster to compute with."""
        level = _numbers.whole(level, "level", 0, self.level)
        return self._with("at_level", self._each(Operation.at_level(level)), self._rest)

    def declare_bound(self, bound: float) -> Tensor:
        """CKKS: the caller's word that no slot exceeds ``bound``, where certificates know less."""
        try:
            number = float(bound)
        except (TypeError, ValueError, OverflowError):
            raise DTypeError(f"bound is {bound!r}, no number", kind="dtype", remedy="pass a float") from None
        return self._with("bound", self._each(Operation.declare_bound(number)), self._rest)

    # Files and bytes.

    def to_bytes(self, name: str = "tensor") -> bytes:
        """The tensor with its plan, as the command line writes columns.

        Authenticated under the envelope key of its keys if the context has it (``keygen`` makes it, ``add_keys`` takes it),
        unless its certificate is itself believed on somebody's word.
        """
        if self.context._native.dry:
            raise MismatchError("a dry run has no data", kind="dry_run", remedy="write tensors of a Context")
        plain = self._at is canonical(self.shape) or np.array_equal(self._at, canonical(self.shape))
        head: dict[str, Any] = {"shape": self.shape, "dtype": str(self.dtype), "rest": self._rest}
        if not plain:
            head["slots"] = self._at.reshape(-1).tolist()
        rows = self.size if plain else len(self._parts) * self.context.slots
        return self.context._native.encode_column(str(name), rows, json.dumps(head).encode(), self._parts)

    @classmethod
    def from_bytes(
        cls, data: Any, context: Context | None = None, *, trust_certificate: bool = False
    ) -> Tensor:
        """The tensor in bytes that :meth:`to_bytes` or the command line wrote.

        Its noise certificate is a claim of who wrote it. It is believed if the bytes are authenticated under an envelope key
        that the context holds, or else if ``trust_certificate`` says so, for makers trusted by other means: what is computed
        from it is then not authenticated. If neither is, operations that need the certificate are refused.
        """
        from .context import Context as Contexts
        from .context import _held

        _held(context)
        trusted = trust_certificate is True
        column = _native.Column.decode(_numbers.buffer(data))
        held = Contexts._restore(column.plan) if context is None else context
        head = Head.read(column.tensor, column.rows, column.parts, held.slots, held.exact)
        parts, believed = held._native.read_column(column, trusted)
        return cls._made(held, "read", parts, head.at, head.dtype, head.rest if believed else FREE)

    def save(self, path: Any, *, replace: bool = True) -> None:
        """Writes the tensor to a file."""
        from .context import _path

        _native.write_file(_path(path), self.to_bytes(), replace)

    @classmethod
    def load(cls, path: Any, context: Context | None = None, *, trust_certificate: bool = False) -> Tensor:
        """The tensor in a file; see :meth:`from_bytes`."""
        from .context import _path

        data = _native.read_file(_path(path))
        return cls.from_bytes(data, context, trust_certificate=trust_certificate)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        wrap = pickle.PickleBuffer if isinstance(protocol, int) and protocol >= 5 else bytes
        parts = [wrap(part.to_bytes()) for part in self._parts]
        at = None if self._at is canonical(self.shape) else self._at
        return _restore, (self.context, parts, self.shape, at, self.dtype, self._rest)


def concatenate(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors side by side along an axis; nothing is computed, each keeps its ciphertexts."""
    if isinstance(tensors, Tensor) or not all(isinstance(t, Tensor) for t in tensors) or not len(tensors):
        raise DTypeError("no list of tensors", kind="dtype", remedy="pass at least one tensor, in a list")
    context = tensors[0].context
    parts: list[_native.Ciphertext] = []
    layouts = []
    for tensor in tensors:
        context._require_own(tensor.context)
        layouts.append(tensor._at + len(parts) * context.slots)
        parts = parts + tensor._parts
    try:
        at = np.concatenate(layouts, axis=_numbers.whole(axis, "axis", -32, 32))
    except ValueError as error:
        raise ShapeError(f"{error}", kind="shape", remedy="make all other axes equal") from None
    dtype = np.result_type(*(tensor.dtype for tensor in tensors))
    return Tensor._made(context, "", parts, at, dtype)


def _restore(
    context: Context, parts: list[Any], shape: tuple[int, ...], at: Slots | None, dtype: np.dtype[Any], rest: int
) -> Tensor:
    native = [context._native.read_ciphertext(_numbers.buffer(part)) for part in parts]
    return Tensor._made(context, "read", native, canonical(shape) if at is None else at, dtype, rest)


def _precision(bound: float, error: float) -> float:
    return float("inf") if error == 0 else float(np.log2(bound / error))


def _kind_of(weights: NDArray[Any], exact: bool) -> np.dtype[Any]:
    return _numbers.result_dtype(weights, exact)
