"""Keys that several parties hold together: made by all of them, used by anybody, decrypted with by those who are there.

Each party runs :func:`keygen` and :func:`decrypt` on its own machine, at about the same time; they meet over TLS. All such are
awaited, so that a program goes on meanwhile; who cancels one leaves the others at once. The files are those of
``synchromesh parties``: a party's directory has its share, and the public, evaluation and envelope keys that
:class:`~synchromesh.PublicKey` and the others load as any. Parties are expected to follow the protocol.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, Union

import numpy as np
from numpy.typing import NDArray

from . import _native, _numbers
from .context import Context, EnvelopeKey
from .errors import DTypeError, InputError
from .planning import Joint, Plan
from .tensor import Tensor

__all__ = ["Decrypted", "HandedOn", "Joint", "Made", "Passed", "Refreshed", "decrypt", "identity", "keygen", "pass_on", "refresh", "reshare"]

Path = Union[str, "os.PathLike[str]"]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Made:
    """A party's part of a key: the name of the key, the party's number, and its files, with what it sent."""

    key_id: str
    party: int
    files: list[str]
    rounds: int
    bytes_sent: int


@dataclass(frozen=True)
class Decrypted:
    """What a tensor held, how far a number may be off, and who decrypted it.

    ``decryptions`` of ``most_decryptions`` were made under the key with this party's share.
    """

    values: NDArray[Any]
    error_bound: float
    members: list[int]
    decryptions: int
    most_decryptions: int
    rounds: int
    bytes_sent: int


@dataclass(frozen=True)
class Passed:
    """A tensor that is under a receiver's key now, and whether it is authenticated under the receiver's envelope key."""

    file: str
    authenticated: bool
    members: list[int]
    decryptions: int
    most_decryptions: int
    rounds: int
    bytes_sent: int


@dataclass(frozen=True)
class Refreshed:
    """A tensor that is fresh, at the highest level of its plan, in a file that is the same for all who made it so."""

    file: str
    level: int
    members: list[int]
    decryptions: int
    most_decryptions: int
    rounds: int
    bytes_sent: int


@dataclass(frozen=True)
class HandedOn:
    """A key that has other holders: ``threshold`` of ``parties`` decrypt with it from now on.

    ``party`` is the number of this one among them, or None; ``delete`` are the files of its old share, with which the old
    holders can still decrypt.
    """

    key_id: str
    parties: int
    threshold: int
    party: int | None
    givers: list[int]
    decryptions: int
    files: list[str]
    delete: list[str]
    rounds: int
    bytes_sent: int


def _path(path: Any, what: str) -> str:
    try:
        return os.fspath(path)  # type: ignore[no-any-return]
    except TypeError:
        raise DTypeError(f"{what} is {type(path).__name__}", kind="dtype", remedy="pass a path") from None


def _seconds(timeout: Any) -> float:
    try:
        seconds = float(timeout)
    except (TypeError, ValueError):
        seconds = float("nan")
    if not 0 < seconds <= 86_400:
        raise InputError(f"a timeout of {timeout!r} seconds", kind="operation", remedy="give seconds, up to a day")
    return seconds


async def _awaited(work: Callable[[Any], Result]) -> Result:
    """What ``work`` returns, on a thread of its own; who stops waiting ends it, and it is over before this returns."""
    stop = _native.Stop()
    run = asyncio.get_running_loop().run_in_executor(None, work, stop)
    try:
        return await asyncio.shield(run)
    except asyncio.CancelledError:
        stop.stop()
        with suppress(Exception):
            await run
        raise


def identity(path: Path) -> str:
    """Makes a party's certificate, a file for its owner alone; returns the fingerprint that the list of parties needs."""
    return _native.triples_identity(_path(path, "the file"))


async def keygen(
    plan: Plan,
    directory: Path,
    *,
    hosts: Path,
    identity: Path,
    timeout: float = 600.0,
    insecure: bool = False,
    least_statistical_security: int = 40,
) -> Made:
    """Makes the key of a plan with all other parties and writes this party's directory: all files, or none.

    ``hosts`` lists the parties, a line for each: host:port and fingerprint. ``identity`` is this party's certificate, whose
    fingerprint says which line is its own. Share and journal of the directory belong together: move both, and never go
    on with a copy. Whoever wrote the plan may not be trusted: ``insecure`` takes one with less than 128 bits of security, and
    ``least_statistical_security`` says by how many bits decryptions must hide the shares.
    """
    if not isinstance(plan, Plan):
        raise DTypeError(f"{type(plan).__name__} is no plan", kind="dtype", remedy="pass what synchromesh.plan returns")
    arguments = (
        plan.to_json(),
        _path(directory, "the directory"),
        _among(hosts, identity, None, timeout, insecure, least_statistical_security),
    )
    key, party, files, rounds, sent = await _awaited(lambda stop: _native.make_joint_key(*arguments, stop))
    return Made(key, party, [os.fspath(file) for file in files], rounds, sent)


def _context(keys: str, insecure: bool) -> Context:
    """A context that believes what the holders of a directory's envelope key wrote."""
    path = os.path.join(keys, "envelope.key")
    native = _native.EnvelopeKey.load(path, None)
    context = Context._restore(native.context.plan, bool(insecure))
    return context.add_keys(EnvelopeKey.load(path, context))


def _among(
    hosts: Path, identity: Path, members: Sequence[int] | None, timeout: float, insecure: bool, least: int
) -> tuple[str, str, list[int] | None, float, bool, int]:
    """Among whom a session is and as whom, how long it waits, and what it takes at least: as the native module has it."""
    return (
        _path(hosts, "hosts"),
        _path(identity, "identity"),
        None if members is None else [_numbers.whole(member, "a party's number", 0, 63) for member in members],
        _seconds(timeout),
        bool(insecure),
        _numbers.whole(least, "least_statistical_security", 0, 256),
    )


async def decrypt(
    keys: Path,
    file: Path,
    *,
    hosts: Path,
    identity: Path,
    members: Sequence[int] | None = None,
    precision: float = 1.0,
    timeout: float = 600.0,
    insecure: bool = False,
    least_statistical_security: int = 40,
) -> Decrypted:
    """Decrypts a tensor with the other parties who are there, all of whom call this with the same file.

    ``keys`` is this party's directory, ``members`` are the numbers of those who are there, its own among them: all unless
    they are named. In CKKS ``precision`` bits of the bound of each message must be right in every slot. The file must be
    authenticated under the directory's envelope key. A ciphertext is decrypted once: to see it again, add a fresh encryption
    of zeros, which is another ciphertext and counts as another decryption.
    """
    path = _path(file, "the file")
    context = _context(_path(keys, "keys"), insecure)
    tensor = Tensor.load(path, context)
    context._require_unwrapped(tensor)
    arguments = (
        _path(keys, "keys"),
        path,
        _among(hosts, identity, members, timeout, insecure, least_statistical_security),
        float(precision),
        tensor.dtype.kind == "c",
    )
    shown = await _awaited(lambda stop: _native.decrypt_together(*arguments, stop))
    made = [_numbers.from_native(part) for part in shown[0]]
    values = (made[0] if len(made) == 1 else np.concatenate(made))[tensor._at]
    return Decrypted(np.asarray(values), *shown[1:])


async def pass_on(
    keys: Path,
    file: Path,
    receiver: Path,
    out: Path,
    *,
    hosts: Path,
    identity: Path,
    members: Sequence[int] | None = None,
    precision: float = 1.0,
    timeout: float = 600.0,
    insecure: bool = False,
    least_statistical_security: int = 40,
) -> Passed:
    """Brings a tensor under the key of a receiver, who alone can decrypt it then, from the file ``out``.

    ``receiver`` is a directory with the receiver's ``public.key`` and, for a file that is authenticated, its ``envelope.key``:
    keys of the same plan. All else is as in :func:`decrypt`; nobody who passes a tensor on learns what it holds.
    """
    arguments = (
        _path(keys, "keys"),
        _path(file, "the file"),
        (_path(receiver, "the receiver"), _path(out, "out")),
        _among(hosts, identity, members, timeout, insecure, least_statistical_security),
        float(precision),
    )
    return Passed(*await _awaited(lambda stop: _native.pass_on_together(*arguments, stop)))


async def refresh(
    keys: Path,
    file: Path,
    out: Path,
    *,
    hosts: Path,
    identity: Path,
    members: Sequence[int] | None = None,
    timeout: float = 600.0,
    insecure: bool = False,
    least_statistical_security: int = 40,
) -> Refreshed:
    """Makes a tensor fresh, at the highest level, with the other parties who are there; nobody sees what it holds.

    All of them call this with the same file and get the same one, ``out``, for whoever computes. It counts as a decryption, and
    the file that went in cannot be decrypted any more; what comes out can. In CKKS the level that it is at needs room for what
    hides it, and its error stays. All else is as in :func:`decrypt`.
    """
    arguments = (
        _path(keys, "keys"),
        _path(file, "the file"),
        _path(out, "out"),
        _among(hosts, identity, members, timeout, insecure, least_statistical_security),
    )
    made, level = await _awaited(lambda stop: _native.refresh_together(*arguments, stop))
    written, _, who, decryptions, most, rounds, sent = made
    return Refreshed(written, level, who, decryptions, most, rounds, sent)


async def reshare(
    keys: Path,
    out: Path,
    *,
    new_hosts: Path,
    hosts: Path,
    identity: Path,
    threshold: int | None = None,
    members: Sequence[int] | None = None,
    timeout: float = 600.0,
    insecure: bool = False,
    least_statistical_security: int = 40,
) -> HandedOn:
    """Hands a key on to other holders, of whom ``threshold`` decrypt then, or all: some come, some go, some stay.

    Of the old holders as many as decrypt call this, ``members`` of the list ``hosts``, and all of the new list ``new_hosts``. An
    old holder's ``keys`` is its directory, that of one who comes a copy without share and journal; who is in the new list gets
    the directory ``out``. Public keys stay as they are, and so does what was encrypted. Old shares can do what they could: that
    a holder leaves means that it deletes its own, and it is believed that enough of them do. Keys whose shares are proven are
    not handed on.
    """
    arguments = (
        _path(keys, "keys"),
        _path(out, "out"),
        _path(new_hosts, "new_hosts"),
        None if threshold is None else _numbers.whole(threshold, "threshold", 1, 64),
        _among(hosts, identity, members, timeout, insecure, least_statistical_security),
    )
    done = await _awaited(lambda stop: _native.hand_on_together(*arguments, stop))
    key, parties, least, party, givers, decryptions, files, spent, rounds, sent = done
    written, old = ([os.fspath(file) for file in part] for part in (files, spent))
    return HandedOn(key, parties, least, party, givers, decryptions, written, old, rounds, sent)
