"""Functions of encrypted numbers: real ones, in CKKS, by polynomials in their place on an interval, with a proved bound on the distance.

``np.exp(x)``, ``abs(x)``, ``np.maximum(x, y)``, ``x > 0.8`` and ``1 / x`` call these with their defaults: the interval is
where elements are known to lie, by ``bounds=`` and :meth:`Tensor.declare_bound`, the tolerance 2^-12, or a 256th of the
largest argument for what bends. The bound enters ``error_bound``, so that a certificate speaks of the function and not of
the polynomial. On arrays the functions compute in the clear, so that one function of yours serves both.

Functions that jump (:func:`sign`, :func:`step`, :func:`compare`) are undecided within ``gap`` of the jump, unless given a
64th of the largest argument: there the result lies between the two values, up to the tolerance, and the certificate is of
what was computed. :func:`absolute`, :func:`relu`, :func:`clip`, :func:`maximum` and :func:`minimum` bend and have no gap.
Both are steep inside: what an argument is off by, as the result of another approximation, is certified as magnified by
that, so that they come first where there is a choice.

In BFV and BGV :func:`equal`, :func:`less` and :func:`lookup` are exact, on integers of a declared range of at most 4096: a
polynomial goes through all their values. They take as many levels as the range has bits, and ``x < y`` is :func:`less`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any, Union

import numpy as np

from . import _numbers
from ._layout import FREE, SAME, ZERO
from ._native import Approximation, Operation
from ._ranges import Held, Range, shown
from .errors import DTypeError, InputError, MismatchError, ShapeError
from .planning import OtherModulus
from .tensor import Tensor

__all__ = [
    "absolute",
    "approximation",
    "argmax",
    "clip",
    "compare",
    "equal",
    "exp",
    "gelu",
    "inverse",
    "less",
    "log",
    "lookup",
    "maximum",
    "minimum",
    "relu",
    "rsqrt",
    "sigmoid",
    "sign",
    "softmax",
    "sqrt",
    "step",
    "tanh",
]

Interval = Union["tuple[float, float]", Sequence[float], None]

# How far results may be off unless a tolerance is given: of what bends, in terms of the largest argument.
TOLERANCE = 2.0**-12
BENT = 2.0**-8
_BENDS = ("abs", "relu")
_JUMPS = ("sign", "step")
# Of the largest argument, how far from a jump arguments are undecided unless a gap is given.
GAP = 1.0 / 64
# The least value of gelu, at -0.7518, is above it.
_GELU = -0.16998

_erf = np.frompyfunc(math.erf, 1, 1)


def logistic(x: Any) -> Any:
    """The sigmoid in the clear."""
    # tanh neither overflows nor loses digits.
    return 0.5 + 0.5 * np.tanh(0.5 * x)


_CLEAR: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "sigmoid": logistic,
    "tanh": np.tanh,
    "gelu": lambda x: 0.5 * x * (1.0 + np.asarray(_erf(x / math.sqrt(2.0)), dtype=np.float64)),
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "inverse": lambda x: 1.0 / x,
    "sign": np.sign,
    "step": lambda x: 0.5 + 0.5 * np.sign(x),
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0.0),
}


def approximation(
    name: str, interval: tuple[float, float], tolerance: float = TOLERANCE, gap: float | None = None
) -> Approximation:
    """What stands in a function's place, before anything is encrypted: its proved ``error``, ``gap``, ``degrees`` and
    ``depth`` in levels, its ``products`` and ``key_switches``.

    ``name`` is exp, log, sigmoid, tanh, gelu, sqrt, rsqrt, inverse, sign, step, abs or relu. Refused with the kinds
    ``singular``, ``tolerance`` (which names the nearest that is reached) and ``argument``.
    """
    return _approximated(name, interval, tolerance, gap)


_made: dict[str, Approximation] = {}


def _approximated(name: Any, interval: Sequence[float], tolerance: float, gap: float | None) -> Approximation:
    # A clip comes as its range.
    named = {"clip": {"low": name[0], "high": name[1]}} if isinstance(name, tuple) else name
    literal = {"name": named, "interval": [float(end) for end in interval], "tolerance": float(tolerance)}
    text = json.dumps(literal if gap is None else {**literal, "gap": float(gap)})
    if text not in _made:
        # A loop asks for the same again and again, and planning more often than that.
        if len(_made) >= 256:
            _made.clear()
        _made[text] = Approximation(text)
    return _made[text]


def _applied(
    name: Any, x: Any, interval: Interval, tolerance: float | None, gap: float | None = None
) -> Any:
    """The function of that name of every element."""
    if not isinstance(x, Tensor):
        return _in_the_clear(name, x)
    if x.context.exact:
        remedy = "use equal, less, lookup or polynomial, or ckks"
        raise MismatchError(f"the function {name} of integers modulo t", kind="scheme", remedy=remedy)
    wanted = _wanted(x, interval)
    if tolerance is None:
        bends = isinstance(name, tuple) or name in _BENDS
        tolerance = BENT * float(wanted.reach) if bends else TOLERANCE
    if name in _JUMPS and gap is None:
        gap = GAP * float(wanted.reach)
    found = _approximated(name, (float(wanted.low), float(wanted.high)), _number(tolerance, "tolerance"), gap)
    x = x._within(wanted)._certified(wanted.reach)
    if x.context._approximations is not None:
        x.context._approximations.append((found.error, max(found.degrees)))
    values = _values(name, wanted)
    held = Held.everywhere(Range(values.low - found.error, values.high + found.error))
    called = name if isinstance(name, str) else "clip"
    # Beside the elements stand values at what stood there: the same pattern, else anything.
    rest = x._rest if x._rest >= SAME else FREE
    return x._with(called, x._each(found.operation()), rest, held)


def _number(value: Any, what: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{what} is {value!r}", kind="argument", remedy="pass a positive number") from None


def _wanted(x: Tensor, interval: Interval) -> Range:
    """The interval given, or where elements are known to lie."""
    if interval is not None:
        ends = tuple(interval) if isinstance(interval, (tuple, list)) else (interval,)
        wanted = Range.declared(ends, False, "interval") if len(ends) == 2 else None
        if wanted is None or wanted.low >= wanted.high:
            raise InputError(f"{interval} is no interval", kind="argument", remedy="pass its lower and its upper end")
        return wanted
    held = x._known()
    if held is None or not math.isfinite(held.elements.reach):
        raise InputError(
            "nothing is known of where elements lie",
            kind="range",
            remedy="pass interval=(low, high), or say x.declare_bound((low, high)) first",
        )
    low, high = float(held.elements.low), float(held.elements.high)
    # One number alone is no interval.
    slack = 0.0 if low < high else max(1.0, abs(low)) / 1024
    return Range(low - slack, high + slack)


def _values(name: Any, x: Range) -> Range:
    """Where the function's values lie for arguments in a range."""
    low, high = float(x.low), float(x.high)
    if isinstance(name, tuple):
        return Range(min(max(low, name[0]), name[1]), min(max(high, name[0]), name[1]))
    if name == "sign":
        return Range(-1.0, 1.0)
    if name == "step":
        return Range(0.0, 1.0)
    if name == "abs":
        return Range(max(low, -high, 0.0), float(x.reach))
    ends = [float(end) for end in _CLEAR[name](np.array([low, high]))]
    if name == "gelu" and low < 0:
        ends.append(_GELU - 0.0001)
    return Range(min(ends), max(ends))


def _in_the_clear(name: Any, x: Any) -> Any:
    array = np.asarray(x)
    if array.dtype.kind not in "biuf":
        raise DTypeError(f"functions of {type(x).__name__}", kind="dtype", remedy="pass a tensor, or real numbers")
    array = array.astype(np.float64)
    return np.clip(array, *name) if isinstance(name, tuple) else _CLEAR[name](array)


def exp(x: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """e^x of every element."""
    return _applied("exp", x, interval, tolerance)


def log(x: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """The natural logarithm of every element; the interval must be above 0."""
    return _applied("log", x, interval, tolerance)


def sigmoid(x: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """1 / (1 + e^-x) of every element."""
    return _applied("sigmoid", x, interval, tolerance)


def tanh(x: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """The hyperbolic tangent of every element."""
    return _applied("tanh", x, interval, tolerance)


def gelu(x: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """Each element times the normal distribution's probability below it."""
    return _applied("gelu", x, interval, tolerance)


def sqrt(x: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """The square root of every element; the interval must be above 0."""
    return _applied("sqrt", x, interval, tolerance)


def rsqrt(x: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """1 / sqrt(x) of every element; the interval must be above 0."""
    return _applied("rsqrt", x, interval, tolerance)


def inverse(x: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """1 / x of every element; the interval must not hold 0."""
    return _applied("inverse", x, interval, tolerance)


def absolute(x: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """|x| of every element."""
    return _applied("abs", x, interval, tolerance)


def relu(x: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """The larger of each element and 0."""
    return _applied("relu", x, interval, tolerance)


def clip(x: Any, low: float, high: float, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """Each element, or the end of the range ``low`` to ``high`` that is nearer to it."""
    ends = _number(low, "low"), _number(high, "high")
    if not ends[0] < ends[1]:
        raise InputError(f"clip to {low} to {high}", kind="argument", remedy="pass the lower end first")
    return _applied(ends, x, interval, tolerance)


def sign(
    x: Any, interval: Interval = None, *, tolerance: float | None = None, gap: float | None = None
) -> Any:
    """-1 for elements below 0, 1 for those above, undecided within ``gap``."""
    return _applied("sign", x, interval, tolerance, gap)


def step(
    x: Any, interval: Interval = None, *, tolerance: float | None = None, gap: float | None = None
) -> Any:
    """0 for elements below 0, 1 for those above, undecided within ``gap``."""
    return _applied("step", x, interval, tolerance, gap)


def compare(
    x: Any, y: Any, interval: Interval = None, *, tolerance: float | None = None, gap: float | None = None
) -> Any:
    """1 where x > y, 0 where x < y, undecided where they are within ``gap``; ``interval`` is where x - y lies."""
    return step(_difference(x, y), interval, tolerance=tolerance, gap=gap)


def maximum(x: Any, y: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """The larger of two elements; ``interval`` is where x - y lies."""
    return _chosen(x, y, interval, tolerance, 1)


def minimum(x: Any, y: Any, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """The smaller of two elements; ``interval`` is where x - y lies."""
    return _chosen(x, y, interval, tolerance, -1)


def _difference(x: Any, y: Any) -> Any:
    return x - y if isinstance(x, Tensor) or isinstance(y, Tensor) else np.subtract(x, y)


def _chosen(x: Any, y: Any, interval: Interval, tolerance: float | None, way: int) -> Any:
    """y and, if it goes this way, x - y."""
    excess = relu(way * _difference(x, y), None if interval is None else _turned(interval, way), tolerance=tolerance)
    found = y + excess if way > 0 else y - excess
    if isinstance(found, Tensor):
        known = [_known(z) for z in (x, y)]
        if all(known):
            choose = max if way > 0 else min
            low, high = (choose(float(getattr(r, end)) for r in known if r) for end in ("low", "high"))
            own = found._known()
            # What the polynomial is off by, too.
            off = BENT * float(_wanted(_difference(x, y), interval).reach) if tolerance is None else float(tolerance)
            common = None if own is None else own.elements.common(Range(low - off, high + off))
            if own is not None and common is not None:
                return found._knowing(Held(common, own.beside))
    return found


def _turned(interval: Any, way: int) -> Any:
    low, high = interval
    return (low, high) if way > 0 else (-high, -low)


def _known(x: Any) -> Range | None:
    if isinstance(x, Tensor):
        held = x._known()
        return None if held is None else held.elements
    return Range.of(np.asarray(x, dtype=np.float64))


def softmax(x: Any, axis: int = -1, interval: Interval = None, *, tolerance: float | None = None) -> Any:
    """e^x along an axis, divided by its sum; ``interval`` is where elements lie.

    The upper end is taken from all elements first, so that exponentials are at most 1: what they are off by and what the
    quotient is off by add up to the tolerance at most.
    """
    if not isinstance(x, Tensor):
        array = np.asarray(x, dtype=np.float64)
        powers = np.exp(array - array.max(axis=axis, keepdims=True))
        return powers / powers.sum(axis=axis, keepdims=True)
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(f"axis {axis} of {x.ndim}", kind="shape", remedy="pass one of the tensor's axes")
    wanted = _wanted(x, interval)
    tolerance = TOLERANCE if tolerance is None else _number(tolerance, "tolerance")
    count, width = x.shape[axis], float(wanted.high) - float(wanted.low)
    least = math.exp(-width)
    # Of a sum of at least n m a part d is d / (n m) of the quotient, and n of them in the sum no more than d / m.
    powers = exp(x._within(wanted) - float(wanted.high), (-width, 0.0), tolerance=tolerance * least / 4)
    off = count * tolerance * least / 4
    total = powers.sum(axis, keepdims=True).declare_bound((count * least - off, count + off))
    return powers * inverse(total, tolerance=tolerance / 2)


def argmax(x: Any, interval: Interval = None, *, tolerance: float | None = None, gap: float | None = None) -> Any:
    """1 in the place of the largest element of a short vector and 0 elsewhere, by comparing all pairs.

    Where two differ by less than ``gap`` both have a number between; ``interval`` is where elements lie.
    """
    if not isinstance(x, Tensor):
        array = np.asarray(x, dtype=np.float64)
        if array.ndim != 1 or array.size == 0:
            raise ShapeError(f"argmax of shape {array.shape}", kind="shape", remedy="pass a vector")
        return (np.arange(array.size) == array.argmax()).astype(np.float64)
    if x.ndim != 1:
        raise ShapeError(f"argmax of shape {x.shape}", kind="shape", remedy="pass a vector")
    count = x.shape[0]
    wanted = _wanted(x, interval)
    width = float(wanted.high) - float(wanted.low)
    x = x._within(wanted)
    # Off by a part of it each, n factors of at most 1 make a product that is off by the tolerance at most.
    own = (TOLERANCE if tolerance is None else _number(tolerance, "tolerance")) / (2 * count)
    # Of each pair whether the first is larger; an element with itself gives a half.
    larger = compare(x.reshape(count, 1), x.reshape(1, count), (-width, width), tolerance=own, gap=gap)
    return (larger + 0.5 * np.eye(count)).declare_bound((-own, 1.0 + own)).prod(axis=1)


# Most values that a polynomial of integers goes through.
_MOST_VALUES = 1 << 12


def equal(x: Any, y: Any, interval: Interval = None) -> Any:
    """1 where x = y, else 0, in BFV and BGV; ``interval`` is where x - y lies, unless it is known.

    Differences up to d take log2 d + 1 levels, and about 2 sqrt(d) products.
    """
    return _of_integers(_difference(x, y), interval, lambda d: d == 0, even=True)


def less(x: Any, y: Any, interval: Interval = None) -> Any:
    """1 where x < y, else 0, in BFV and BGV; ``interval`` is where x - y lies, unless it is known.

    Differences up to d take log2 d + 1 levels, and about 3 sqrt(d) products.
    """
    return _of_integers(_difference(x, y), interval, lambda d: d < 0)


def lookup(x: Any, table: Any, low: int = 0) -> Any:
    """``table[x - low]`` for every element x, in BFV and BGV; elements are integers of as many as the table has values."""
    values = _numbers.as_array(table)
    if values.ndim != 1 or not 1 <= values.size <= _MOST_VALUES or values.dtype.kind not in "biuO":
        raise ShapeError(
            f"a table of shape {values.shape} and {values.dtype}",
            kind="shape",
            remedy=f"pass 1 to {_MOST_VALUES} integers",
        )
    low = _numbers.whole(low, "low", -(1 << 39), 1 << 39)
    high = low + values.size - 1
    if isinstance(x, Tensor):
        return _table(x, Range(low, high), [int(value) for value in values])
    arguments = _clear_integers(x)
    if arguments.size and not low <= arguments.min() <= arguments.max() <= high:
        raise InputError(f"elements outside {low} to {high}", kind="range", remedy="pass a table that has them all")
    return values[arguments - low]


def _of_integers(d: Any, interval: Interval, holds: Callable[[Any], Any], even: bool = False) -> Any:
    """1 where it holds of a difference, else 0."""
    if not isinstance(d, Tensor):
        return np.asarray(holds(_clear_integers(d))).astype(np.int64)
    wanted = _whole(d, interval)
    if even and wanted.low < 0 < wanted.high:
        # What reads the same from both ends is of half the degree.
        wanted = Range(-int(wanted.reach), int(wanted.reach))
    low, high = int(wanted.low), int(wanted.high)
    if high - low >= _MOST_VALUES:
        raise InputError(
            f"integers from {shown(low)} to {shown(high)}: comparisons have at most {_MOST_VALUES} of them",
            kind="range",
            remedy="declare smaller bounds, pass interval=(low, high), or compare digit by digit",
        )
    return _table(d, wanted, [int(holds(value)) for value in range(low, high + 1)])


def _whole(x: Tensor, interval: Interval) -> Range:
    """The interval given, or where integers are known to lie."""
    _require_exact(x)
    if interval is not None:
        ends = tuple(interval) if isinstance(interval, (tuple, list)) else (interval,)
        wanted = Range.declared(ends, True, "interval") if len(ends) == 2 else None
        if wanted is None:
            raise InputError(f"{interval} is no interval", kind="argument", remedy="pass its lower and its upper end")
        return wanted
    held = x._held
    if held is None:
        raise InputError(
            "nothing is known of where elements lie",
            kind="range",
            remedy="pass bounds= to plan and bound= to encrypt, or interval=(low, high) of the difference",
        )
    return held.elements


def _require_exact(x: Tensor) -> None:
    if not x.context.exact:
        remedy = "use compare, with the gap in which it is undecided, or plan for bfv or bgv"
        raise MismatchError("equality, order and tables of real numbers", kind="scheme", remedy=remedy)


def _table(x: Tensor, wanted: Range, values: list[int]) -> Tensor:
    """The function that has these values on a range."""
    _require_exact(x)
    held = x._held
    if held is not None and not wanted.holds(held.elements):
        raise InputError(
            f"elements may lie in {held.elements}, the range is {wanted}",
            kind="range",
            remedy=f"widen it, or if you know that they lie in it say x.declare_bound(({wanted.low}, {wanted.high})) first",
        )
    found = Range(min(values), max(values))
    of_zero = values[int(-wanted.low)] if wanted.low <= 0 <= wanted.high else None
    keeps = x._rest >= SAME or (x._rest == ZERO and of_zero == 0)
    beside = found if x._rest >= SAME else found.zero if keeps else found.unknown
    numbers = _numbers.flat(np.array(values, dtype=object), True)
    try:
        parts = x._each(Operation.table(int(wanted.low), numbers))
    except InputError as error:
        if error.kind == "value_exceeds_modulus" and x.context._native.dry:
            raise OtherModulus(int(found.reach), 0) from None
        raise
    return x._with("table", parts, x._rest if keeps else FREE, Held(found, beside))


def _clear_integers(x: Any) -> Any:
    array = np.asarray(x)
    if array.dtype.kind not in "biu":
        raise DTypeError(
            f"integers are compared, not {array.dtype}", kind="dtype", remedy="pass a tensor, or integers"
        )
    return array.astype(np.int64)
