"""Authenticated matrix triples for multi-party computation: shares of random A, B and C = A B, ready for MP-SPDZ.

Each party runs :func:`party` on its own machine; they meet over TLS. :func:`deal` makes the keys, as somebody whom all
parties trust, and :func:`identity` a party's certificate. The files are those of ``synchromesh triples``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Union

from . import _native, _numbers
from .errors import DTypeError, InputError, ShapeError

__all__ = ["Phase", "Run", "Workers", "deal", "identity", "party"]

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
class Run:
    """What a party's run wrote, what its phases took, and in what its plan gives less than is wanted as a rule.

    ``void`` are files of an earlier run that another party did not end: their triples have no counterparts and are not read.
    """

    files: list[str]
    phases: list[Phase]
    lowered: list[str]
    void: list[str]


def _path(path: Any, what: str) -> str:
    try:
        return os.fspath(path)  # type: ignore[no-any-return]
    except TypeError:
        raise DTypeError(f"{what} is {type(path).__name__}", kind="dtype", remedy="pass a path") from None


def deal(
    directory: Path,
    shape: Sequence[int],
    *,
    parties: int = 2,
    count: int = 1,
    security: int = 80,
    prime: int | None = None,
    decryptions: int = 20,
    log_n: int | None = None,
    keys: Literal["dealer", "generate"] = "dealer",
    insecure: bool = False,
) -> None:
    """Chooses parameters for triples of ``shape`` (rows of A, columns of A, columns of B) and deals keys into a directory.

    With ``keys="generate"`` the parties make keys themselves, and the directory gets the plan alone: give each party a
    directory of its own with this file.
    ``security`` are bits of statistical security, ``decryptions`` the log2 of how many ciphertexts may be decrypted under one key.
    ``insecure`` allows less than 128 bits of computational security, as a small ``log_n`` does.
    """
    if keys not in ("dealer", "generate"):
        raise InputError(f"keys from {keys!r}", kind="operation", remedy="say dealer or generate")
    try:
        sides = [_numbers.whole(side, "a side", 1, 1 << 20) for side in shape]
    except TypeError:
        sides = []
    if len(sides) != 3:
        raise ShapeError(f"the shape {shape!r}", kind="shape", remedy="give rows of A, columns of A, columns of B")
    if prime is not None and (not isinstance(prime, int) or isinstance(prime, bool) or prime < 2):
        raise InputError(f"the prime {prime!r}", kind="operation", remedy="give a prime of 64 to 256 bits")
    _native.deal_triples(
        _path(directory, "the directory"),
        _numbers.whole(parties, "parties", 2, 64),
        "x".join(map(str, sides)),
        _numbers.whole(count, "count", 1, 1_000_000),
        _numbers.whole(security, "security", 20, 128),
        None if prime is None else str(prime),
        _numbers.whole(decryptions, "decryptions", 4, 40),
        None if log_n is None else _numbers.whole(log_n, "log_n", 10, 17),
        keys == "generate",
        bool(insecure),
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

    ``hosts`` lists the parties, a line for each: host:port and fingerprint. ``key`` is this party's, if it is not in the
    directory ``setup``. ``progress(phase, done, total)`` is called as the run goes on. Nothing is written unless all checks
    pass, or after Ctrl-C. Products are computed by ``threads`` threads here, or by ``workers``.

    Whoever wrote the plan in ``setup`` may be the adversary. ``insecure`` takes one with less than 128 bits of computational
    security, ``least_statistical_security`` says how many bits of statistical security it needs, and ``without_proofs`` takes
    one by which nothing is proven of encryptions.
    """
    if format not in ("mp-spdz", "plain"):
        raise InputError(f"the format {format!r}", kind="operation", remedy="say mp-spdz or plain")
    files, phases, lowered, void = _native.run_triples_party(
        _numbers.whole(id, "id", 0, 63),
        _path(hosts, "hosts"),
        _path(setup, "setup"),
        None if key is None else _path(key, "key"),
        _path(identity, "identity"),
        _path(out, "out"),
        _numbers.whole(count, "count", 1, 1_000_000),
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
    return Run(written, [Phase(*phase) for phase in phases], lowered, unmatched)
