"""Plans: parameters chosen for what shall be computed, by a description or by a dry run of a Python function."""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np

from . import _native, _numbers, _text
from ._layout import ZERO, Slots, canonical
from ._progress import Meter, Progress
from ._ranges import Bound, Held, Range, shown
from .errors import DTypeError, InputError, ParamsError, ShapeError, SynchromeshError

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["Joint", "Plan", "Refresh", "plain_modulus", "plan"]

Step = _text.Step
Shapes = Union[Sequence[Any], Mapping[str, Any]]
Bounds = Union[Bound, Sequence[Bound], Mapping[str, Bound], None]
# What the library takes where nothing is asked for.
_DEFAULT_T = 65537
_DEFAULT_PRECISION = 20
# Failure probabilities that plans are made for, the usual one first.
_FAILURES = (2.0**-128, 2.0**-64, 2.0**-40)
# Slots at every degree up to this one, which shallow circuits need; and to the largest.
_LOG_N, _LARGEST_LOG_N = 15, 17
_MAX_PLAN_BYTES = 1 << 24
# Parts of a forecast of memory; which part of all buffers is kept of those that are not in use, and how many bytes at most.
_MEMORY = ("ciphertexts", "keys", "prepared_keys", "tables", "working", "maps", "kept")
_KEPT, _MOST_KEPT = 8, 64 << 20
# Bytes of maps from which it is worth looking for what planning left.
_LARGE_MAPS = 1 << 23


@dataclass(frozen=True)
class Joint:
    """A key that ``parties`` hold together and ``threshold`` of them decrypt with: all unless fewer are named, two at least.

    ``security`` are the bits by which what parties show of their shares is hidden: 128 unless given, and in CKKS, where each
    takes half a bit of the scale, 40. ``decryptions`` is how many ciphertexts they may decrypt under one key: 2**20 unless
    given, in CKKS 2**10. With ``proofs`` each proves its shares of the keys and is blamed for a wrong one.
    """

    parties: int
    threshold: int | None = None
    security: int | None = None
    decryptions: int | None = None
    proofs: bool = False


def _held_by(joint: Any, scheme: str) -> dict[str, int]:
    """What the library is told of a joint key."""
    if not isinstance(joint, Joint):
        raise DTypeError(f"{type(joint).__name__} is no Joint", kind="dtype", remedy="pass synchromesh.parties.Joint")
    parties = _numbers.whole(joint.parties, "parties", 2, 64)
    security, decryptions = (40, 1 << 10) if scheme == "ckks" else (128, 1 << 20)
    return {
        "parties": parties,
        "threshold": parties if joint.threshold is None else _numbers.whole(joint.threshold, "threshold", 2, parties),
        "security": security if joint.security is None else _numbers.whole(joint.security, "security", 30, 256),
        "decryptions": decryptions if joint.decryptions is None else _numbers.whole(joint.decryptions, "decryptions", 1, 1 << 40),
        "proofs": bool(joint.proofs),
    }


class Refresh(NamedTuple):
    """A value that is refreshed before something takes it."""

    operation: int | None
    """The operation of the planned function that makes it, counted from 1 along ``trace``; none within an operation."""
    made_by: str
    """What makes it, as the library calls it."""
    ciphertexts: int
    """How many came about alike, each of which is refreshed."""


class Plan:
    """Parameters with what they cost and why they were chosen; the JSON file of ``synchromesh plan``."""

    def __init__(
        self,
        text: str,
        trace: Sequence[Step] = (),
        notes: Sequence[str] = (),
        inputs: int = 0,
        maps: int = 0,
        made: Mapping[str, int] | None = None,
    ) -> None:
        if not isinstance(text, str) or len(text) > _MAX_PLAN_BYTES:
            raise DTypeError("a plan is made of JSON text", kind="dtype", remedy="call synchromesh.plan")
        self.security_bits, whole = _native.check_plan(text)
        self._text = text
        self._fields = json.loads(whole)
        self._trace = tuple(trace)
        self._notes = tuple(notes)
        # Ciphertexts of the planned function's inputs beyond one for each.
        self._inputs = inputs
        # For the values that are refreshed, and those that need it, the number of the operation in the trace.
        named = {at for placed in self._fields.get("refreshes", []) for at in (placed["value"], placed["needed_by"])}
        self._made = {at: number for at, number in (made or {}).items() if at in named}
        # The most bytes of entries and numbers of a linear map of the planned function.
        self._maps = maps

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
        return Plan, (self._text, self._trace, self._notes, self._inputs, self._maps, self._made)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        keys = 1 + len(self.rotations) + self.swap
        return (
            f"Plan({self.scheme}, N=2^{self.log_n}, {self.slots} slots, depth {self.depth}, log2 QP={self.log_qp}, "
            f"{self.security_bits:.0f}-bit, {keys} {'key' if keys == 1 else 'keys'} of {_text.size(self.key_bytes)}"
            f"{self._failure_said})"
        )

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows: list[tuple[str, object]] = [
            ("ring degree", f"N = 2^{self.log_n}"),
            ("slots", self.slots),
            ("depth", self.depth),
            ("log2 QP", self.log_qp),
            ("security", f"{self.security_bits:.0f} bits"),
            ("failure probability", self._failure_text),
            ("rotations", len(self.rotations)),
            ("keys in files", _text.size(self.key_bytes)),
            ("memory", _text.size(self.memory()["total"])),
        ]
        if self.t is not None:
            rows.insert(1, ("plaintext modulus", shown(self.t)))
        return _text.table(f"Plan, {self.scheme}", rows)

    @property
    def _real(self) -> bool:
        """Whether refreshes keep real parts only."""
        bootstrap = self._fields.get("bootstrap")
        return bootstrap is not None and bool(bootstrap.get("messages") == "real")

    @property
    def _refreshing(self) -> bool:
        """Whether ciphertexts are refreshed."""
        return any(self._fields.get(name) is not None for name in ("bootstrap", "inside"))

    @property
    def _identity(self) -> str:
        """The same for plans whose keys and tensors serve one another, with certificates that mean the same."""
        said = [self._fields[name] for name in ("scheme", "params", "log2_p_fail")]
        return json.dumps([*said, self._fields.get("inside")], sort_keys=True)

    def _same_parameters(self, other: Plan) -> bool:
        """Whether keys of one serve the other."""
        return self._identity == other._identity

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
    def failure(self) -> float:
        """The largest probability that a decryption fails or, in CKKS, that an error exceeds ``error_bound``."""
        return float(2.0 ** self._fields["log2_p_fail"])

    @property
    def _failure_text(self) -> str:
        return f"2^{self._fields['log2_p_fail']:.0f}"

    @property
    def _failure_said(self) -> str:
        """How reports of the plan's objects name a probability other than the usual one."""
        return "" if self.failure == _FAILURES[0] else f", failure {self._failure_text}"

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

    @property
    def refreshes(self) -> tuple[Refresh, ...]:
        """The values that are refreshed, in the order they are made; none where each is as it runs out of levels."""
        return tuple(
            Refresh(self._made.get(placed["value"]), placed["made_by"], int(placed["ciphertexts"]))
            for placed in self._fields.get("refreshes", [])
        )

    def explain(self) -> str:
        """Why each choice was made, and what the planned function does to level and noise, repeated steps in one line."""
        unit = "precision" if self.scheme == "ckks" else "noise budget"
        said = [self._in_place(str(line)) for line in self._fields["explain"]]
        # The library knows of no tensors: memory is told as this package counts it.
        lines = [line for line in said if not line.startswith("memory: ")] + list(self._notes)
        parts = self.memory()
        listed = ", ".join(f"{name.replace('_', ' ')} {_text.size(parts[name])}" for name in _MEMORY if parts[name])
        lines.append(f"memory: {_text.size(parts['total'])}: {listed}")
        lines += [f"{what}: level {level}, {bits:.1f} bits of {unit}" for what, level, bits in _text.folded(self._trace)]
        return "\n".join(_text.sized(line) for line in lines)

    def _in_place(self, line: str) -> str:
        """A line about a refresh, with the operation of the planned function that it follows."""
        head, _, _ = line.partition(":")
        number = head.removeprefix("refresh ")
        if number == head or not number.isdigit():
            return line
        after = self.refreshes[int(number) - 1].operation
        return line if after is None else f"{line}; after operation {after}, {self._trace[after - 1][0]}"

    def memory(self, ciphertexts: int | None = None) -> dict[str, int]:
        """A forecast in bytes while keys are held and the planned function runs; keys in files are not in the total.

        ``ciphertexts`` fresh ones come on top, by default those of the function's inputs beyond one for each. ``maps`` are
        entries and numbers of the function's linear maps before they are encoded, ``kept`` what the library keeps of
        temporaries for the next ones.
        """
        count = self._inputs if ciphertexts is None else _numbers.whole(ciphertexts, "ciphertexts", 0, 1 << 40)
        forecast = self._fields["memory"]
        parts = {
            "ciphertexts": count * 16 * len(self.q_bits) << self.log_n,
            "keys": int(forecast["key_bytes"]),
            "prepared_keys": int(forecast["prepared_key_bytes"]),
            "tables": int(forecast["table_bytes"]),
            "working": int(forecast["working_bytes"]),
            "maps": self._maps,
        }
        buffers = sum(parts[name] for name in ("ciphertexts", "keys", "prepared_keys", "working"))
        parts["kept"] = min(buffers // _KEPT, _MOST_KEPT)
        return {**parts, "total": sum(parts.values()), "keys_in_files": self.key_bytes}

    def plot(self, ax: Any = None) -> Any:
        """Draws level and noise after each operation of the planned function, or the primes; needs matplotlib."""
        try:
            import matplotlib.pyplot as plt
        except ImportError:
            raise ImportError("plots need matplotlib. Remedy: pip install synchromesh[plot]") from None
        own = ax is None
        if own:
            _, ax = plt.subplots(figsize=(8, 4.5))
        if not self._trace:
            widths = self.q_bits + self.p_bits
            colours = ["tab:blue"] * len(self.q_bits) + ["tab:orange"] * len(self.p_bits)
            ax.bar(range(len(widths)), widths, color=colours)
            ax.set(xlabel="prime (blue: ciphertext, orange: special)", ylabel="bits", title=repr(self))
            return ax
        steps = _text.folded(self._trace)
        places = range(len(steps))
        unit = "bits of precision" if self.scheme == "ckks" else "bits of noise budget"
        (noise,) = ax.plot(places, [bits for _, _, bits in steps], marker="o", color="tab:blue", label=unit)
        ax.set_ylabel(unit)
        # As many names as there is room for.
        named = places[:: -(-len(steps) // 40)]
        ax.set_xticks(named, [steps[i][0] for i in named], rotation=60, ha="right")
        levels = ax.twinx()
        (drawn,) = levels.step(places, [level for _, level, _ in steps], where="mid", color="tab:orange", label="level")
        levels.set_ylabel("level")
        levels.yaxis.get_major_locator().set_params(integer=True)
        ax.legend(handles=[noise, drawn], loc="upper right")
        ax.set_title(f"{self.scheme}, N = 2^{self.log_n}, {self.security_bits:.0f}-bit")
        if own:
            ax.figure.tight_layout()
        return ax


def plan(
    function: Callable[..., Any] | None = None,
    shapes: Shapes | None = None,
    *,
    scheme: str = "ckks",
    depth: int = 0,
    t: int | str | None = None,
    precision: int | None = None,
    bounds: Bounds = None,
    rotations: Sequence[int] = (),
    swap: bool = False,
    additions: int = 0,
    min_slots: int = 0,
    security: int | str = 128,
    failure: float = _FAILURES[0],
    max_key_bytes: int | None = None,
    width: int | None = None,
    max_digits: int | None = None,
    max_memory_bytes: int | None = None,
    prime_switching: tuple[int, int] | None = None,
    static_levels: bool = False,
    leading_levels: int = 0,
    rotation_level: int | None = None,
    bootstrap: bool | float = False,
    numbers: str = "real",
    joint: Joint | None = None,
    progress: Progress = None,
) -> Plan:
    """The smallest parameters for a description, or for an ordinary function of tensors.

    A function is run without data on tensors of ``shapes``, until parameters are found at which every noise certificate
    holds and, in CKKS, the results are within ``2**-precision``; its rotations are found on the way. ``shapes`` is a list,
    or names with shapes; an array or a table of numbers in the place of a shape gives its shape and, as a bound, its
    largest absolute value, which the plan then tells. ``bounds`` say how large inputs may be: one number for all, or one
    for each, in order or by name; a pair is the lowest and the highest number. In CKKS it is 1 unless given. In BFV and BGV
    with bounds ``t`` is chosen so that no result leaves what it holds; without, results count modulo ``t``.
    Without a function ``depth`` and ``rotations`` say what shall be computed.

    ``prime_switching`` is ``(mu, kappa)``: mostly large primes, mu of which leave where kappa levels are used up.
    ``leading_levels`` from the top are under the first secret key, the others under a second one. ``rotation_level`` is
    the highest level at which slots are rotated. ``failure`` is the largest probability that a decryption fails or, in CKKS,
    that an error exceeds ``error_bound``: ``2**-128``, ``2**-64`` or ``2**-40``, which is as likely as a fault of the machine
    and not for ciphertexts that an attacker makes; plan, contexts and tensors name it where it is not the first.
    With ``bootstrap`` ciphertexts are refreshed where levels, in BFV and BGV room for noise, run out, so that functions have no
    end. In CKKS ``depth`` is then the least number of levels between two refreshes (0: those that take the least time each),
    ``precision`` what a refresh keeps, and a number instead of True the largest magnitude of what is refreshed; such a plan
    takes real numbers, of which a refresh drops imaginary parts, unless ``numbers`` are "complex", which takes longer. In BFV
    and BGV ``depth`` is the least number of products in a row between two refreshes (0: one), and a refresh is exact.
    ``joint`` says that several parties hold the key together (:mod:`synchromesh.parties`): results have room for the noise of
    their decryption.
    ``static_levels`` are those of BGV's static rule. ``progress`` counts the
    runs of the function: True for a bar, or a function of their number and 0, since nobody knows how many it will take.
    """
    level = str(security)
    if level not in ("128", "192", "256", "insecure"):
        raise ParamsError(f"security {security!r}", kind="params", remedy="choose 128, 192, 256 or 'insecure'")
    if scheme not in ("bfv", "bgv", "ckks"):
        raise ParamsError(f"scheme {scheme!r}", kind="params", remedy="choose 'bfv', 'bgv' or 'ckks'")
    if numbers not in ("real", "complex"):
        raise ParamsError(f"numbers {numbers!r}", kind="params", remedy="choose 'real' or 'complex'")
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
        "bootstrap": _refreshed(bootstrap, scheme),
        "messages": numbers,
        "joint": None if joint is None else _held_by(joint, scheme),
        "failure": _failure(failure),
    }
    if function is None:
        return _of_description(description, bounds)
    if not callable(function):
        raise DTypeError(f"{type(function).__name__} is no function", kind="dtype", remedy="pass a function of tensors")
    if shapes is None:
        raise ShapeError("no shapes were given", kind="shape", remedy="pass the shapes of the function's arguments")
    meter = Meter(progress, 0, "runs of the planned function")
    try:
        made = _of_function(function, shapes, bounds, description, meter)
    finally:
        meter.close()
    if made._maps >= _LARGE_MAPS:
        _give_back()
    return made


def _refreshed(bootstrap: bool | float, scheme: str) -> float | None:
    """The largest magnitude of what is refreshed; none where nothing is."""
    if not bootstrap:
        return None
    if scheme != "ckks" and float(bootstrap) != 1.0:
        remedy = f"pass bootstrap=True: {scheme} refreshes any message"
        raise ParamsError(f"a bound of {bootstrap} for what {scheme} refreshes", kind="params", remedy=remedy)
    return float(bootstrap)


def _give_back() -> None:
    """Hands the arrays of runs without data back to the system: glibc keeps what threads that have ended left."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def plain_modulus(bound: int, log_n: int = _LOG_N) -> int:
    """A plaintext modulus t for integers from ``-bound`` to ``bound``: a prime that gives slots at every N up to 2^log_n.

    Circuits of BFV and BGV so deep that they need N = 2^16 or more take that ``log_n``.
    """
    bound = _numbers.whole(bound, "bound", 1, 1 << 254)
    log_n = _numbers.whole(log_n, "log_n", 4, 20)
    # Primes that are 1 modulo 2^(log_n + 1) are few below its double, and then there is one of every width.
    bits = max((2 * bound).bit_length() + 1, log_n + 2)
    while True:
        try:
            return int(_native.slot_prime(bits, log_n), 0)
        except ParamsError:
            if bits >= min(log_n + 8, 256):
                raise
        bits += 1


class OtherModulus(Exception):
    """A t that does not do: it holds less than results may reach, or gives no slots at such degrees."""

    def __init__(self, reach: int, log_n: int) -> None:
        super().__init__(reach, log_n)
        self.reach = reach
        self.log_n = log_n


class _Modulus:
    """The plaintext modulus of a plan: the caller's, or one that is chosen while the plan is made."""

    def __init__(self, description: dict[str, Any]) -> None:
        self._description = description
        self._free = description["t"] is None
        self._reach = _DEFAULT_T // 2
        self._log_n = _LOG_N
        self.exact = description["scheme"] != "ckks"
        self.notes: list[str] = []

    @property
    def _t(self) -> int:
        given = self._description["t"]
        try:
            return _DEFAULT_T if given is None else int(given, 0)
        except ValueError:
            # The library says what is wrong with it.
            return 1 << 256

    def require(self, reach: int) -> None:
        """Refuses t if results may be larger than it holds."""
        if reach <= self._t // 2:
            return
        if self._free:
            raise OtherModulus(reach, self._log_n)
        raise ParamsError(
            f"results may reach {shown(reach)}, and t = {shown(self._t)} holds {shown(self._t // 2)}",
            kind="range",
            remedy="leave t to the plan, or take synchromesh.plain_modulus(bound); declare_bound where you know that numbers "
            "are smaller, or declare_bound(math.inf) to count modulo t",
        )

    def require_slots(self) -> None:
        """Refuses t where it gives no slots."""
        if self._free and self._log_n < _LARGEST_LOG_N:
            raise OtherModulus(self._reach, _LARGEST_LOG_N)
        raise ParamsError(
            f"t = {shown(self._t)} gives no slots at this degree",
            kind="no_slots",
            remedy=f"leave t to the plan, or take synchromesh.plain_modulus(bound, {_LARGEST_LOG_N})",
        )

    def planned(self, make: Callable[[str], str]) -> str:
        """What ``make`` makes of the description, with the first t that does."""
        while True:
            try:
                return make(json.dumps(self._description))
            except OtherModulus as other:
                if not self._free:
                    self.require(other.reach)
                self._choose(other.reach, other.log_n)
            except SynchromeshError as error:
                if error.kind not in ("no_slots", "plan_slots") or not self._free or self._log_n == _LARGEST_LOG_N:
                    raise
                self._choose(self._reach, _LARGEST_LOG_N)

    def _choose(self, reach: int, log_n: int) -> None:
        self._reach, self._log_n = max(self._reach, reach), max(self._log_n, log_n)
        t = plain_modulus(self._reach, self._log_n)
        self._description["t"] = str(t)
        why = f"results may reach {shown(self._reach)}, " if self._reach > _DEFAULT_T // 2 else ""
        chosen = f"t = {t}: {why}slots up to N = 2^{self._log_n}"
        self.notes = [note for note in self.notes if not note.startswith("t = ")] + [chosen]


def _of_description(description: dict[str, Any], bounds: Bounds) -> Plan:
    modulus = _Modulus(description)
    declared = _ranges(bounds, None, 1, modulus.exact)[0]

    def make(text: str) -> str:
        if modulus.exact and declared is not None:
            modulus.require(int(declared.reach))
        made = _native.plan(text)
        if modulus.exact and description["t"] is None and json.loads(made)["slots"] == 0:
            modulus.require_slots()
        return made

    return Plan(modulus.planned(make), notes=modulus.notes)


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
    function: Callable[..., Any], shapes: Shapes, bounds: Bounds, description: dict[str, Any], meter: Meter
) -> Plan:
    from .context import Context
    from .tensor import Tensor

    modulus = _Modulus(description)
    names = list(shapes) if isinstance(shapes, Mapping) else None
    examples = list(shapes.values() if isinstance(shapes, Mapping) else _listed(shapes, "shapes"))
    listed = [_shape_of(example) for example in examples]
    declared = _ranges(bounds, names, len(listed), modulus.exact)
    declared = [_seen(example, modulus.exact) if held is None else held for example, held in zip(examples, declared)]
    if not modulus.exact:
        declared = [Range(-1.0, 1.0) if held is None else held for held in declared]
    elif not all(declared):
        modulus.notes = ["no bounds were given for some inputs: results count modulo t"]
    largest = [1.0 if modulus.exact or held is None else float(held.reach) for held in declared]
    trace = _Steps()
    approximations: list[tuple[float, int]] = []
    made: dict[str, int] = {}

    def called(native: _native.Context, fresh: list[_native.Ciphertext]) -> list[_native.Ciphertext]:
        trace.clear()
        made.clear()
        real = description["bootstrap"] is not None and description["messages"] == "real"
        context = Context._dry(native, description["scheme"], real, trace, approximations, made)
        dtype = np.dtype(np.int64 if context.exact else np.float64)
        slots = context._native.slots
        if slots == 0:
            modulus.require_slots()
        inputs = []
        for cipher, shape, held in zip(fresh, listed, declared):
            at = canonical(shape, Slots(slots, context.row))
            parts = [cipher] * (int(at.max()) // slots + 1)
            inputs.append(Tensor._fresh(context, "input", parts, at, dtype, Held.alone(held)))
        result = function(*inputs) if names is None else function(**dict(zip(names, inputs)))
        tensors = _tensors(result)
        if modulus.exact:
            modulus.require(max([0, *(int(x._held.elements.reach) for x in tensors if x._held is not None)]))
        return [part for tensor in tensors for part in tensor._parts]

    def run(native: _native.Context, fresh: list[_native.Ciphertext]) -> list[_native.Ciphertext]:
        with _calls:
            made = called(native, fresh)
            meter.step()
            return made

    try:
        maps: list[int] = []

        def make(text: str) -> str:
            made, most = _native.plan_function(text, largest, run)
            maps[:] = [most]
            return made

        text = modulus.planned(make)
        total = int(json.loads(text)["slots"])
        slots = Slots(total, total if not modulus.exact else total // 2)
        spread = sum(int(canonical(shape, slots).max()) // slots.total for shape in listed)
        return Plan(text, trace, modulus.notes, spread, maps[0] if maps else 0, made)
    except BaseException as error:
        trace.stopped = True
        precision = _DEFAULT_PRECISION if description["precision"] is None else description["precision"]
        apart, degree = max(approximations, default=(0.0, 0))
        if getattr(error, "kind", "") != "plan_precision" or apart <= 2.0**-precision:
            raise
        raise ParamsError(
            f"a polynomial of degree {degree} is up to {apart:.3g} from its function, and results within "
            f"{2.0**-precision:.3g} (precision {precision}) were asked for",
            kind="plan_precision",
            remedy="raise its degree or lower its tolerance, narrow its interval, or ask for fewer bits with precision=",
        ) from None


def _ranges(bounds: Bounds, names: list[str] | None, count: int, exact: bool) -> list[Range | None]:
    """What is declared of each input."""
    if bounds is None:
        return [None] * count
    if isinstance(bounds, Mapping):
        unknown = [name for name in bounds if name not in (names or [])]
        if unknown:
            remedy = "name inputs as in shapes={name: shape}"
            raise InputError(f"a bound for {unknown[0]!r}, which is no input", kind="argument", remedy=remedy)
        listed = [bounds.get(name) for name in names or []]
    elif isinstance(bounds, (list, tuple, np.ndarray)):
        listed = list(bounds)
        listed = listed * count if len(listed) == 1 else listed
    else:
        listed = [bounds] * count  # type: ignore[list-item]
    if len(listed) != count:
        remedy = "pass one number for all or one for each; a pair for one of them stands in a list, as [(0, 1)]"
        raise ShapeError(f"{len(listed)} bounds for {count} inputs", kind="shape", remedy=remedy)
    return [None if bound is None else Range.declared(bound, exact, "bounds") for bound in listed]


def _seen(example: Any, exact: bool) -> Range | None:
    """The largest absolute value of data that stands for an input; of a shape nothing."""
    if not _is_data(example):
        return None
    array = _numbers.as_array(example)
    numbers = _numbers.flat(array, exact)
    if array.dtype.kind == "c":
        return Range.declared(float(np.abs(numbers).max()) or 1.0, exact)
    held = Range.of(array if exact else np.asarray(numbers))
    return None if held is None else Range.declared(held.reach or 1, exact)


def _is_data(example: Any) -> bool:
    return hasattr(example, "shape") and hasattr(example, "__array__")


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
    shape = shape.shape if _is_data(shape) else shape
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


def _failure(value: Any) -> str:
    if not isinstance(value, (int, float)) or value not in _FAILURES:
        remedy = "choose 2**-128, 2**-64 or 2**-40"
        raise ParamsError(f"failure {value!r}", kind="params", remedy=remedy)
    return f"2^{np.log2(value):.0f}"


def _switching(value: Any) -> dict[str, int] | None:
    if value is None:
        return None
    numbers = [_numbers.whole(x, "prime_switching", 0, 1 << 20) for x in _listed(value, "prime_switching")]
    if len(numbers) != 2:
        raise ParamsError("prime_switching takes two numbers", kind="params", remedy="pass (mu, kappa), say (1, 2)")
    return {"mu": numbers[0], "kappa": numbers[1]}


def _optional(value: Any, what: str, high: int) -> int | None:
    return None if value is None else _numbers.whole(value, what, 0, high)
