"""Plans: parameters chosen for what shall be computed, by a description or by a dry run of a Python function."""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import _native, _numbers
from ._layout import ZERO, canonical
from .errors import DTypeError, ParamsError, ShapeError

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["Plan", "plan"]

Step = tuple[str, int, float]
Shapes = Union[Sequence[Any], Mapping[str, Any]]
_MAX_PLAN_BYTES = 1 << 24


class Plan:
    """Parameters with what they cost and why they were chosen; the JSON file of ``synchromesh plan``."""

    def __init__(self, text: str, trace: Sequence[Step] = ()) -> None:
        if not isinstance(text, str) or len(text) > _MAX_PLAN_BYTES:
            raise DTypeError("a plan is made of JSON text", kind="dtype", remedy="call synchromesh.plan")
        self.security_bits, self._prepared_bytes = _native.check_plan(text)
        self._text = text
        self._fields = json.loads(text)
        self._trace = tuple(trace)

    def to_json(self) -> str:
        """The plan as text."""
        return self._text

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The plan in text, checked again."""
        return cls(text)

    def save(self, path: Any, *, replace: bool = False) -> None:
        """Writes the plan to a file."""
        _native.write_file(os.fspath(path), self._text.encode(), replace)

    @classmethod
    def load(cls, path: Any) -> Plan:
        """The plan in a file."""
        try:
            return cls(_native.read_file(os.fspath(path)).decode())
        except UnicodeDecodeError as error:
            raise ParamsError(f"the plan is no text: {error}", kind="params", remedy="give a plan file") from None

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan, (self._text, self._trace)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        keys = 1 + len(self.rotations) + self.swap
        return (
            f"Plan({self.scheme}, N=2^{self.log_n}, {self.slots} slots, depth {self.depth}, log2 QP={self.log_qp}, "
            f"{self.security_bits:.0f}-bit, {keys} keys of {self.key_bytes} bytes)"
        )

    @property
    def scheme(self) -> str:
        """``"bfv"``, ``"bgv"`` or ``"ckks"``."""
        return str(self._fields["scheme"])

    @property
    def t(self) -> int | None:
        """Plaintext modulus of BFV and BGV."""
        params = self._fields["params"].get(self.scheme, {})
        return int(str(params["t"]), 0) if "t" in params else None

    @property
    def log_n(self) -> int:
        """log2 of the ring degree."""
        return int(self._fields["log_n"])

    @property
    def slots(self) -> int:
        """Numbers in a ciphertext."""
        return int(self._fields["slots"])

    @property
    def depth(self) -> int:
        """Multiplications after one another."""
        return int(self._fields["depth"])

    @property
    def levels(self) -> int:
        """Levels of ciphertexts, the lowest included."""
        return len(self._fields["switch"])

    @property
    def q_bits(self) -> list[int]:
        """Widths of the ciphertext primes."""
        return list(self._fields["q_bits"])

    @property
    def p_bits(self) -> list[int]:
        """Widths of the special primes of key switching."""
        return list(self._fields["p_bits"])

    @property
    def log_qp(self) -> int:
        """Bits of the product of all primes of a key."""
        return int(self._fields["log_qp"])

    @property
    def rotations(self) -> list[int]:
        """Rotations that keys are made for."""
        return list(self._fields["rotations"])

    @property
    def swap(self) -> bool:
        """Whether the key that conjugates (CKKS) or swaps rows (BFV, BGV) is made."""
        return bool(self._fields["swap"])

    @property
    def key_bytes(self) -> int:
        """Bytes of all evaluation keys in files."""
        return int(self._fields["key_bytes"])

    @property
    def trace(self) -> tuple[Step, ...]:
        """The operations of the planned function: name, level after it, bits of noise budget (precision in CKKS)."""
        return self._trace

    def explain(self) -> str:
        """Why each choice was made, and what the planned function does to level and noise."""
        unit = "precision" if self.scheme == "ckks" else "noise budget"
        lines = [str(line) for line in self._fields["explain"]]
        lines += [f"{what}: level {level}, {bits:.1f} bits of {unit}" for what, level, bits in self._trace]
        return "\n".join(lines)

    def memory(self, ciphertexts: int = 1) -> dict[str, int]:
        """A forecast in bytes: ``ciphertexts`` fresh ones, keys in files and prepared for use, scratch, and the total."""
        count = _numbers.whole(ciphertexts, "ciphertexts", 0, 1 << 40)
        keys = 1 + len(self.rotations) + self.swap
        parts = {
            "ciphertexts": count * 16 * len(self.q_bits) << self.log_n,
            "keys_in_files": self.key_bytes,
            "prepared_keys": keys * self._prepared_bytes,
            "scratch": int(self._fields["scratch_bytes"]),
        }
        parts["total"] = parts["ciphertexts"] + parts["prepared_keys"] + parts["scratch"]
        return parts

    def plot(self, ax: Any = None) -> Any:
        """Draws level and noise after each operation of the planned function, or the primes; needs matplotlib."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("plots need matplotlib. Remedy: pip install synchromesh[plot]") from None
        if ax is None:
            _, ax = plt.subplots(figsize=(8, 4.5))
        if not self._trace:
            widths = self.q_bits + self.p_bits
            colours = ["tab:blue"] * len(self.q_bits) + ["tab:orange"] * len(self.p_bits)
            ax.bar(range(len(widths)), widths, color=colours)
            ax.set(xlabel="prime (blue: ciphertext, orange: special)", ylabel="bits", title=repr(self))
            return ax
        places = range(len(self._trace))
        unit = "bits of precision" if self.scheme == "ckks" else "bits of noise budget"
        (noise,) = ax.plot(places, [bits for _, _, bits in self._trace], marker="o", color="tab:blue", label=unit)
        ax.set_ylabel(unit)
        ax.set_xticks(places, [what for what, _, _ in self._trace], rotation=60, ha="right")
        levels = ax.twinx()
        (steps,) = levels.step(
            places, [level for _, level, _ in self._trace], where="mid", color="tab:orange", label="level"
        )
        levels.set_ylabel("level")
        levels.yaxis.get_major_locator().set_params(integer=True)
        ax.legend(handles=[noise, steps], loc="upper right")
        ax.set_title(f"{self.scheme}, N = 2^{self.log_n}, {self.security_bits:.0f}-bit")
        return ax


def plan(
    function: Callable[..., Any] | None = None,
    shapes: Shapes | None = None,
    *,
    scheme: str = "ckks",
    depth: int = 0,
    t: int | str | None = None,
    precision: int | None = None,
    bounds: Sequence[float] | float = 1.0,
    rotations: Sequence[int] = (),
    swap: bool = False,
    additions: int = 0,
    min_slots: int = 0,
    security: int | str = 128,
    max_key_bytes: int | None = None,
    width: int | None = None,
    max_digits: int | None = None,
    max_memory_bytes: int | None = None,
    prime_switching: tuple[int, int] | None = None,
    static_levels: bool = False,
    leading_levels: int = 0,
    rotation_level: int | None = None,
) -> Plan:
    """The smallest parameters for a description, or for an ordinary function of tensors.

    A function is run without data on tensors of ``shapes`` (a list, or names with shapes), until parameters are found
    at which every noise certificate holds and, in CKKS, the results are within ``2**-precision``; its rotations are
    found on the way. ``bounds`` say how large its inputs may be. Without a function ``depth`` and ``rotations`` say
    what shall be computed.

    ``prime_switching`` is ``(mu, kappa)``: mostly large primes, mu of which leave where kappa levels are used up.
    ``leading_levels`` from the top are under the first secret key, the others under a second one. ``rotation_level`` is
    the highest level at which slots are rotated. ``static_levels`` are those of BGV's static rule.
    """
    level = str(security)
    if level not in ("128", "192", "256", "insecure"):
        raise ParamsError(f"security {security!r}", kind="params", remedy="choose 128, 192, 256 or 'insecure'")
    if scheme not in ("bfv", "bgv", "ckks"):
        raise ParamsError(f"scheme {scheme!r}", kind="params", remedy="choose 'bfv', 'bgv' or 'ckks'")
    description = {
        "scheme": scheme,
        "t": None if t is None else str(t),
        "precision": _optional(precision, "precision", 1 << 10),
        "depth": _numbers.whole(depth, "depth", 0, 1 << 20),
        "additions": _numbers.whole(additions, "additions", 0, 1 << 40),
        "rotations": [_numbers.whole(k, "rotation", -(1 << 40), 1 << 40) for k in _listed(rotations, "rotations")],
        "swap": bool(swap),
        "min_slots": _numbers.whole(min_slots, "min_slots", 0, 1 << 40),
        "security": level,
        "max_key_bytes": _optional(max_key_bytes, "max_key_bytes", 1 << 60),
        "width": _optional(width, "width", 1 << 20),
        "max_digits": _optional(max_digits, "max_digits", 1 << 20),
        "max_memory_bytes": _optional(max_memory_bytes, "max_memory_bytes", 1 << 60),
        "prime_switching": _switching(prime_switching),
        "static_levels": bool(static_levels),
        "leading_levels": _numbers.whole(leading_levels, "leading_levels", 0, 1 << 20),
        "rotation_level": _optional(rotation_level, "rotation_level", 1 << 20),
    }
    text = json.dumps(description)
    if function is None:
        return Plan(_native.plan(text))
    if not callable(function):
        raise DTypeError(f"{type(function).__name__} is no function", kind="dtype", remedy="pass a function of tensors")
    if shapes is None:
        raise ShapeError("no shapes were given", kind="shape", remedy="pass the shapes of the function's arguments")
    return _of_function(function, shapes, bounds, scheme, text)


class _Calls:
    """Calls of functions that are planned, on threads that Python knows nothing of.

    An interpreter that ends while such a thread wants its lock back takes the process down, so it waits for them.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._ending = False

    def __enter__(self) -> None:
        with self._changed:
            if self._ending:
                raise KeyboardInterrupt
            self._running += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def end(self) -> None:
        """Lets no further call begin, and waits for those that run."""
        with self._changed:
            self._ending = True
            self._changed.wait_for(lambda: self._running == 0)


_calls = _Calls()
atexit.register(_calls.end)


class _Steps(list[Step]):
    """The operations of a dry run; they end with an exception when nobody waits for the plan any more."""

    stopped = False

    def append(self, step: Step) -> None:
        if self.stopped:
            raise KeyboardInterrupt
        super().append(step)


def _of_function(
    function: Callable[..., Any], shapes: Shapes, bounds: Sequence[float] | float, scheme: str, description: str
) -> Plan:
    from .context import Context
    from .tensor import Tensor

    names = list(shapes) if isinstance(shapes, Mapping) else None
    listed = [_shape_of(s) for s in (shapes.values() if isinstance(shapes, Mapping) else _listed(shapes, "shapes"))]
    largest = [float(b) for b in np.broadcast_to(_numbers.flat(_numbers.as_array(bounds), False).real, len(listed))]
    trace = _Steps()

    def called(native: _native.Context, fresh: list[_native.Ciphertext]) -> list[_native.Ciphertext]:
        trace.clear()
        context = Context._dry(native, scheme, trace)
        dtype = np.dtype(np.int64 if context.exact else np.float64)
        slots = context._native.slots
        if slots == 0:
            raise ParamsError("these parameters give no slots", kind="no_slots", remedy="choose a prime t, say 65537")
        inputs = []
        for cipher, shape in zip(fresh, listed):
            at = canonical(shape)
            inputs.append(Tensor._made(context, "input", [cipher] * -(-at.size // slots), at, dtype, ZERO))
        result = function(*inputs) if names is None else function(**dict(zip(names, inputs)))
        return [part for tensor in _tensors(result) for part in tensor._parts]

    def run(native: _native.Context, fresh: list[_native.Ciphertext]) -> list[_native.Ciphertext]:
        with _calls:
            return called(native, fresh)

    try:
        return Plan(_native.plan_function(description, largest, run), trace)
    except BaseException:
        trace.stopped = True
        raise


def _tensors(result: Any) -> list[Tensor]:
    from .tensor import Tensor

    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, (tuple, list)) and result:
        return [tensor for each in result for tensor in _tensors(each)]
    raise DTypeError(
        f"the function returned {type(result).__name__}", kind="dtype", remedy="return tensors, or a list of them"
    )


def _shape_of(shape: Any) -> tuple[int, ...]:
    numbers = (shape,) if isinstance(shape, (int, np.integer)) else _listed(shape, "shape")
    found = tuple(_numbers.whole(n, "axis", 1, _numbers.MAX_ELEMENTS) for n in numbers)
    if np.prod(found, dtype=object) > _numbers.MAX_ELEMENTS:
        raise ShapeError(f"shape {found} is too large", kind="shape", remedy="plan for a part of it")
    return found


def _listed(values: Any, what: str) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise DTypeError(f"{what} is {values!r}, no list", kind="dtype", remedy="pass a list") from None


def _switching(value: Any) -> dict[str, int] | None:
    if value is None:
        return None
    numbers = [_numbers.whole(x, "prime_switching", 0, 1 << 20) for x in _listed(value, "prime_switching")]
    if len(numbers) != 2:
        raise ParamsError("prime_switching takes two numbers", kind="params", remedy="pass (mu, kappa), say (1, 2)")
    return {"mu": numbers[0], "kappa": numbers[1]}


def _optional(value: Any, what: str, high: int) -> int | None:
    return None if value is None else _numbers.whole(value, what, 0, high)
