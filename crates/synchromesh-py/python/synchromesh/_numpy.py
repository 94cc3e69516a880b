"""NumPy's functions on tensors: those that compute, those that only arrange elements, and what to write for the others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import _stacks
from .errors import DTypeError, ShapeError, SynchromeshError

if TYPE_CHECKING:
    from .tensor import Tensor

# Methods of the first operand that is a tensor: in its place from the left, and from the right.
_BINARY = {
    "add": ("__add__", "__radd__"),
    "subtract": ("__sub__", "__rsub__"),
    "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"),
    "true_divide": ("__truediv__", "__rtruediv__"),
    "matmul": ("__matmul__", "__rmatmul__"),
    "power": ("__pow__", "__rpow__"),
}
_UNARY = {"negative": "__neg__", "positive": "__pos__", "square": "square", "conjugate": "conjugate"}
_REDUCED = {"add": "sum", "multiply": "prod"}
# Of `functions`: in their place on the interval where elements are known to lie.
_FUNCTIONS = {
    "absolute": "absolute",
    "exp": "exp",
    "expit": "sigmoid",
    "fabs": "absolute",
    "fmax": "maximum",
    "fmin": "minimum",
    "log": "log",
    "maximum": "maximum",
    "minimum": "minimum",
    "reciprocal": "inverse",
    "sign": "sign",
    "sqrt": "sqrt",
    "tanh": "tanh",
}
_ORDERS = {
    "greater": ("__gt__", "__lt__"),
    "greater_equal": ("__ge__", "__le__"),
    "less": ("__lt__", "__gt__"),
    "less_equal": ("__le__", "__ge__"),
}
_SMOOTH = "take x.chebyshev(np.{name}, (low, high), degree), in ckks"
_UNORDERED = "encrypted numbers have no known order: decrypt them first"

# Functions that only choose and arrange elements: NumPy's own, on slots in the place of numbers.
_ARRANGED = {
    getattr(np, name)
    for name in (
        "array_split atleast_1d atleast_2d atleast_3d broadcast_to column_stack concatenate delete diagonal dstack "
        "expand_dims flip fliplr flipud hsplit hstack moveaxis ravel repeat reshape resize roll rollaxis rot90 split "
        "squeeze stack swapaxes take tile transpose vsplit vstack"
    ).split()
}
_METHODS = {np.sum: "sum", np.mean: "mean", np.var: "var", np.prod: "prod", np.conjugate: "conjugate"}

_INSTEAD = {
    "save": "write it with x.save(path), which takes no secret along",
    "savez": "write each with x.save(path)",
    "savetxt": "write it with x.save(path)",
    "where": "with a public condition c: c * x + (1 - c) * y; conditions on encrypted numbers are not known",
    "einsum": "write it with *, .sum(axis) and @",
    "tensordot": "write it with transpose, reshape and @",
    "kron": "write it with reshape and *",
    "std": "take x.std(axis, interval=(low, high)), which variances lie in",
    "corrcoef": "take x.corrcoef(rowvar, interval=(low, high)), which variances lie in",
    "norm": "take x.square().sum(), and chebyshev(np.sqrt, (low, high), degree) of it",
    "convolve": "add shifted slices, each times its weight",
    "append": "encrypt what is added, and take synchromesh.concatenate",
    "pad": "encrypt what is added, and take synchromesh.concatenate",
    "cumsum": "multiply by np.tril(np.ones((n, n)))",
    "diff": "subtract slices: x[1:] - x[:-1]",
}
_ORDERED = (
    "allclose amax amin argmax argmin argsort array_equal array_equiv isclose max median min percentile quantile round "
    "searchsorted sort unique"
).split()


# Attributes of arrays that tensors have not.
_ABSENT = {
    "astype": "encrypt numbers of the type that you want",
    "copy": "nothing changes a tensor: use it as it is",
    "fill": "nothing changes a tensor: encrypt another",
    "flatten": "take x.ravel()",
    "item": "decrypt it: secret.decrypt(x)",
    "repeat": "take np.repeat(x, n)",
    "squeeze": "take np.squeeze(x)",
    "swapaxes": "take np.swapaxes(x, i, j)",
    "take": "take np.take(x, indices)",
    "tolist": "decrypt it: secret.decrypt(x)",
    "trace": "take np.trace(x)",
}


def absent(name: str) -> str | None:
    """Why a tensor has no attribute of this name, and what to write instead, where arrays have one."""
    if name.startswith("_") or not hasattr(np.ndarray, name):
        return None
    remedy = _ABSENT.get(name) or _INSTEAD.get(name)
    if remedy is None and (name in _ORDERED or name in ("argpartition", "partition", "all", "any")):
        remedy = _UNORDERED
    if remedy is None:
        remedy = "write it with the tensor's own operations (+ - * @, slices, sum, mean, var), or decrypt it first"
    return f"encrypted tensors have no {name}. Remedy: {remedy}"


def of_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A universal function, or its reduction, of inputs among which is a tensor."""
    from . import functions
    from .tensor import Tensor

    name = ufunc.__name__
    if method == "__call__" and not kwargs:
        if name in _UNARY:
            return getattr(inputs[0], _UNARY[name])()
        if name in _BINARY:
            x, y = inputs
            first, second = _BINARY[name]
            own = isinstance(x, Tensor)
            method_of = getattr(x, first) if own else getattr(y, second, None)
            found = NotImplemented if method_of is None else method_of(y if own else x)
            if found is not NotImplemented:
                return found
        exact = next(x for x in inputs if isinstance(x, Tensor)).context.exact
        if name in _FUNCTIONS and not exact:
            return getattr(functions, _FUNCTIONS[name])(*inputs)
        if name in _ORDERS:
            x, y = inputs
            first, second = _ORDERS[name]
            return getattr(x, first)(y) if isinstance(x, Tensor) else getattr(y, second)(x)
        if name.startswith(("equal", "not_equal", "less", "greater", "logical")):
            return next(x for x in inputs if isinstance(x, Tensor))._compared()
    if method == "reduce" and name in _REDUCED and isinstance(inputs[0], Tensor):
        return _method(inputs[0], _REDUCED[name], inputs[1:], kwargs)
    if kwargs.get("out") is not None:
        raise DTypeError(
            f"np.{name} of encrypted numbers into an array", kind="dtype", remedy="write y = y + x, not y += x"
        )
    called = name if method == "__call__" else f"{name}.{method}"
    remedy = _SMOOTH.format(name=name)
    if method != "__call__" or len(inputs) != 1:
        remedy = "write it with + - * @ and sums over axes"
    raise DTypeError(f"np.{called} of encrypted numbers", kind="dtype", remedy=remedy)


def of_function(function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function of NumPy with a tensor among its arguments."""
    name = function.__name__
    if function in _METHODS:
        first = next(iter(args), None)
        x = kwargs.pop("a") if first is None and "a" in kwargs else first
        return _method(x, _METHODS[function], args[1:], kwargs)
    if function in _OWN:
        return _bound(name, _OWN[function], args, kwargs)
    if function in _ARRANGED:
        return _arranged(name, function, args, kwargs)
    remedy = _UNORDERED if name in _ORDERED else _INSTEAD.get(name)
    if remedy is None:
        remedy = "write it with the tensor's own operations (+ - * @, slices, sum, mean, var), or decrypt it first"
    raise DTypeError(f"np.{name} of encrypted numbers", kind="dtype", remedy=remedy)


def _method(x: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    from .tensor import Tensor

    # What NumPy's dispatch passes although nobody asked for it.
    given = {key: value for key, value in kwargs.items() if value is not None and value is not np._NoValue}
    if not isinstance(x, Tensor):
        raise DTypeError(f"np.{name} with a tensor that is not what it is of", kind="dtype", remedy=f"call x.{name}")
    if name not in ("sum", "mean") or not given.keys() & {"where", "initial"}:
        return _bound(name, getattr(x, name), args, given)
    chosen, initial = given.pop("where", True), given.pop("initial", 0)
    if isinstance(chosen, Tensor) or np.asarray(chosen).dtype != np.bool_:
        raise DTypeError(
            f"np.{name} where numbers are", kind="dtype", remedy=f"take a public condition, or (x * condition).{name}()"
        )
    try:
        chosen = np.broadcast_to(chosen, x.shape)
    except ValueError as error:
        raise ShapeError(f"np.{name}: {error}", kind="shape", remedy=f"pass a condition of shape {x.shape}") from None
    # A mask of ones would take a level.
    total = _bound(name, (x if chosen.all() else x * chosen.astype(np.int64)).sum, args, given)
    if name == "sum":
        return total + initial
    counts = np.asarray(_bound(name, chosen.sum, args, given))
    if not counts.all():
        raise ShapeError(f"np.{name} of no elements", kind="shape", remedy="choose an element of each mean")
    return total / counts


def _bound(name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        takes = ", ".join(signature.parameters)
        raise DTypeError(f"np.{name} of a tensor: {error}", kind="dtype", remedy=f"it takes {takes}") from None
    return function(*args, **kwargs)


def _arranged(name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    from .tensor import Tensor

    for key in ("out", "dtype", "casting"):
        if kwargs.get(key) is not None and kwargs[key] is not np._NoValue:
            raise DTypeError(f"np.{name} of a tensor with {key}=", kind="dtype", remedy="take what it returns")
    found: list[Tensor] = []

    def collect(value: Any) -> None:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            tensors = [isinstance(each, Tensor) for each in value]
            if any(tensors) and not all(tensors):
                message = f"np.{name} of encrypted and public numbers"
                raise DTypeError(message, kind="dtype", remedy="encrypt the public ones first")
            for each in value:
                collect(each)

    for value in (*args, *kwargs.values()):
        collect(value)
    if not found or (args and not isinstance(args[0], (Tensor, list, tuple))):
        raise DTypeError(f"np.{name} by encrypted numbers", kind="dtype", remedy="choose elements by public numbers")
    joint, layouts = _stacks.joined(found)
    left = iter(layouts)

    def replaced(value: Any) -> Any:
        if isinstance(value, Tensor):
            return next(left)
        return [replaced(each) for each in value] if _holds(value, Tensor) else value

    def tensors(value: Any) -> Any:
        return joint._taken(value) if isinstance(value, np.ndarray) else type(value)(tensors(each) for each in value)

    try:
        at = function(*[replaced(value) for value in args], **{key: replaced(value) for key, value in kwargs.items()})
    except SynchromeshError:
        raise
    except (ValueError, TypeError, IndexError) as error:
        raise ShapeError(f"np.{name}: {error}", kind="shape", remedy="see NumPy's documentation of it") from None
    return tensors(at)


def _holds(value: Any, kind: type) -> bool:
    return isinstance(value, (list, tuple)) and any(isinstance(each, kind) for each in value)


def _dot(a: Any, b: Any) -> Any:
    if np.ndim(a) == 0 or np.ndim(b) == 0:
        return a * b
    if np.ndim(a) > 2 or np.ndim(b) > 2:
        raise ShapeError("np.dot of more than two axes", kind="shape", remedy="use @, which NumPy recommends")
    return a @ b


def _inner(a: Any, b: Any) -> Any:
    return _dot(a, b.T)


def _vdot(a: Any, b: Any) -> Any:
    a = a if not isinstance(a, np.ndarray) else a.conj()
    return (a.conjugate() if getattr(a, "dtype", np.dtype(int)).kind == "c" else a).reshape(-1) @ b.reshape(-1)


def _outer(a: Any, b: Any) -> Any:
    return a.reshape(-1, 1) * b.reshape(1, -1)


def _trace(a: Tensor) -> Any:
    return np.diagonal(a).sum()


def _average(a: Tensor, axis: Any = None, weights: Any = None) -> Any:
    if weights is None:
        return a.mean(axis)
    w = np.asarray(weights)
    if w.ndim == 1 and isinstance(axis, int):
        w = w.reshape([-1 if k == axis % a.ndim else 1 for k in range(a.ndim)])
    return (a * (w / w.sum())).sum(axis)


def _clip(a: Any, a_min: Any = None, a_max: Any = None) -> Any:
    from . import functions

    if a.context.exact:
        raise DTypeError("np.clip of encrypted integers", kind="dtype", remedy=_UNORDERED)
    known = functions._wanted(a, None)
    low, high = known.low if a_min is None else a_min, known.high if a_max is None else a_max
    return functions.clip(a, low, high)


def _cov(m: Tensor, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Any:
    """The covariances of the rows, or of the columns unless ``rowvar``."""
    x = m.reshape(1, -1) if m.ndim < 2 else m if rowvar else m.T
    count = x.shape[1]
    ddof = (0 if bias else 1) if ddof is None else ddof
    if not 0 <= ddof < count:
        raise ShapeError(f"covariances of {count} with ddof {ddof}", kind="shape", remedy="pass more observations")
    mean = x.sum(1, keepdims=True) * (1.0 / count)
    found = (x @ x.T) * (1.0 / (count - ddof)) - (mean @ mean.T) * (count / (count - ddof))
    return found.reshape(()) if m.ndim < 2 else found


def correlations(m: Tensor, rowvar: bool, interval: Any) -> Tensor:
    """The covariances of the rows, or of the columns unless ``rowvar``, by their deviations; variances lie in the interval."""
    from .functions import rsqrt

    if m.ndim != 2:
        raise ShapeError(f"correlations of shape {m.shape}", kind="shape", remedy="pass a table of two axes")
    found = _cov(m, rowvar, bias=True)
    variances: Any = np.diagonal(found)
    inverse = rsqrt(variances.declare_bound(interval))
    return cast("Tensor", found * inverse.reshape(-1, 1) * inverse.reshape(1, -1))


def _shape(a: Any) -> tuple[int, ...]:
    return tuple(a.shape)


_OWN: dict[Any, Callable[..., Any]] = {
    np.dot: _dot,
    np.inner: _inner,
    np.vdot: _vdot,
    np.outer: _outer,
    np.trace: _trace,
    np.average: _average,
    np.cov: _cov,
    np.clip: _clip,
    np.shape: _shape,
    np.ndim: lambda a: a.ndim,
    np.size: lambda a: a.size,
}
