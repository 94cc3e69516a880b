"""Contexts and keys: where encrypted computation happens, and who may encrypt, compute and decrypt."""

from __future__ import annotations

import os
import pickle
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native, _numbers
from ._known import precision
from ._layout import ZERO, Slots, canonical
from ._ranges import Bound, Held, Range, shown
from ._text import size, table
from ._progress import Meter, Progress, tracked
from .errors import (
    DeviceError,
    DTypeError,
    FileError,
    InputError,
    InsecureError,
    MismatchError,
    MissingKeyError,
    ParamsError,
)
from .planning import Plan
from .tensor import Tensor

__all__ = ["Context", "EnvelopeKey", "EvaluationKeys", "Keys", "PublicKey", "SecretKey"]

Path = Union[str, "os.PathLike[str]"]
# By their devices and plans, or by what is the same for plans whose keys and tensors serve one another.
_live: weakref.WeakValueDictionary[tuple[str, str], Context] = weakref.WeakValueDictionary()
_alike: weakref.WeakValueDictionary[tuple[str, str], Context] = weakref.WeakValueDictionary()


class Context:
    """A plan at work on a device of this machine: makes keys, encrypts, and holds the keys that operations use.

    ``device`` is ``"cpu"``, ``"cuda"`` (the first NVIDIA card that will do, or ``"cuda:1"`` and so on) or, in a build for tests,
    ``"emulated"``; unless given, what the environment variable ``SYNCHROMESH_DEVICE`` names, else the CPU. Results are the
    same bits on all of them.

    Contexts of one plan on the CPU are interchangeable, whoever made them and wherever they are; on a card each has memory of
    its own, and ``to`` brings keys and tensors from one to another. They may be shared by threads.
    """

    def __init__(self, plan: Plan, *, device: str | None = None, insecure: bool = False) -> None:
        if not isinstance(plan, Plan):
            raise DTypeError(f"{type(plan).__name__} is no Plan", kind="dtype", remedy="call synchromesh.plan first")
        if device is not None and not isinstance(device, str):
            raise DTypeError(f"{type(device).__name__} is no device", kind="dtype", remedy="pass 'cpu' or 'cuda'")
        _require_secure(plan, insecure)
        self._adopt(_native.Context(plan.to_json(), device), plan)
        self._enlist()

    def _adopt(self, native: _native.Context, plan: Plan) -> None:
        self._native = native
        self._plan = plan
        self._scheme = plan.scheme
        self._real = plan._real
        self._public: PublicKey | None = None
        self._trace: list[tuple[str, int, float]] | None = None
        self._approximations: list[tuple[float, int]] | None = None
        # The number of the operation that made what a refresh may be placed at.
        self._made: dict[str, int] | None = None

    def _enlist(self) -> None:
        device = self._native.device
        _live.setdefault((device, self._native.plan), self)
        _alike.setdefault((device, self._plan._identity), self)

    @classmethod
    def _of(cls, native: _native.Context) -> Context:
        """The live context of a native one's plan and device, or a new one around it if the plan is secure."""
        found = _live.get((native.device, native.plan))
        if found is None:
            plan = Plan.from_json(native.plan)
            _require_secure(plan, False)
            found = cls.__new__(cls)
            found._adopt(native, plan)
            found._enlist()
        return found

    @classmethod
    def _restore(cls, plan: str, insecure: bool = False, device: str = "cpu") -> Context:
        """A live context of the plan, rather on that device than on another; else a new one, there if it can be had."""
        # Tensors come with a plan that says nothing of its circuit.
        for live, name in ((_live, plan), (_alike, Plan.from_json(plan)._identity)):
            found = live.get((device, name)) or next((live.get(key) for key in list(live) if key[1] == name), None)
            if found is not None:
                return found
        read = Plan.from_json(plan)
        try:
            return cls(read, device=device, insecure=insecure)
        except DeviceError:
            return cls(read, insecure=insecure)

    @classmethod
    def _dry(
        cls,
        native: _native.Context,
        scheme: str,
        real: bool,
        trace: list[tuple[str, int, float]],
        approximations: list[tuple[float, int]],
        made: dict[str, int],
    ) -> Context:
        """The context that a function sees while it is planned for."""
        self = cls.__new__(cls)
        self._native = native
        self._scheme = scheme
        self._real = real
        self._public = None
        self._trace = trace
        self._approximations = approximations
        self._made = made
        return self

    def _traced(self, what: str, part: _native.Ciphertext) -> None:
        """Writes down an operation, if somebody wants to know."""
        if self._trace is not None:
            level, _, _, budget, error, bound = part.state()
            self._trace.append((what, level, budget if self.exact else precision(bound, error)))
            if self._made is not None and part.lineage is not None:
                self._made.setdefault(part.lineage, len(self._trace))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.plan.to_json(), self.plan.security_bits < 128, self.device)

    def __repr__(self) -> str:
        if self._native.dry:
            return f"Context({self.scheme}, dry run, {self.slots} slots)"
        p, place = self._plan, "" if self.device == "cpu" else f", on {self.device}"
        parameters = f"{p.scheme}, N=2^{p.log_n}, {p.slots} slots, {p.levels} levels, {p.security_bits:.0f}-bit"
        return f"Context({parameters}{p._failure_said}{place})"

    def _repr_html_(self) -> str:
        """For notebooks."""
        if self._native.dry:
            return table(f"Context, {self.scheme}", [("slots", self.slots), ("dry run", "no keys and no data")])
        p = self._plan
        rows: list[tuple[str, object]] = [
            ("ring degree", f"N = 2^{p.log_n}"),
            ("slots", p.slots),
            ("levels", p.levels),
            ("security", f"{p.security_bits:.0f} bits"),
            ("failure probability", p._failure_text),
            ("device", self.device),
            ("encrypts by", "none" if self._public is None else f"key {self._public.key_id[:8]}"),
        ]
        return table(f"Context, {p.scheme}", rows)

    @property
    def _failure_said(self) -> str:
        return "" if self._native.dry else self._plan._failure_said

    @property
    def plan(self) -> Plan:
        """The parameters, and why they are what they are."""
        if self._native.dry:
            raise MismatchError("a dry run looks for its plan", kind="dry_run", remedy="use the plan it returns")
        return self._plan

    @property
    def device(self) -> str:
        """Where it computes: ``"cpu"``, ``"cuda:0"``, ``"emulated"``."""
        return self._native.device

    @property
    def scheme(self) -> str:
        """``"bfv"``, ``"bgv"`` or ``"ckks"``."""
        return self._scheme

    @property
    def exact(self) -> bool:
        """Whether it computes with integers modulo t."""
        return self._scheme != "ckks"

    @property
    def slots(self) -> int:
        """Numbers in a ciphertext."""
        return self._native.slots

    @property
    def row(self) -> int:
        """Slots that a rotation turns as one ring: all of them in CKKS, half in BFV and BGV."""
        return self._native.row

    @property
    def top_level(self) -> int:
        """Level of a fresh ciphertext: how many rescales or modulus switches it has left."""
        return self._native.top_level

    def keygen(
        self, rotations: ArrayLike | None = None, swap: bool | None = None, *, progress: Progress = None
    ) -> Keys:
        """New keys; this context is given all of them but the secret key.

        Rotations and ``swap`` (conjugation in CKKS, the rows in BFV and BGV) are those of the plan unless given.
        ``progress`` is True for a bar, or a function of how many keys are made and how many there will be.
        """
        steps = self.plan.rotations if rotations is None else _steps(rotations)
        swap = self.plan.swap if swap is None else bool(swap)
        secret, public, envelope = self._native.generate_keys()
        evaluation = self._evaluation_keys(secret, steps, swap, progress)
        keys = Keys(
            SecretKey(self, secret),
            PublicKey(self, public),
            EvaluationKeys(self, evaluation),
            EnvelopeKey(self, envelope),
        )
        self.add_keys(keys.public, keys.evaluation)
        return keys

    def _evaluation_keys(self, secret: Any, steps: list[int], swap: bool, progress: Progress) -> Any:
        """Keys for products and rotations: all at once, or where somebody watches some after others."""
        if progress is None or progress is False:
            return self._native.generate_evaluation_keys(secret, steps, swap)
        # Each part has a key for products too, and keys for refreshes, of which there are more than of others.
        size = max(4, len(steps) if self.plan._refreshing else len(steps) // 8)
        meter, made = Meter(progress, len(steps), "rotation keys"), None
        for start in range(0, max(len(steps), 1), size):
            part = self._native.generate_evaluation_keys(secret, steps[start : start + size], swap and made is None)
            made = part if made is None else made.both(part)
            meter.step(len(steps[start : start + size]))
        meter.close()
        return made

    @contextmanager
    def watched(self, progress: Progress = True) -> Iterator[None]:
        """Within it, operations on this context's tensors are counted, beside those of the plan's function.

        With True a bar says how much time remains; or a function is called with how many operations are done, and how many
        the planned function has.
        """
        meter = Meter(progress, len(self.plan.trace), "operations")
        before, self._trace = self._trace, _Counted(meter)
        try:
            yield
        finally:
            self._trace = before
            meter.close()

    def add_keys(self, *keys: PublicKey | EvaluationKeys | EnvelopeKey) -> Context:
        """Gives the context keys: to encrypt with unless another is named, to multiply and rotate with, to authenticate with."""
        for key in keys:
            if isinstance(key, EvaluationKeys):
                self._native.add_keys(key._native)
            elif isinstance(key, EnvelopeKey):
                self._native.add_envelope(key._native)
            elif isinstance(key, PublicKey):
                self._require_own(key.context)
                self._public = key
            else:
                raise DTypeError(
                    f"{type(key).__name__} is no key that a context holds",
                    kind="dtype",
                    remedy="pass public, evaluation and envelope keys; keep the secret key by yourself",
                )
        return self

    def _require_own(self, other: Context) -> None:
        if other is not self and (self._native.dry or not other.plan._same_parameters(self._plan)):
            raise MismatchError(
                "objects of two contexts", kind="params_differ", remedy="use keys and tensors of one plan"
            )

    def encrypt(
        self,
        values: ArrayLike,
        key: PublicKey | SecretKey | None = None,
        *,
        bound: Bound | None = None,
        level: int | None = None,
        progress: Progress = None,
    ) -> Tensor:
        """The encrypted array, in as many ciphertexts as its elements take.

        No element may exceed ``bound``, which is public: a number is the largest absolute value, a pair the lowest and the
        highest one. In CKKS it is 1 unless given, and enters every noise certificate. In BFV and BGV results that may have
        left what t holds, by the bounds of what they were computed from, are not decrypted; unless ``bound`` is given, what
        was encrypted tells, in this process alone. With ``math.inf`` numbers are residues modulo t.
        """
        if self._native.dry:
            raise MismatchError("a dry run has no data", kind="dry_run", remedy="pass it to the function as an input")
        array = _numbers.as_array(values)
        if array.size == 0:
            raise _empty()
        native = self._key(key)
        level = self.top_level if level is None else _numbers.whole(level, "level", 0, self.top_level)
        vector = _numbers.flat(array, self.exact)
        slots = self._slots()
        at = canonical(array.shape, Slots(slots, self.row))
        parts_count = int(at.max()) // slots + 1
        if int(at.max()) >= len(vector):
            # Blocks that stay together leave slots free.
            spread = np.zeros((parts_count * slots, *vector.shape[1:]), dtype=vector.dtype)
            spread[at.reshape(-1)] = vector
            vector = spread
        starts = range(0, len(vector), slots)
        wanted = 1.0 if bound is None and not self.exact else bound
        declared = None if wanted is None else Range.declared(wanted, self.exact)
        seen = Range.of(array, public=False)
        if declared is not None and seen is not None and not declared.holds(seen):
            raise InputError(
                f"numbers from {shown(seen.low)} to {shown(seen.high)}, declared to lie in {declared}",
                kind="above_declared_bound",
                remedy="pass a larger bound, or scale the numbers down",
            )
        reach = 1.0 if declared is None or self.exact else float(declared.reach)
        made = (
            part
            for i in range(0, len(starts), _native.threads())
            for part in self._native.encrypt(
                native, [vector[j : j + slots] for j in starts[i : i + _native.threads()]], reach, level
            )
        )
        parts = list(tracked(made, len(starts), progress, "encrypt"))
        dtype = _numbers.result_dtype(array, self.exact)
        known = seen if wanted is None else declared
        return Tensor._fresh(self, "encrypt", parts, at, dtype, Held.alone(known))

    def _require_unwrapped(self, tensor: Tensor) -> None:
        """Refuses integers that may not be what their residues modulo t say."""
        t = self.plan.t
        if tensor._held is None or t is None:
            return
        held = tensor._held.elements
        if held.reach > t // 2:
            raise InputError(
                f"elements may lie in {held}, and t = {t} holds {shown(-(t // 2))} to {shown(t // 2)}",
                kind="range",
                remedy=f"plan with bounds= or with t above {shown(2 * held.reach)}; if you know that they are smaller say "
                "x.declare_bound(bound) of the result, or declare_bound(math.inf) for residues modulo t",
            )

    def _slots(self) -> int:
        if self.slots == 0:
            raise ParamsError(
                f"t = {self._plan.t} gives no slots at N = 2^{self._plan.log_n}",
                kind="no_slots",
                remedy=f"leave t to the plan, or take synchromesh.plain_modulus(bound, {self._plan.log_n})",
            )
        return self.slots

    def _key(self, key: PublicKey | SecretKey | None) -> Any:
        if key is None:
            if self._public is None:
                raise MissingKeyError(
                    "no key to encrypt with",
                    kind="no_keys",
                    remedy="call keygen(), add_keys(PublicKey.load(..)), or pass key=",
                )
            return self._public._native
        if not isinstance(key, (PublicKey, SecretKey)):
            raise DTypeError(f"{type(key).__name__} is no key", kind="dtype", remedy="pass a public or secret key")
        self._require_own(key.context)
        return key._native

    def read(self, data: Any, *, trust_certificate: bool = False) -> Tensor:
        """The tensor in bytes that :meth:`Tensor.to_bytes` or the command line wrote."""
        return Tensor.from_bytes(data, context=self, trust_certificate=trust_certificate)


# Functions of the module, which pickles that write classes' methods out, as Ray's do, take by their names.


def _restored(plan: str, insecure: bool, device: str) -> Context:
    return Context._restore(plan, insecure, device)


def _read(cls: type[Shared], data: Any, context: Context) -> Shared:
    return cls.from_bytes(data, context)


class _Counted(list[tuple[str, int, float]]):
    """Operations that are counted, and not kept."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def append(self, step: tuple[str, int, float]) -> None:
        self._meter.step()


AnyKey = TypeVar("AnyKey", bound="_Key")


class _Key:
    """A key of a context."""

    def __init__(self, context: Context, native: Any) -> None:
        self.context = context
        self._native = native

    @property
    def key_id(self) -> str:
        """Names the secret key that it is or belongs to; every object under it carries this name."""
        return str(self._native.key_id)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.context.scheme}, id {self.key_id[:8]})"

    def _repr_html_(self) -> str:
        """For notebooks; nothing of the key but its name."""
        return table(f"{type(self).__name__}, {self.context.scheme}", [("secret key", self.key_id), *self._rows])

    @property
    def _rows(self) -> list[tuple[str, object]]:
        """What else its table says."""
        return []

    @classmethod
    def _of(cls: type[AnyKey], native: Any, context: Context | None) -> AnyKey:
        """The key in a context that it was read for, or in the live one of its plan and device."""
        if context is None:
            context = Context._of(native.context)
            if not context._native.shares_memory(native.context):
                native = native.to(context._native)
        return cls(context, native)

    def to(self: Any, context: Context) -> Any:
        """The same key for a context of the same parameters, on that context's device."""
        _held(context)
        self.context._require_own(context)
        return type(self)(context, self._native.to(context._native))


class _KeptKey(_Key):
    """A key that is written to files that only their owner may read, cannot be pickled, and is never shown."""

    _class: ClassVar[Any]

    def __reduce__(self) -> tuple[Any, ...]:
        name = type(self).__name__
        raise pickle.PicklingError(f"a {name} is not pickled. Remedy: use {name}.save, which writes mode 0600")

    def save(self, path: Path, *, replace: bool = False) -> None:
        """Writes the key to a file of mode 0600; one that exists is kept unless ``replace``."""
        self._native.save(_path(path), replace)

    @classmethod
    def load(cls: type[Kept], path: Path, context: Context | None = None) -> Kept:
        """The key in a file that :meth:`save` or ``synchromesh keygen`` wrote."""
        return cls._of(cls._class.load(_path(path), _held(context)), context)


Kept = TypeVar("Kept", bound=_KeptKey)


class EnvelopeKey(_KeptKey):
    """Authenticates tensors in files: whoever holds it is trusted to say how much noise they have.

    A context that was given it (:meth:`Context.add_keys`) authenticates what it writes and believes what is authenticated.
    """

    _class = _native.EnvelopeKey


class SecretKey(_KeptKey):
    """Decrypts."""

    _class = _native.SecretKey

    def decrypt(
        self, tensor: Tensor, out: NDArray[Any] | None = None, *, progress: Progress = None
    ) -> NDArray[Any]:
        """The numbers of a tensor, in ``out`` if it is given.

        Integers that may have left what t holds are refused; see :meth:`Context.encrypt`.
        Decrypted CKKS values carry traces of the key: do not publish them as they are.
        """
        if not isinstance(tensor, Tensor):
            raise DTypeError(f"{type(tensor).__name__} is no Tensor", kind="dtype", remedy="pass an encrypted tensor")
        self.context._require_own(tensor.context)
        self.context._require_unwrapped(tensor)
        kind = tensor.dtype.kind == "c"
        count = _native.threads()
        made = (
            _numbers.from_native(values)
            for i in range(0, len(tensor._parts), count)
            for values in self._native.decrypt(tensor._parts[i : i + count], kind)
        )
        parts = list(tracked(made, len(tensor._parts), progress, "decrypt"))
        values = (parts[0] if len(parts) == 1 else np.concatenate(parts))[tensor._at]
        if out is None:
            return np.asarray(values)
        if not isinstance(out, np.ndarray) or out.shape != tensor.shape:
            shape = getattr(out, "shape", None)
            raise _shape(f"out has shape {shape}, the tensor {tensor.shape}", "pass an array of the tensor's shape")
        try:
            np.copyto(out, values, casting="same_kind")
        except (TypeError, ValueError) as error:
            raise DTypeError(str(error), kind="dtype", remedy=f"pass out of dtype {values.dtype}") from None
        return out


class _SharedKey(_Key):
    """A key that may go to others: as bytes, files and pickles."""

    _class: ClassVar[Any]

    def to_bytes(self) -> bytes:
        """The key with its plan, as ``synchromesh keygen`` writes it."""
        return bytes(self._native.to_bytes())

    @classmethod
    def from_bytes(cls: type[Shared], data: Any, context: Context | None = None) -> Shared:
        """The key in bytes that :meth:`to_bytes` wrote."""
        return cls._of(cls._class.from_bytes(_numbers.buffer(data), _held(context)), context)

    def save(self, path: Path, *, replace: bool = False) -> None:
        """Writes the key to a file; one that exists is kept unless ``replace``."""
        _native.write_file(_path(path), self.to_bytes(), replace)

    @classmethod
    def load(cls: type[Shared], path: Path, context: Context | None = None) -> Shared:
        """The key in a file."""
        return cls.from_bytes(_native.read_file(_path(path)), context)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        data = self.to_bytes()
        wrapped = pickle.PickleBuffer(data) if isinstance(protocol, int) and protocol >= 5 else data
        return _read, (type(self), wrapped, self.context)


Shared = TypeVar("Shared", bound=_SharedKey)


class PublicKey(_SharedKey):
    """Encrypts."""

    _class = _native.PublicKey


class EvaluationKeys(_SharedKey):
    """Multiply and rotate; of no use for decryption."""

    _class = _native.EvaluationKeys

    def __len__(self) -> int:
        return self._native.count

    @property
    def nbytes(self) -> int:
        """Bytes of :meth:`to_bytes`, about."""
        return self._native.wire_bytes

    @property
    def _rows(self) -> list[tuple[str, object]]:
        return [("keys", len(self)), ("in files", size(self.nbytes))]

    def __repr__(self) -> str:
        return f"EvaluationKeys({self.context.scheme}, {len(self)} keys, {size(self.nbytes)}, id {self.key_id[:8]})"


class Keys(NamedTuple):
    """What :meth:`Context.keygen` makes."""

    secret: SecretKey
    public: PublicKey
    evaluation: EvaluationKeys
    envelope: EnvelopeKey

    def extend(self, wanted: Plan | ArrayLike, swap: bool = False) -> Keys:
        """These keys with more evaluation keys under the same secret key, which its context is given.

        For the rotations of a plan with this one's parameters, or for those that are listed and, with ``swap``, the key that
        conjugates (CKKS) or swaps rows (BFV, BGV). Others that hold the evaluation keys are sent the new ones.
        """
        context = self.secret.context
        if isinstance(wanted, Plan):
            if not context.plan._same_parameters(wanted):
                raise MismatchError(
                    f"keys of {context.plan} do not go with {wanted}",
                    kind="params_differ",
                    remedy="pass the rotations alone, wanted.rotations; or make a Context of the other plan and new keys",
                )
            swap = swap or wanted.swap
        steps = wanted.rotations if isinstance(wanted, Plan) else _steps(wanted)
        return self._with(context._native.generate_evaluation_keys(self.secret._native, steps, bool(swap)))

    def receive(self, old: SecretKey) -> Keys:
        """These keys with those that bring what is encrypted under ``old`` under this secret key, for :meth:`Tensor.rekey`.

        Whoever has the evaluation keys can then do that with every tensor under ``old``, and learns nothing else. They hold
        ``old``, encrypted under this secret key: to its owner they give all that is under ``old``.
        """
        return self._with(self.secret.context._native.generate_rekeying(self.secret._native, old._native))

    def _with(self, made: _native.EvaluationKeys) -> Keys:
        """These keys with more evaluation keys, which their context is given."""
        context = self.secret.context
        evaluation = EvaluationKeys(context, self.evaluation._native.both(made))
        context.add_keys(evaluation)
        return self._replace(evaluation=evaluation)

    def to(self, context: Context) -> Keys:
        """The same keys for a context of the same parameters, on its device, which is given all but the secret key."""
        keys = Keys(*(key.to(context) for key in self))
        context.add_keys(keys.public, keys.evaluation, keys.envelope)
        return keys

    @classmethod
    def load(cls, directory: Path, context: Context | None = None) -> Keys:
        """The four keys that :meth:`save` or ``synchromesh keygen`` wrote to a directory, which their context is given."""
        folder = _path(directory)
        secret = SecretKey.load(os.path.join(folder, "secret.key"), context)
        held = secret.context
        keys = cls(
            secret,
            PublicKey.load(os.path.join(folder, "public.key"), held),
            EvaluationKeys.load(os.path.join(folder, "eval.keys"), held),
            EnvelopeKey.load(os.path.join(folder, "envelope.key"), held),
        )
        held.add_keys(keys.public, keys.evaluation, keys.envelope)
        return keys

    def save(self, directory: Path, *, replace: bool = False) -> None:
        """Writes ``secret.key`` and ``envelope.key`` (mode 0600), ``public.key`` and ``eval.keys``, as the command line.

        All are there in the end, or none; with ``replace`` one after another takes the place of those before.
        """
        folder = _path(directory)
        if not replace:
            _native.save_keys(
                self.secret._native, self.envelope._native, self.evaluation._native, self.public._native, folder
            )
            return
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise FileError(str(error), kind="file_system", remedy="check the path and its permissions") from None
        self.secret.save(os.path.join(folder, "secret.key"), replace=True)
        self.envelope.save(os.path.join(folder, "envelope.key"), replace=True)
        self.evaluation.save(os.path.join(folder, "eval.keys"), replace=True)
        self.public.save(os.path.join(folder, "public.key"), replace=True)


def _require_secure(plan: Plan, insecure: bool) -> None:
    if plan.security_bits < 128 and insecure is not True:
        raise InsecureError(
            f"the plan has {plan.security_bits:.0f} bits of security, less than 128",
            kind="insecure",
            remedy="make a plan of 128 bits, or if this is a test say Context(plan, insecure=True)",
        )


def _held(context: Context | None) -> _native.Context | None:
    if context is None:
        return None
    if not isinstance(context, Context):
        raise DTypeError(f"{type(context).__name__} is no Context", kind="dtype", remedy="pass a Context or nothing")
    return context._native


def _path(path: Path) -> str:
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise DTypeError(f"{type(path).__name__} is no path", kind="dtype", remedy="pass a str or a Path") from None
    if "\0" in text:
        raise FileError("a path holds a zero byte", kind="file_not_found", remedy="check the path")
    return text


def _steps(rotations: ArrayLike) -> list[int]:
    array = _numbers.as_array(rotations)
    if array.size == 0:
        return []
    if array.dtype.kind not in "iu" or array.ndim != 1 or array.size > 1 << 20:
        raise DTypeError("rotations are no list of integers", kind="dtype", remedy="pass integers, left is positive")
    return [int(k) for k in array]


def _shape(message: str, remedy: str) -> Exception:
    from .errors import ShapeError

    return ShapeError(message, kind="shape", remedy=remedy)


def _empty() -> Exception:
    return _shape("an array without elements", "pass at least one number")
