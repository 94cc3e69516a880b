"""Encrypted tensors: arrays of numbers spread over the slots of one or more ciphertexts.

An element lies in a global slot: slot ``s % slots`` of ciphertext ``s // slots``. A tensor keeps the slots of its
elements as an integer array of its own shape, so that slicing, transposing and reshaping move nothing. Slots that no
element lies in may hold anything (``FREE``), zeros (``ZERO``), or what stands p slots before (``SAME - 1 + p``).

Beside it a tensor keeps in which ranges its elements lie, and what the other slots hold; nothing where nothing is known.
Integers that may have left what t holds are not decrypted, and an approximation on an interval is refused where arguments
may lie outside.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Union, cast

import numpy as np
from numpy.typing import NDArray

from . import _chebyshev, _layout, _moves, _native, _numbers, _numpy, _products, _stacks, _sums
from ._due import Due, spared
from ._known import Known
from ._layout import FREE, SAME, ZERO, canonical
from ._native import Operation
from ._ranges import Bound, Held, Range
from ._wire import Head, written
from .errors import DTypeError, InputError, MismatchError, ShapeError

if TYPE_CHECKING:
    from .context import Context, EvaluationKeys

__all__ = ["Tensor", "concatenate"]

Slots = NDArray[np.int64]
Axes = Union[int, "tuple[int, ...]", None]


class Tensor(Known):
    """An encrypted array. Operations return new tensors; levels and scales are managed for you."""

    __slots__ = ("__weakref__", "_at", "_due", "_held", "_moved_to", "_rest", "context", "dtype")
    __hash__ = None

    context: Context
    dtype: np.dtype[Any]
    _due: Due
    _at: Slots
    _rest: int
    _held: Held | None
    # The elements in other slots, where they were brought there before: what a loop asks for again.
    _moved_to: Tensor | None

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
        held: Held | None = None,
    ) -> Tensor:
        if dtype.kind == "c" and context._real:
            remedy = 'make the plan with numbers="complex"'
            raise DTypeError("complex numbers under a plan whose refreshes keep real ones", kind="dtype", remedy=remedy)
        self = cls.__new__(cls)
        self.context = context
        self._due = Due(parts)
        self._at = at
        self.dtype = dtype
        self._rest = rest
        self._held = None if held is None or dtype.kind == "c" else held
        self._moved_to = None
        if what:
            context._traced(what, parts[0])
        return self

    def _of(
        self,
        what: str,
        parts: list[_native.Ciphertext],
        at: Slots,
        rest: int = FREE,
        held: Held | None = None,
        dtype: np.dtype[Any] | None = None,
    ) -> Tensor:
        """A tensor made of this one."""
        return Tensor._made(self.context, what, parts, at, self.dtype if dtype is None else dtype, rest, held)

    @classmethod
    def _fresh(
        cls,
        context: Context,
        what: str,
        parts: list[_native.Ciphertext],
        at: Slots,
        dtype: np.dtype[Any],
        held: Held | None,
    ) -> Tensor:
        """A tensor with zeros beside its elements, which the certificates of CKKS are told."""
        made = cls._made(context, what, parts, at, dtype, ZERO, held)
        if not context.exact and made._is_padded:
            operations = [Operation.zeros(own) for own in made._elements()]
            made._due = Due(_native.each(operations, [[part] for part in parts]))
        return made

    def to(self, context: Context) -> Tensor:
        """The same tensor in a context of the same parameters, on that context's device."""
        if context is self.context:
            return self
        self.context._require_own(context)
        own = context._native.bring(self.context._native, self._own)
        made = Tensor._made(context, "", own, self._at, self.dtype, self._rest, self._held)
        made._due = Due(own, self._due.factor)
        return made

    def _elements(self) -> NDArray[np.bool_]:
        """For each slot of each ciphertext whether an element lies there."""
        own = np.zeros(len(self._own) * self.context.slots, dtype=np.bool_)
        own[self._at.reshape(-1)] = True
        return own.reshape(len(self._own), -1)

    @property
    def _parts(self) -> list[_native.Ciphertext]:
        """Its ciphertexts."""
        return self._due.parts(lambda parts: self.context._traced("mul", parts[0]))

    @property
    def _own(self) -> list[_native.Ciphertext]:
        """Its ciphertexts before the number that they are to be multiplied by."""
        return self._due.own

    def _before(self) -> Tensor:
        """The tensor before that number."""
        factor = self._due.factor
        if factor == 1.0:
            return self
        held = self._mapped_range(lambda r: r.mul(Range(1.0 / factor, 1.0 / factor)))
        return self._with("", self._own, self._rest, held)

    def _after(self, factor: float) -> Tensor:
        """The tensor times a number, once somebody needs it."""
        if factor == 1.0:
            return self
        held = self._mapped_range(lambda r: r.mul(Range(factor, factor)))
        made = self._with("", self._own, self._rest, held)
        made._due = Due(self._own, self._due.factor * factor)
        return made

    def _linear(self, what: str, operation: Operation, rest: int = FREE, held: Held | None = None) -> Tensor:
        """An operation on each ciphertext that a number may follow as well as it may come before."""
        parts = _native.each([operation] * len(self._own), [[part] for part in self._own])
        return self._with(what, parts, rest)._after(self._due.factor)._knowing(held)

    @property
    def _slots(self) -> _layout.Slots:
        """Slots of its ciphertexts."""
        return _layout.Slots(self.context.slots, self.context.row)

    def _each(self, operation: Operation, *others: list[_native.Ciphertext]) -> list[_native.Ciphertext]:
        """The operation on each ciphertext, with the one in its place of each other list."""
        operands = [list(parts) for parts in zip(self._parts, *others)]
        return _native.each([operation] * len(operands), operands)

    def _with(
        self, what: str, parts: list[_native.Ciphertext], rest: int = FREE, held: Held | None = None
    ) -> Tensor:
        return Tensor._made(self.context, what, parts, self._at, self.dtype, rest, held)

    def _knowing(self, held: Held | None) -> Tensor:
        """The same tensor with other ranges."""
        return self._alike(self._at, self._rest, held)

    def _mapped_range(self, function: Callable[[Range], Range]) -> Held | None:
        return None if self._held is None else self._held.mapped(function)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return _numpy.of_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Any, _: Any, args: Any, kwargs: Any) -> Any:
        return _numpy.of_function(function, args, kwargs)

    # Shape: nothing moves.

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Tensor:
        """Elements by NumPy's basic and integer-array indexing."""
        try:
            at = np.asarray(self._at[key])
        except IndexError as error:
            raise ShapeError(f"{error}", kind="shape", remedy=f"index within shape {self.shape}") from None
        return self._taken(at)

    def _taken(self, at: Slots) -> Tensor:
        """The elements at these slots, which are some of its own, each as often as it is named."""
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
        parts = self._own
        if len(used) < len(parts):
            at = np.searchsorted(used, at // slots) * slots + at % slots
            parts = [parts[i] for i in used]
        held = self._held
        if held is not None and at.size != self.size:
            held = Held(held.elements, held.mixed().beside)
        made = self._alike(at, rest, held)
        if parts is not self._own:
            made._due = Due(parts, self._due.factor)
        return made

    def _alike(self, at: Slots, rest: int, held: Held | None) -> Tensor:
        """The same ciphertexts, of which other slots are elements."""
        made = self._of("", self._own, at, rest, held)
        made._due = self._due
        return made

    def reshape(self, *shape: Any) -> Tensor:
        """The same elements in another shape."""
        wanted = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        try:
            at = self._at.reshape(tuple(wanted))
        except (ValueError, TypeError) as error:
            raise ShapeError(f"{error}", kind="shape", remedy=f"keep {self.size} elements") from None
        return self._alike(at, self._rest, self._held)

    @property
    def T(self) -> Tensor:
        """The axes in reverse order."""
        return self._alike(self._at.T, self._rest, self._held)

    def transpose(self, *axes: int) -> Tensor:
        """The axes in another order, by default reversed."""
        try:
            at = self._at.transpose(*axes)
        except (ValueError, TypeError) as error:
            raise ShapeError(f"{error}", kind="shape", remedy=f"permute {self.ndim} axes") from None
        return self._alike(at, self._rest, self._held)

    # Sums and products element by element.

    def __neg__(self) -> Tensor:
        return self._linear("neg", Operation.neg(), self._rest, self._mapped_range(Range.neg))

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
        if self.context.exact:
            raise _division(True)
        if isinstance(other, Tensor):
            return self * other._inverted()
        divisor = _numbers.as_array(other)
        if divisor.dtype.kind == "O" or not np.all(divisor):
            raise InputError("division by zero", kind="not_finite", remedy="divide by numbers other than 0")
        with np.errstate(all="ignore"):
            inverse = 1.0 / divisor
        return self._binary("mul", inverse)

    def __rtruediv__(self, other: Any) -> Tensor:
        if self.context.exact:
            raise _division(True)
        number, inverted = _numbers.as_array(other), self._inverted()
        return inverted if number.ndim == 0 and number == 1 else inverted * number

    def _inverted(self) -> Tensor:
        """1 / x where elements are known to lie on one side of 0."""
        from . import functions

        held = self._known()
        if held is None or held.elements.low <= 0 <= held.elements.high:
            raise _division(False)
        return cast(Tensor, functions.inverse(self))

    def __pow__(self, exponent: Any) -> Tensor:
        k = _numbers.whole(exponent, "exponent", 0, 1 << 12)
        if k == 0:
            return (self - self + 1)._knowing(
                Held.everywhere(Range(1, 1) if self.context.exact else Range(1.0, 1.0))
            )
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
        return self._with("square", self._each(Operation.square()), self._rest, self._mapped_range(Range.square))

    def _binary(self, op: str, other: Any) -> Tensor:
        if isinstance(other, Tensor):
            x, y = self._aligned(other)
            factor = x._due.factor if op != "mul" and x._due.factor == y._due.factor else 1.0
            if factor != 1.0:
                left, right = x._own, y._own
            else:
                left, right = (spared(x._due, y._due) if op == "mul" else None) or (x._parts, y._parts)
            parts = _native.each([Operation.binary(op)] * len(left), [list(pair) for pair in zip(left, right)])
            rest = x._rest if x._rest == y._rest else ZERO if op == "mul" and ZERO in (x._rest, y._rest) else FREE
            held = self._mapped_range(Range.square) if op == "mul" and other is self else _combined(op, x._held, y._held)
            made = Tensor._made(x.context, op, parts, x._at, np.result_type(x.dtype, y.dtype), rest)
            return made._after(factor)._knowing(held)
        array = _numbers.as_array(other)
        dtype = np.result_type(self.dtype, _numbers.result_dtype(array, self.context.exact))
        if array.ndim == 0:
            if op != "mul" and array.dtype.kind in "biuf" and array == 0 and dtype == self.dtype:
                return self
            value = _numbers.flat(array, self.context.exact)
            rest = self._rest if op == "mul" or self._rest >= SAME else FREE
            held = _combined(op, self._held, Held.everywhere(self._public_range(array)))
            if op == "mul" and not self.context.exact and array.dtype.kind != "c" and float(array) != 0:
                return self._after(float(value[0]))._knowing(held)
            return self._of(op, self._each(Operation.scalar(op, value)), self._at, rest, held, dtype)
        x = self._broadcast(_layout.broadcast_shape(self.shape, array.shape))
        own, factor = (x._own, x._due.factor) if op == "mul" else (x._parts, 1.0)
        public = x._scattered(np.broadcast_to(array if factor == 1 else array * factor, x.shape))
        parts = _native.each([Operation.plain(op, values) for values in public], [[part] for part in own])
        rest = ZERO if op == "mul" or x._rest == ZERO else FREE
        # What lies beside the elements meets zeros.
        held = _combined(op, x._held, Held.alone(self._public_range(array)))
        return Tensor._made(x.context, op, parts, x._at, dtype, rest, held)

    def _public_range(self, array: NDArray[Any]) -> Range | None:
        """The range of public numbers, as the scheme holds them."""
        whole = self.context.exact or array.dtype.kind == "c"
        return Range.of(array if whole else np.asarray(array, dtype=np.float64))

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
        if other._at is self._at and len(other._own) == len(self._own):
            return self, other
        shape = _layout.broadcast_shape(self.shape, other.shape)
        if self.shape == other.shape:
            if self._repeats(other):
                return self, other._all_along(self)
            if other._repeats(self):
                return self._all_along(other), other
            # The one that has more levels left takes one, if it must.
            spare = self._due.level - other._due.level
            if spare > 0:
                return self._moved(other._at, spare), other
            return self, other._moved(self._at, -spare)
        if self.shape == shape:
            return self, other._broadcast(shape, self._at)
        if other.shape == shape:
            return self._broadcast(shape, other._at), other
        x = self._broadcast(shape)
        return x, other._broadcast(shape, x._at)

    def _repeats(self, other: Tensor) -> bool:
        """Whether it stands all along its slots, and the other one could, which has zeros there."""
        period = self._rest + 1 - SAME
        return period > 1 and other._rest == ZERO and self.size == other.size == period and len(self._own) == 1

    def _all_along(self, other: Tensor) -> Tensor:
        """The tensor all along its slots as another one is: sums and products of both are that then, and spread for nothing."""
        way = _moves.all_along(self._at.reshape(-1), other._at.reshape(-1), self.size, self._slots)
        held = None if self._held is None else Held.everywhere(self._held.elements)
        return self._run("move", way, other._at, held)

    def _run(self, what: str, way: _moves.Way, at: Slots, held: Held | None) -> Tensor:
        """The elements brought to other slots; a number that is due comes on the way, if that takes a level anyhow."""
        factor = self._due.factor
        parts = way.run(self._own, self._slots, self.context.exact, factor if way.multiplies else 1.0)
        made = self._of(what, parts, at, way.rest)
        return (made if way.multiplies else made._after(factor))._knowing(held)

    def _broadcast(self, shape: tuple[int, ...], at: Slots | None = None) -> Tensor:
        """The tensor in a shape that it broadcasts to, its elements at these slots if they are named."""
        if shape == self.shape:
            return self if at is None else self._moved(at)
        if self.size == 1:
            return self._everywhere(shape, canonical(shape, self._slots) if at is None else at)
        if at is None:
            at = canonical(shape, self._slots)
        return self._brought("broadcast", np.broadcast_to(self._at, shape), at)

    def _everywhere(self, shape: tuple[int, ...], at: Slots) -> Tensor:
        """One element, repeated."""
        slot = int(self._at.reshape(-1)[0])
        part, factor = self._own[slot // self.context.slots], self._due.factor
        if self._rest == FREE:
            kept = np.array([slot % self.context.slots])
            part, factor = _moves.masked([part], self._slots, kept, self.context.exact, factor)[0], 1.0
        spread = part if self._rest >= SAME else _layout.one(Operation.sum_slots(0, 1), part)
        count = int(at.max()) // self.context.slots + 1
        held = None if self._held is None else Held.everywhere(self._held.elements)
        return self._of("broadcast", [spread] * count, at, SAME)._after(factor)._knowing(held)

    # Elements in other slots.

    def _moved(self, at: Slots, spare: int = 0) -> Tensor:
        """The same elements in other slots; so many levels may go on the way."""
        if self._at is at or np.array_equal(self._at, at):
            return self
        if self._moved_to is None or not np.array_equal(self._moved_to._at, at):
            self._moved_to = self._brought("move", self._at, at, spare)
        return self._moved_to

    def _gathered(self, what: str, source: Slots) -> Tensor:
        """A fresh layout of elements that lie at ``source``, each as often as it is named."""
        return self._brought(what, source, canonical(source.shape, self._slots))

    def _brought(self, what: str, source: Slots, target: Slots, spare: int = 0) -> Tensor:
        """The elements at ``source`` brought to ``target``, in the cheapest way there is when so many levels may go."""
        of, to = (np.ascontiguousarray(z).reshape(-1) for z in (source, target))
        rest = self._rest
        # Elements that are not brought along lie beside those that are.
        if rest == ZERO and len(np.unique(of)) != self.size:
            rest = FREE
        way = _moves.cheapest(of, to, self._slots, rest, spare=spare)
        known = self._held
        held = None
        if known is not None:
            beside = known.elements.and_zero() if way.rest != FREE else known.mixed().beside.and_zero()
            held = Held(known.elements, beside)
        return self._run(what, way, target, held)

    # Sums and products over axes.

    def sum(self, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """The sum over an axis or several, or of all elements."""
        axes = self._axes(axis)
        kept = tuple(1 if k in axes else n for k, n in enumerate(self.shape))
        total = _sums.over(self._before(), axes)._after(self._due.factor)
        return total.reshape(kept if keepdims else tuple(n for k, n in enumerate(self.shape) if k not in axes))

    def _axes(self, axis: Axes) -> tuple[int, ...]:
        """The axes that are named, counted from 0, in order."""
        listed = range(self.ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else (axis,)
        axes = [_numbers.whole(a, "axis", -self.ndim, self.ndim - 1) % max(self.ndim, 1) for a in listed]
        if len(set(axes)) != len(axes):
            raise ShapeError(f"axis {axis} names one twice", kind="shape", remedy="name each once")
        return tuple(sorted(axes))

    def mean(self, axis: Axes = None, keepdims: bool = False) -> Tensor:
        """The mean over an axis or several, or of all elements; CKKS only."""
        total = self.sum(axis, keepdims)
        return total.__truediv__(self.size // total.size)

    def var(self, axis: Axes = None, keepdims: bool = False, ddof: int = 0) -> Tensor:
        """The variance over an axis or several, or of all elements, in two levels; CKKS only.

        The mean of the squares less the square of the mean, times n / (n - ddof).
        """
        count = int(np.prod([self.shape[k] for k in self._axes(axis)], dtype=np.int64))
        ddof = _numbers.whole(ddof, "ddof", 0, count - 1)
        found = self.square().sum(axis, keepdims) / count - self.mean(axis, keepdims).square()
        if ddof:
            found = found * (count / (count - ddof))
        if self._held is None or found._held is None:
            return found
        # Variances too are beside the elements, of them and what was beside them.
        each = self._held.mixed().mapped(lambda r: Range(0.0, (r.high - r.low) ** 2 / 4 * count / (count - ddof)))
        own = (self._held.elements.high - self._held.elements.low) ** 2 / 4 * count / (count - ddof)
        return found._knowing(Held(Range(0.0, own), each.beside))

    def std(
        self,
        axis: Axes = None,
        keepdims: bool = False,
        ddof: int = 0,
        *,
        interval: tuple[float, float],
        degree: int = 15,
    ) -> Tensor:
        """The deviation over an axis or several, or of all elements, for variances that lie in an interval; CKKS only.

        The root is a polynomial of ``degree``; as the interval's lower end nears 0 its error grows, which ``error_bound`` has.
        """
        low, _ = _pair(interval)
        if not isinstance(low, (int, float)) or not low > 0:
            raise InputError(f"interval is {interval!r}", kind="argument", remedy="pass (low, high) with 0 < low")
        variance = self.var(axis, keepdims, ddof).declare_bound(interval)
        return variance.chebyshev(np.sqrt, interval, degree)

    def corrcoef(self, rowvar: bool = True, *, interval: tuple[float, float]) -> Tensor:
        """The correlation coefficients of the rows, or of the columns unless ``rowvar``, as NumPy's; CKKS only.

        Their variances, the means of squared distances from the mean, lie in an interval above 0, which is your word.
        """
        return _numpy.correlations(self, rowvar, interval)

    def prod(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """The product over an axis, or of all elements, in a tree of products."""
        if axis is None:
            product = self.reshape(-1).prod(0)
            return product.reshape((1,) * self.ndim) if keepdims else product
        (k,) = self._axes(axis)
        at = np.moveaxis(self._at, k, 0)
        factors = [self._view(each) for each in at]
        while len(factors) > 1:
            pairs = [x * y for x, y in zip(factors[::2], factors[1::2])]
            factors = pairs + factors[2 * len(pairs) :]
        return factors[0].reshape(tuple(1 if j == k else n for j, n in enumerate(self.shape))) if keepdims else factors[0]

    def ravel(self) -> Tensor:
        """All elements in one row."""
        return self.reshape(-1)

    def dot(self, other: Any) -> Tensor:
        """As ``@``."""
        return self.__matmul__(other)

    def __matmul__(self, other: Any) -> Tensor:
        """The product with a public or encrypted vector or matrix, or with each of a stack of them, as NumPy's."""
        from .matrix import PublicMatrix

        if isinstance(other, PublicMatrix):
            return NotImplemented
        other = other if isinstance(other, Tensor) else _numbers.as_array(other)
        if max(self.ndim, other.ndim) > 2:
            return _stacks.stacked(self, other)
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
        return self._times_public(other)

    def _times_public(self, matrix: NDArray[Any], prepared: _layout.Prepared | None = None) -> Tensor:
        """The product with a public vector or matrix on the right."""
        if self.ndim not in (1, 2) or matrix.ndim not in (1, 2):
            raise _layout.wrong_product(self.shape, matrix.shape)
        _layout.same_inner(self.shape[-1], matrix.shape[0])
        if matrix.ndim == 1:
            return self._weighted(matrix)
        return self._mapped(self._at.T, matrix.T, prepared).T

    def _mapped(self, columns: Slots, matrix: NDArray[Any], prepared: _layout.Prepared | None) -> Tensor:
        """A public matrix times vectors; it takes along the number that is due, unless it is encoded for many products."""
        factor = self._due.factor
        if factor == 1.0 or prepared is not None:
            return _products.public(self._before(), columns, matrix, prepared)._after(factor)
        return _products.public(self._before(), columns, matrix * factor)

    def _weighted(self, weights: NDArray[Any]) -> Tensor:
        """The sum of the elements of each row, or of the only one, times public weights."""
        made, known = (self * weights).sum(axis=self.ndim - 1), self._held
        if known is None or made._held is None or weights.dtype.kind == "c":
            return made
        row, beside = weights.reshape(1, -1), made._held.beside
        first = int(self._at.reshape(-1)[0])
        if len(self._own) == 1 and np.array_equal(self._at.reshape(-1), np.arange(first, first + self.size)):
            # In one stretch: as many slots in a row as there are weights meet each of them once, or zeros.
            beside = known.elements.and_zero().weighted(row).and_zero()
        held = Held(known.elements.weighted(row), beside)
        reach = max(held.elements.reach, beside.reach)
        return (made if self.context.exact or not reach else made._certified(reach))._knowing(held)

    def _times_encrypted(self, other: Tensor) -> Tensor:
        """The product of encrypted matrices in blocks (Jiang et al., ePrint 2018/1041; ePrint 2023/593), or by shifts."""
        if self.ndim != 2 or other.ndim != 2:
            raise _layout.wrong_product(self.shape, other.shape)
        _layout.same_inner(self.shape[1], other.shape[0])
        self.context._require_own(other.context)
        return _products.encrypted(self, other)

    def __rmatmul__(self, other: Any, prepared: _layout.Prepared | None = None) -> Tensor:
        matrix = _numbers.as_array(other)
        if prepared is None and max(self.ndim, matrix.ndim) > 2:
            return _stacks.stacked(matrix, self)
        if self.ndim not in (1, 2) or matrix.ndim not in (1, 2):
            raise _layout.wrong_product(matrix.shape, self.shape)
        _layout.same_inner(matrix.shape[-1], self.shape[0])
        if matrix.ndim == 1:
            return self @ matrix if self.ndim == 1 else (self.T @ matrix)
        return self._mapped(self._at, matrix, prepared)

    def polynomial(self, coefficients: Any) -> Tensor:
        """c_0 + c_1 x + c_2 x^2 + .. of every element x, in as few levels as its degree allows."""
        array = _numbers.as_array(coefficients)
        if array.ndim != 1 or array.size == 0:
            raise ShapeError("coefficients are no vector", kind="shape", remedy="pass c_0, c_1, ..")
        vector = _numbers.flat(array, self.context.exact)
        dtype = np.result_type(self.dtype, _numbers.result_dtype(array, self.context.exact))
        held = None if array.dtype.kind == "c" else self._mapped_range(lambda r: r.polynomial(array))
        # Integers take no level, and vectors do.
        whole = not self.context.exact and bool((vector[1:] == np.round(vector[1:])).all())
        parts, rest = self._in_slots(
            lambda slots: Operation.polynomial(vector, None if whole else slots), bool(array[0] == 0)
        )
        rest = FREE if whole and rest == ZERO and not (self._rest == ZERO and array[0] == 0) else rest
        if rest == ZERO and held is not None:
            held = Held.alone(held.elements)
        return Tensor._made(self.context, "polynomial", parts, self._at, dtype, rest, held)

    def _in_slots(
        self, operation: Callable[[NDArray[np.bool_] | None], Operation], of_zero: bool
    ) -> tuple[list[_native.Ciphertext], int]:
        """A function of every slot, and what it leaves beside the elements: in CKKS zeros, which take no level there."""
        parts = self._parts
        if self.context.exact or self._rest >= SAME or not self._is_padded or (self._rest == ZERO and of_zero):
            rest = self._rest if self._rest >= SAME or (self._rest == ZERO and of_zero) else FREE
            return _native.each([operation(None)] * len(parts), [[part] for part in parts]), rest
        return _native.each([operation(own) for own in self._elements()], [[part] for part in parts]), ZERO

    def chebyshev(
        self, function: Callable[[Any], Any], interval: Sequence[float], degree: int, *, error: float | None = None
    ) -> Tensor:
        """A function of every element by Chebyshev interpolation on an interval that holds them all; CKKS only.

        Elements that may lie outside by what was declared of them are refused; :meth:`declare_bound` takes your word that
        they do not. How far the polynomial is from the function enters ``error_bound``. That is proved where the function
        is written with arithmetic and NumPy's ``exp``, ``log``, ``sqrt``, ``tanh``, ``sin``, ``cos`` and the like, on
        numbers alone; of any other, ``error`` is your word for it. With ``error=0`` the polynomial itself is the function.
        The function gets and returns NumPy arrays, and is called once on an object that stands for intervals.
        """
        if self.context.exact:
            raise MismatchError("functions of integers modulo t", kind="scheme", remedy="use polynomial, or ckks")
        wanted = Range.declared(_pair(interval), False, "interval")
        degree = _numbers.whole(degree, "degree", 1, 1 << 12)
        if wanted is None or wanted.low >= wanted.high:
            raise InputError(f"{interval} is no interval", kind="argument", remedy="pass its lower and its upper end")
        low, high = float(wanted.low), float(wanted.high)
        arguments = self._within(wanted)
        series = _chebyshev.interpolated(function, low, high, degree)
        apart = _chebyshev.required(series, degree, error)
        if self.context._approximations is not None:
            self.context._approximations.append((apart, degree))
        coefficients = [float(c) for c in series.coefficients]
        arguments = arguments._certified(wanted.reach)
        parts, rest = arguments._in_slots(lambda slots: Operation.chebyshev(coefficients, low, high, slots), False)
        found = Range(series.low - apart, series.high + apart)
        held = Held.alone(found) if rest == ZERO else Held.everywhere(found)
        made = self._with("" if apart else "chebyshev", parts, rest, held)
        return made._with("chebyshev", made._each(Operation.approximate(apart)), rest, held) if apart else made

    def _within(self, wanted: Range) -> Tensor:
        """The tensor with all slots in an interval; elements that may lie outside are refused.

        Zeros beside the elements become another number where they are not in it, and what else may lie outside is made
        zeros first, in a level.
        """
        held = self._known()
        if held is None or not wanted.holds(held.elements):
            where = "may be complex" if held is None else f"may lie in {held.elements}"
            raise InputError(
                f"elements {where}, the interval is {wanted}",
                kind="range",
                remedy=f"widen the interval, or if you know that they lie in it say x.declare_bound(({wanted.low:g}, "
                f"{wanted.high:g})) first",
            )
        if not self._is_padded or self._rest >= SAME or wanted.holds(held.beside):
            return self
        if self._rest != ZERO:
            return (self * np.ones(self.shape))._within(wanted)
        middle = np.full((len(self._own), self.context.slots), 0.5 * (wanted.low + wanted.high))
        middle.reshape(-1)[self._at.reshape(-1)] = 0.0
        parts = _native.each([Operation.plain("add", row) for row in middle], [[part] for part in self._parts])
        return self._with("", parts, held=Held.everywhere(wanted))

    def _known(self) -> Held | None:
        """In CKKS where numbers lie, by ranges and by the bounds of certificates; nothing of complex ones."""
        if self.dtype.kind == "c":
            return None
        certified = Range(-self.bound, self.bound)
        held = self._held or (Held.alone(certified) if self._rest == ZERO else Held.everywhere(certified))
        if held is None:
            return None
        return Held(held.elements.common(certified) or held.elements, held.beside)

    # Slots as such.

    def rotate(self, steps: int) -> Tensor:
        """Every row of slots of every ciphertext rotated to the left; elements keep their slots' places.

        In CKKS a ciphertext is one row, in BFV and BGV two, of half the slots each.
        """
        k = _numbers.whole(steps, "steps", -(1 << 40), 1 << 40)
        held = None if self._held is None else self._held.mixed()
        return self._linear("rotate", Operation.rotate(k), held=held)

    def conjugate(self) -> Tensor:
        """The complex conjugate of every element; CKKS only."""
        if self.context.exact:
            raise MismatchError("integers have no conjugates", kind="scheme", remedy="use swap_rows, or ckks")
        return self._linear("conjugate", Operation.swap(), self._rest, self._held)

    def swap_rows(self) -> Tensor:
        """The two rows of slots swapped; BFV and BGV only."""
        if not self.context.exact:
            raise MismatchError("ckks has one row of slots", kind="scheme", remedy="use rotate or conjugate")
        held = None if self._held is None else self._held.mixed()
        return self._with("swap_rows", self._each(Operation.swap()), held=held)

    # Levels and bounds.

    def refresh(self) -> Tensor:
        """The same elements with levels, in BFV and BGV room for noise, to compute with: bootstrapping, under a plan with
        ``bootstrap``.

        Such a plan refreshes by itself where these run out; this is for a place that you know to be cheaper.
        """
        return self._with("refresh", self._each(Operation.refresh()), self._rest, self._held)

    def rekey(self, keys: EvaluationKeys) -> Tensor:
        """The same elements under the secret key of ``keys``, which :meth:`Keys.receive` made for the one it is under."""
        return self._with("rekey", self.context._native.rekey(keys._native, self._parts), self._rest, self._held)

    def at_level(self, level: int) -> Tensor:
        """The tensor at a lower level, smaller and faster to compute with."""
        level = _numbers.whole(level, "level", 0, self.level)
        return self._with("at_level", self._each(Operation.at_level(level)), self._rest, self._held)

    def declare_bound(self, bound: Bound, *, everywhere: bool = False) -> Tensor:
        """The caller's word for how large its elements are, where certificates and ranges know less.

        A number is the largest absolute value, a pair the lowest and the highest one, which also says that complex numbers
        are real. In CKKS, where slots in which no element lies may hold more, as sums of other elements, those are made
        zeros in a level, unless ``everywhere`` says that the word holds for them too. In BFV and BGV ``math.inf`` takes
        every range back: numbers are residues modulo t then.
        """
        declared, pair = Range.declared(bound, self.context.exact), isinstance(bound, (tuple, list))
        if declared is None:
            return self._knowing(None)
        known = self._held
        if known is not None and known.elements.public:
            common = known.elements.common(declared)
            if common is None:
                message = f"a bound of {declared} for numbers that lie in {known.elements}"
                raise InputError(message, kind="bound_out_of_range", remedy="declare what can be")
            declared = common
        if self.context.exact:
            return self._knowing(Held(declared, declared.unknown))
        x, own, certified = self, self._known(), Range(-self.bound, self.bound)
        beside = certified if own is None else own.beside
        if everywhere:
            beside = beside.common(declared) or declared
        if self._rest == FREE and beside.reach > declared.reach * (1 + 1e-9) and self._is_padded:
            x, beside = self * np.ones(self.shape), declared.zero
        bounded = x._certified(declared.reach, "bound")
        bounded.dtype = np.dtype(np.float64) if pair else self.dtype
        return bounded._knowing(Held(declared, beside))

    def as_computed(self) -> Tensor:
        """The tensor as one of the numbers that it decrypts to, from which nothing is off; CKKS only.

        For iterations that mend what they are off by, as gradient descent does: ``error_bound`` counts from here, and what a
        step is off by does not grow by the largest slopes of all later ones. The numbers that are meant are then those that
        decryption gives, a little off the line of real ones too; copies of one number that a tensor keeps in its other slots
        may differ by twice what it was off by. Bounds that are declared afterwards are about these numbers.
        """
        if self.context.exact:
            raise MismatchError("integers are exact", kind="scheme", remedy="leave it out, or use ckks")
        known, off = self._held, Range(-self.error_bound, self.error_bound)
        held = None if known is None else Held(known.elements.add(off), known.beside.add(off))
        return self._with("as_computed", self._each(Operation.as_computed()), FREE if self._rest == ZERO else self._rest, held)

    def _certified(self, bound: float, what: str = "") -> Tensor:
        """CKKS: the same tensor, whose certificates say that no slot exceeds ``bound``."""
        own = float(bound) / abs(self._due.factor)
        return self._linear(what, Operation.declare_bound(own), self._rest, self._held)

    @property
    def _is_padded(self) -> bool:
        return self.size < len(self._own) * self.context.slots

    # Files and bytes.

    def to_bytes(self, name: str = "tensor") -> bytes:
        """The tensor with its plan, as the command line writes columns.

        Authenticated under the envelope key of its keys if the context has it (``keygen`` makes it, ``add_keys`` takes it),
        unless its certificate is itself believed on somebody's word.
        """
        if self.context._native.dry:
            raise MismatchError("a dry run has no data", kind="dry_run", remedy="write tensors of a Context")
        size = _layout.block(self.shape, self.context.row)
        own = self._at is canonical(self.shape, self._slots) or np.array_equal(self._at, canonical(self.shape, self._slots))
        plain = own and (size == 1 or self.size <= self.context.row // size * size or self.context.row % size == 0)
        # That slots repeat themselves is nothing that a file may claim.
        head: dict[str, Any] = {"shape": self.shape, "dtype": str(self.dtype), "rest": min(self._rest, SAME)}
        if self._rest > SAME:
            head["rest"] = FREE
        if own and not plain:
            # Who does not know of blocks finds slots that do not go with the shape.
            head |= {"block": size, "slots": []}
        elif not own:
            head["slots"] = self._at.reshape(-1).tolist()
        if self._held is not None:
            head |= written(self._held)
        rows = self.size if plain else len(self._own) * self.context.slots
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
        head = Head.read(column.tensor, column.rows, column.parts, _layout.Slots(held.slots, held.row), held.exact)
        parts, believed = held._native.read_column(column, trusted)
        rest, known = (head.rest, head.held) if believed else (FREE, None)
        if rest == ZERO:
            return cls._fresh(held, "read", parts, head.at, head.dtype, known)
        return cls._made(held, "read", parts, head.at, head.dtype, rest, known)

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

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, _: Any) -> Tensor:
        # Nothing changes a tensor.
        return self

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        wrap = pickle.PickleBuffer if isinstance(protocol, int) and protocol >= 5 else bytes
        parts = [wrap(part.to_bytes()) for part in self._parts]
        at = None if self._at is canonical(self.shape, self._slots) else self._at
        # What was seen in the data stays where the data is.
        known = self._held if self._held is not None and self._held.elements.public else None
        return _restore, (self.context, parts, self.shape, at, self.dtype, self._rest, known)


def concatenate(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors side by side along an axis; nothing is computed, each keeps its ciphertexts."""
    if isinstance(tensors, Tensor) or not all(isinstance(t, Tensor) for t in tensors) or not len(tensors):
        raise DTypeError("no list of tensors", kind="dtype", remedy="pass at least one tensor, in a list")
    axis = _numbers.whole(axis, "axis", -32, 32)
    joint, layouts = _stacks.joined(tensors)
    try:
        at = np.concatenate(layouts, axis=axis)
    except ValueError as error:
        raise ShapeError(f"{error}", kind="shape", remedy="make all other axes equal") from None
    return joint._taken(at)


def _restore(
    context: Context,
    parts: list[Any],
    shape: tuple[int, ...],
    at: Slots | None,
    dtype: np.dtype[Any],
    rest: int,
    held: Held | None = None,
) -> Tensor:
    native = [context._native.read_ciphertext(_numbers.buffer(part)) for part in parts]
    if at is None:
        at = canonical(shape, _layout.Slots(context.slots, context.row))
    if rest == ZERO:
        return Tensor._fresh(context, "read", native, at, dtype, held)
    return Tensor._made(context, "read", native, at, dtype, rest, held)


def _combined(op: str, x: Held | None, y: Held | None) -> Held | None:
    """The ranges of x op y, where both are known."""
    return None if x is None or y is None else x.combined(op, y)


def _division(exact: bool) -> DTypeError:
    remedy = "say x.declare_bound((low, high)) of the divisor first, where low and high have one sign"
    if exact:
        remedy = "plan for ckks, or divide after decryption"
    return DTypeError("division by or of encrypted numbers", kind="dtype", remedy=remedy)


def _pair(interval: Any) -> tuple[Any, Any]:
    try:
        low, high = interval
    except (TypeError, ValueError):
        raise DTypeError(f"interval is {interval!r}", kind="dtype", remedy="pass its two ends") from None
    return low, high
