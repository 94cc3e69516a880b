"""Authenticated matrix triples for multi-party computation: shares of random A, B and C = A B, ready for MP-SPDZ, and the
tuples of single numbers that its programs take beside them, under the same MAC key.

Each party runs :func:`party` on its own machine; they meet over TLS. :func:`deal` makes the keys, as somebody whom all
parties trust, and :func:`identity` a party's certificate. The files are those of ``synchromesh triples``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Union

from . import _native, _numbers
from .errors import DTypeError, InputError, ShapeError

__all__ = ["Made", "Phase", "Run", "Workers", "deal", "identity", "party"]

Path = Union[str, "os.PathLike[str]"]


class Workers(Protocol):
    """Who computes products of blocks in a party's place, such as :class:`synchromesh.ray.TripleWorkers`.

    The party trusts them as itself: what they send back is decrypted.
    """

    @property
    def count(self) -> int:
        """Blocks computed at one time."""

    def begin(self, number: int, block: bytes) -> None:
        """Begins a block and does not wait for it."""

    def finish(self, number: int) -> bytes:
        """Waits for a block: what ``multiply_block`` of the setup makes of it."""


@dataclass(frozen=True)
class Phase:
    """What one phase of a run took."""

    name: str
    seconds: float
    bytes_sent: int
    rounds: int


@dataclass(frozen=True)
class Made:
    """What making one thing took: a shape such as ``128x128x128``, or a kind of tuples, and how many in all."""

    what: str
    count: int
    seconds: float
    bytes_sent: int
    rounds: int


@dataclass(frozen=True)
class Run:
    """What a party's run wrote, what its phases took, in what its plan gives less than is wanted as a rule, and what was made.

    ``void`` are files of an earlier run that another party did not end: their triples have no counterparts and are not read.
    """

    files: list[str]
    phases: list[Phase]
    lowered: list[str]
    void: list[str]
    made: list[Made]


def _path(path: Any, what: str) -> str:
    try:
        return os.fspath(path)  # type: ignore[no-any-return]
    except TypeError:
        raise DTypeError(f"{what} is {type(path).__name__}", kind="dtype", remedy="pass a path") from None


_KINDS = ("triples", "squares", "bits", "inverses", "inputs")


def _shape(shape: Any) -> str:
    try:
        sides = [_numbers.whole(side, "a side", 1, 1 << 16) for side in shape]
    except TypeError:
        sides = []
    if len(sides) != 3:
        raise ShapeError(f"the shape {shape!r}", kind="shape", remedy="give rows of A, columns of A, columns of B")
    return "x".join(map(str, sides))


def _wanted(what: Any, count: Any) -> str:
    if isinstance(what, str) and what not in _KINDS:
        remedy = f"give the three sides of a matrix product, or one of {', '.join(_KINDS)}"
        raise InputError(f"{what!r} is nothing that is made here", kind="unknown_tuples", remedy=remedy)
    name = what if isinstance(what, str) else _shape(what)
    return f"{name}:{_numbers.whole(count, f'how many {name}', 1, 1 << 32)}"


def deal(
    directory: Path,
    shape: Sequence[int],
    *,
    more: Sequence[Sequence[int]] = (),
    parties: int = 2,
    count: int = 1,
    security: int = 80,
    prime: int | None = None,
    decryptions: int = 20,
    log_n: int | None = None,
    keys: Literal["dealer", "generate"] = "dealer",
    insecure: bool = False,
    mac_keys: Path | None = None,
) -> None:
    """Chooses parameters for triples of ``shape`` (rows of A, columns of A, columns of B) and deals keys into a directory.

    ``more`` are other shapes that the same keys serve; tuples of single numbers are made with any. ``mac_keys`` is a directory
    ``Player-Data`` with the MAC key of all parties, which the dealer goes on with.
    With ``keys="generate"`` the parties make keys themselves, and the directory gets the plan alone: give each party a
    directory of its own with this file.
    ``security`` are bits of statistical security, ``decryptions`` the log2 of how many ciphertexts may be decrypted under one key.
    ``insecure`` allows less than 128 bits of computational security, as a small ``log_n`` does.
    """
    if keys not in ("dealer", "generate"):
        raise InputError(f"keys from {keys!r}", kind="operation", remedy="say dealer or generate")
    shapes = [_shape(shape), *map(_shape, more)]
    if mac_keys is not None and keys == "generate":
        remedy = "give each party its own: party(..., mac_key=...)"
        raise InputError("mac_keys, where the parties make keys", kind="operation", remedy=remedy)
    if prime is not None and (not isinstance(prime, int) or isinstance(prime, bool) or prime < 2):
        raise InputError(f"the prime {prime!r}", kind="operation", remedy="give a prime of 64 to 256 bits")
    _native.deal_triples(
        _path(directory, "the directory"),
        _numbers.whole(parties, "parties", 2, 64),
        shapes,
        _numbers.whole(count, "count", 1, 1_000_000),
        _numbers.whole(security, "security", 20, 128),
        None if prime is None else str(prime),
        _numbers.whole(decryptions, "decryptions", 4, 40),
        None if log_n is None else _numbers.whole(log_n, "log_n", 10, 17),
        keys == "generate",
        bool(insecure),
        None if mac_keys is None else _path(mac_keys, "the directory of MAC keys"),
    )


def identity(path: Path) -> str:
    """Makes a party's certificate, a file for its owner alone; returns the fingerprint that the list of parties needs."""
    return _native.triples_identity(_path(path, "the file"))


def party(
    id: int,
    *,
    hosts: Path,
    setup: Path,
    identity: Path,
    out: Path,
    count: int = 1,
    make: Mapping[str | tuple[int, int, int], int] | None = None,
    mac_key: Path | None = None,
    runs: int | None = None,
    program_threads: int | None = None,
    key: Path | None = None,
    format: Literal["mp-spdz", "plain"] = "mp-spdz",
    threads: int = 1,
    timeout: float = 600.0,
    insecure: bool = False,
    least_statistical_security: int = 40,
    without_proofs: bool = False,
    workers: Workers | None = None,
    progress: Callable[[str, int, int], object] | None = None,
) -> Run:
    """Meets the other parties, makes ``count`` triples with them, and writes this party's files into ``out``.

    ``make`` says what else to make in their place, the same at every party: ``{(128, 128, 128): 4, "bits": 10_000}``, of shapes
    of the plan and of ``triples``, ``squares``, ``bits``, ``inverses`` and ``inputs`` (as many for each party). Of tuples there
    are somewhat more, so that MP-SPDZ, which reads 101 at a time, finds whole ones. ``runs`` and ``program_threads`` make
    files for so many runs of a program, in directories ``run-1`` and so on of ``out``, and for each of so many threads, each with
    as much. ``mac_key`` is a directory ``Player-Data`` with a MAC key to go on with, where the parties make their keys first;
    that in ``out`` is gone on with anyway.

    ``hosts`` lists the parties, a line for each: host:port and fingerprint. ``key`` is this party's, if it is not in the
    directory ``setup``. ``progress(phase, done, total)`` is called as the run goes on. Nothing is written unless all checks
    pass, or after Ctrl-C. Products are computed by ``threads`` threads here, or by ``workers``.

    Whoever wrote the plan in ``setup`` may be the adversary. ``insecure`` takes one with less than 128 bits of computational
    security, ``least_statistical_security`` says how many bits of statistical security it needs, and ``without_proofs`` takes
    one by which nothing is proven of encryptions.
    """
    if format not in ("mp-spdz", "plain"):
        raise InputError(f"the format {format!r}", kind="operation", remedy="say mp-spdz or plain")
    files, phases, lowered, void, made = _native.run_triples_party(
        _numbers.whole(id, "id", 0, 63),
        _path(hosts, "hosts"),
        _path(setup, "setup"),
        None if key is None else _path(key, "key"),
        _path(identity, "identity"),
        _path(out, "out"),
        _numbers.whole(count, "count", 1, 1_000_000),
        [_wanted(what, many) for what, many in (make or {}).items()],
        None if mac_key is None else _path(mac_key, "the directory of the MAC key"),
        None if runs is None else _numbers.whole(runs, "runs", 1, 1024),
        None if program_threads is None else _numbers.whole(program_threads, "program_threads", 1, 1024),
        format == "plain",
        _numbers.whole(threads, "threads", 1, 256),
        float(timeout),
        bool(insecure),
        _numbers.whole(least_statistical_security, "least_statistical_security", 0, 128),
        bool(without_proofs),
        workers,
        progress,
    )
    written, unmatched = [os.fspath(file) for file in files], [os.fspath(file) for file in void]
    return Run(written, [Phase(*phase) for phase in phases], lowered, unmatched, [Made(*each) for each in made])
