"""Search among encrypted vectors: which of them are near an encrypted one, what these carry, or how near all are.

Who owns the vectors encrypts them, column by column, into a directory of files, and gives these and evaluation keys to a
server. A query is another vector, encrypted under the same secret key; what the server sends back says for each record
whether its inner product with the query exceeds a threshold, with what the records found carry, or, without a threshold,
what the inner products are. The server sees neither vectors nor queries, nor which records were found.

With a threshold, records whose inner product is within ``gap`` of it are undecided. :meth:`Search.nearest` sorts inner
products after decryption, which is how the nearest record is found: it takes one product, where a server that found it
alone would have to compare all records with one another.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _native, _numbers
from ._progress import Meter, Progress
from ._text import size
from .errors import DTypeError, FileError, InputError, MismatchError, ParamsError, ShapeError
from .planning import Plan
from .tensor import Tensor, concatenate

if TYPE_CHECKING:
    from .context import Context, SecretKey
    from .ray import Pool

__all__ = ["Database", "Found", "Nearest", "Search"]

Path = Union[str, "os.PathLike[str]"]

# Coordinates that are looked at in one go before anything is encrypted.
_CHUNK = 1 << 24


class Found(NamedTuple):
    """Records whose inner product with a query exceeds a threshold."""

    indices: NDArray[np.int64]
    """Their numbers, rising."""
    payloads: NDArray[Any] | None
    """What they carry, one after another; None where records carry nothing."""
    undecided: NDArray[np.int64]
    """Numbers of the records within the gap, of which some are among the found and some are not."""


class Nearest(NamedTuple):
    """Records of the largest inner products with a query."""

    indices: NDArray[np.int64]
    """Their numbers, the nearest first."""
    scores: NDArray[np.float64]
    """Their inner products, none further off than ``error_bound`` of the reply."""
    certain: bool
    """Whether no other record can be nearer than any of them, by that bound."""


@dataclass(frozen=True)
class _Numbers:
    """A search by its numbers, as the library and files have them."""

    dimension: int
    carried: int | None
    threshold: float | None
    gap: float
    tolerance: float

    @property
    def json(self) -> str:
        scores = self.threshold is None
        reply: Any = "scores" if scores else "marks" if self.carried is None else {"carried": self.carried}
        return json.dumps(
            {
                "dimension": self.dimension,
                "reply": reply,
                "threshold": 0.0 if self.threshold is None else self.threshold,
                "gap": 1.0 if scores else self.gap,
                "tolerance": self.tolerance,
            }
        )


class Search:
    """A search by its numbers; the same wherever data is encrypted, searched and decrypted.

    ``shape`` is that of the array of vectors, records by coordinates. With a ``threshold`` from -1 to 1 those records are
    found whose inner product with a query exceeds it, surely so where it differs by more than ``gap``; without one the
    inner products themselves come back. Each record carries a ``payload``, if one is named: a NumPy dtype, or an array
    whose first axis is the records. Results are within ``tolerance`` of 0 or 1, or of inner products.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        threshold: float | None = None,
        *,
        gap: float = 0.01,
        payload: Any = None,
        tolerance: float = 2.0**-11,
    ) -> None:
        if not isinstance(shape, (tuple, list)) or len(shape) != 2:
            raise ShapeError(f"shape {shape!r}", kind="shape", remedy="pass the shape of the array of vectors")
        self.records = _numbers.whole(shape[0], "records", 1, 1 << 40)
        dimension = _numbers.whole(shape[1], "dimension", 1, 1 << 15)
        self.payload = _payload(payload)
        if self.payload is not None and threshold is None:
            raise InputError(
                "inner products come back without payloads", kind="argument", remedy="pass a threshold, or no payload"
            )
        # Numbers below 2^8 are told apart by results that are within 2^-11 of 0 or 1, in the gap too.
        if self.payload is not None and not tolerance <= 2.0**-11:
            raise InputError(f"payloads and a tolerance of {tolerance}", kind="tolerance", remedy="pass at most 2^-11")
        carried = None if self.payload is None else self.payload.itemsize
        ends = (threshold, gap, tolerance)
        if not all(end is None or (isinstance(end, (int, float)) and math.isfinite(end)) for end in ends):
            raise DTypeError(f"threshold, gap and tolerance {ends}", kind="dtype", remedy="pass numbers")
        self._numbers = _Numbers(dimension, carried, None if threshold is None else float(threshold), gap, tolerance)

    @property
    def dimension(self) -> int:
        """Coordinates of a record."""
        return self._numbers.dimension

    @property
    def threshold(self) -> float | None:
        """The inner product above which a record is found."""
        return self._numbers.threshold

    @property
    def gap(self) -> float:
        """How near to the threshold records are undecided."""
        return self._numbers.gap

    def __repr__(self) -> str:
        what = "inner products" if self.threshold is None else f"above {self.threshold:g}, gap {self.gap:g}"
        return f"Search({self.records} records of {self.dimension} coordinates, {what})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Search) and other.to_json() == self.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def to_json(self) -> str:
        """The search as text."""
        n = self._numbers
        payload = None if self.payload is None else [self.payload.base.str, list(self.payload.shape)]
        fields = {"threshold": n.threshold, "gap": n.gap, "payload": payload, "tolerance": n.tolerance}
        return json.dumps({"shape": [self.records, n.dimension], **fields})

    @classmethod
    def from_json(cls, text: str) -> Search:
        """The search in text."""
        try:
            fields = json.loads(text)
            shape, threshold, payload = fields.pop("shape"), fields.pop("threshold"), fields.pop("payload")
            dtype = None if payload is None else np.dtype((str(payload[0]), tuple(int(n) for n in payload[1])))
            return cls(tuple(shape), threshold, payload=dtype, **fields)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise ParamsError(f"no search: {error}", kind="params", remedy="pass what to_json gave") from None

    def plan(self, *, security: int | str = 128) -> Plan:
        """The parameters and keys that the search takes."""
        return Plan(_native.plan_search(self._numbers.json, str(security)))

    def encrypt(
        self,
        records: Any,
        directory: Path,
        *,
        key: SecretKey,
        payloads: Any = None,
        progress: Progress = None,
    ) -> Database:
        """Encrypts vectors of length 1, one a row, into files in a directory, and what they carry.

        ``records`` is an array, one that is mapped from a file (``np.memmap``), or the path of a ``.npy`` file, of which no
        more than a block is in memory at a time; ``payloads`` likewise. All vectors are looked at, and the disk is asked for
        its room, before any is encrypted. ``progress`` is True for a bar on standard error, or a function of how many files
        are written and how many there will be.
        """
        own = _Native(self, key.context)
        vectors, carried = self._arrays(records, payloads)
        files = _native.SearchFiles.create(own.search, _path(directory), self.records)
        needed, free = files.bytes, shutil.disk_usage(_path(directory)).free
        if needed > free:
            raise FileError(
                f"the encrypted vectors take {size(needed)}, and there are {size(free)} free in {_path(directory)}",
                kind="no_room",
                remedy="choose another disk, free some of this one, or search fewer records",
            )
        rows = max(1, _CHUNK // self.dimension)
        for start in range(0, self.records, rows):
            own.search.check(start, _floats(vectors[start : start + rows]))
        counts = [files.counts(block)[0] for block in range(files.blocks)]
        with _metered(progress, sum(counts), "encrypt") as meter:
            for block in range(files.blocks):
                start, end = files.span(block)
                numbers = np.zeros(0, dtype=np.uint16)
                if carried is not None:
                    part = np.ascontiguousarray(carried[start:end])
                    numbers = part.reshape(end - start, -1).view(np.uint8).reshape(-1).astype(np.uint16)
                files.encrypt(key._native, block, _floats(vectors[start:end]), numbers, meter.step)
        files.finish()
        return Database(directory, key.context)

    def _arrays(self, records: Any, payloads: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Both, of the shapes and the kinds that the search has."""
        vectors = _array(records, "records")
        if vectors.dtype.kind not in "biuf":
            raise DTypeError(f"records of {vectors.dtype}", kind="dtype", remedy="pass real numbers")
        if vectors.shape != (self.records, self.dimension):
            raise ShapeError(
                f"records have shape {vectors.shape}, the search {(self.records, self.dimension)}",
                kind="shape",
                remedy="make the search with records.shape",
            )
        if (payloads is None) != (self.payload is None):
            given = "no payloads" if payloads is None else "payloads"
            raise InputError(
                f"{given} for a search {'without' if self.payload is None else 'with'} them",
                kind="argument",
                remedy="pass payloads both to Search and to encrypt, or to neither",
            )
        if payloads is None or self.payload is None:
            return vectors, None
        carried = _array(payloads, "payloads")
        wanted = (self.records, *self.payload.shape)
        if carried.shape != wanted or carried.dtype != self.payload.base:
            raise ShapeError(
                f"payloads are {carried.shape} of {carried.dtype}, the search has {wanted} of {self.payload.base}",
                kind="shape",
                remedy="make the search with payload=payloads",
            )
        return vectors, carried

    def query(self, vector: Any, key: SecretKey) -> bytes:
        """The encryption of a vector of length 1, as it goes to the server."""
        array = _numbers.as_array(vector)
        if array.dtype.kind not in "biuf" or array.shape != (self.dimension,):
            raise ShapeError(
                f"a query of shape {array.shape} and {array.dtype}",
                kind="shape",
                remedy=f"pass {self.dimension} real numbers",
            )
        doubles = np.ascontiguousarray(array, dtype=np.float64)
        return bytes(_Native(self, key.context).search.encrypt(key._native, doubles))

    def decrypt(self, reply: Tensor, key: SecretKey) -> Found:
        """The records that a reply says are found."""
        if self.threshold is None:
            raise MismatchError("a search without a threshold", kind="argument", remedy="call nearest, or scores")
        marks, numbers = self._read(reply, key)
        indices = np.flatnonzero(marks > 0.5)
        payloads = None
        if self.payload is not None:
            own = numbers.reshape(self.records, -1)[indices].astype(np.uint8)
            payloads = np.ascontiguousarray(own).view(self.payload.base).reshape(len(indices), *self.payload.shape)
        # Certified: what is outside the gap is as near as this to 0 or 1.
        tolerance = self._numbers.tolerance
        undecided = np.flatnonzero((marks > tolerance) & (marks < 1.0 - tolerance))
        return Found(indices, payloads, undecided)

    def scores(self, reply: Tensor, key: SecretKey) -> NDArray[np.float64]:
        """The inner products in the reply to a search without a threshold, each within its ``error_bound``."""
        if self.threshold is not None:
            raise MismatchError("a search with a threshold", kind="argument", remedy="call decrypt")
        return self._read(reply, key)[0]

    def nearest(self, reply: Tensor, key: SecretKey, count: int = 1) -> Nearest:
        """The ``count`` records of the largest inner products in the reply to a search without a threshold."""
        count = _numbers.whole(count, "count", 1, self.records)
        scores = self.scores(reply, key)
        order = np.argsort(-scores, kind="stable")
        own, rest = order[:count], order[count:]
        certain = not len(rest) or bool(scores[own[-1]] - scores[rest[0]] > 2 * reply.error_bound)
        return Nearest(own, scores[own], certain)

    def _read(self, reply: Tensor, key: SecretKey) -> tuple[NDArray[np.float64], NDArray[np.uint16]]:
        """The score or mark of every record, and the numbers that they carry."""
        own = _Native(self, key.context)
        starts = range(0, self.records, own.search.block)
        sizes = [min(own.search.block, self.records - start) for start in starts]
        counts = [self._replies(records, key.context.slots) for records in sizes]
        if not isinstance(reply, Tensor) or reply.shape != (sum(counts), key.context.slots):
            shape = getattr(reply, "shape", None)
            raise ShapeError(
                f"a reply of shape {shape} to this search", kind="shape", remedy="pass what Database.find returned"
            )
        slots, found, done = key.decrypt(reply).astype(np.complex128), [], 0
        for records, count in zip(sizes, counts):
            found.append(own.search.read(np.ascontiguousarray(slots[done : done + count]).reshape(-1), records))
            done += count
        return np.concatenate([marks for marks, _ in found]), np.concatenate([numbers for _, numbers in found])

    def _replies(self, records: int, slots: int) -> int:
        """Ciphertexts that come back for a block of so many records."""
        carried = self._numbers.carried
        return 1 if carried is None else -(-records // slots) * (carried // 2 + 1)


class Database:
    """Encrypted vectors in a directory, to be searched: each is read from its file when it is needed."""

    def __init__(self, directory: Path, context: Context) -> None:
        self.context = context
        self._files = _native.SearchFiles.open(context._native, _path(directory))
        self._directory = _path(directory)

    def __len__(self) -> int:
        return self._files.records

    def __repr__(self) -> str:
        return f"Database({self._directory!r}, {len(self)} records in {self._files.blocks} blocks)"

    def __reduce__(self) -> tuple[Any, ...]:
        """The directory is the same wherever it is opened."""
        return Database, (os.path.abspath(self._directory), self.context)

    def find(
        self,
        query: bytes,
        *,
        trust_certificate: bool = False,
        workers: Pool | None = None,
        progress: Progress = None,
    ) -> Tensor:
        """What a query gives: a tensor that the owner of the secret key decrypts with :meth:`Search.decrypt`, or
        :meth:`Search.nearest`.

        The context holds the evaluation keys. The noise certificates of the query and the files are believed if they are
        authenticated under an envelope key that the context holds, or else if ``trust_certificate`` says so, as in
        :meth:`Tensor.from_bytes`. ``progress`` is True for a bar on standard error, or a function of how many steps are
        done and how many there will be; a block's comparison counts as one.

        With ``workers`` (:class:`synchromesh.ray.Pool`) the blocks are searched on a Ray cluster, whose machines all have the
        directory, in as many runs as it has processors: each run expands the query once. Workers have the keys of the pool,
        its envelope key if it has one.
        """
        trusted, blocks = trust_certificate is True, range(self._files.blocks)
        if workers is None:
            return self._found(query, blocks, trusted, progress)
        self.context._require_own(workers.keys.context)
        runs = np.array_split(blocks, min(len(blocks), workers.count))
        calls = [(self, query, [int(block) for block in run], trusted) for run in runs]
        return concatenate(workers._map_within(self._memory, Database._found, calls, progress))

    def _found(self, query: bytes, blocks: Sequence[int], trusted: bool, progress: Progress = None) -> Tensor:
        """What a query gives in some blocks."""
        self._require_memory()
        search = _native.Search(self.context._native, self._files.literal)
        expanded = search.expand(_numbers.buffer(query), trusted)
        parts: list[_native.Ciphertext] = []
        compares = json.loads(self._files.literal)["reply"] != "scores"
        with _metered(progress, sum(self._files.counts(block)[0] + compares for block in blocks), "search") as meter:
            for block in blocks:
                parts += self._files.find(expanded, block, trusted, meter.step)
        at = np.arange(len(parts) * self.context.slots).reshape(len(parts), self.context.slots)
        return Tensor._made(self.context, "search", parts, at, np.dtype(np.complex128))

    @property
    def _memory(self) -> int:
        """Bytes that a search takes."""
        return self.context.plan.memory()["total"]

    def _require_memory(self) -> None:
        """Refuses what memory has no room for."""
        needed, free = self._memory, _native.available_memory()
        if free is not None and needed > free:
            raise ParamsError(
                f"a search takes {size(needed)} of memory, and {size(free)} are free",
                kind="memory",
                remedy="search on a larger machine, vectors of fewer coordinates, or with a wider gap",
            )


class _Native:
    """The native side of a search in a context."""

    def __init__(self, search: Search, context: Context) -> None:
        self.search = _native.Search(context._native, search._numbers.json)


class _metered:
    """A meter that is closed at the end."""

    def __init__(self, progress: Progress, total: int, what: str) -> None:
        self._meter = Meter(progress, total, what)

    def __enter__(self) -> Meter:
        return self._meter

    def __exit__(self, *_: Any) -> None:
        self._meter.close()


def _payload(payload: Any) -> np.dtype[Any] | None:
    """The dtype of what a record carries."""
    if payload is None:
        return None
    if isinstance(payload, (str, os.PathLike)) and os.fspath(payload).endswith(".npy"):
        payload = _array(payload, "payloads")
    try:
        if isinstance(payload, np.ndarray):
            dtype = np.dtype((payload.dtype, payload.shape[1:])) if payload.ndim > 1 else payload.dtype
        else:
            dtype = np.dtype(payload)
    except TypeError as error:
        raise DTypeError(f"payload: {error}", kind="dtype", remedy="pass a dtype, or the array of payloads") from None
    if dtype.hasobject or not 1 <= dtype.itemsize <= 1 << 12:
        raise DTypeError(
            f"a payload of {dtype}, {dtype.itemsize} bytes",
            kind="dtype",
            remedy="let each record carry 1 to 4096 bytes of fixed size",
        )
    return dtype


def _array(values: Any, what: str) -> NDArray[Any]:
    """An array, that in a file not read before it is needed."""
    if isinstance(values, (str, os.PathLike)):
        try:
            values = np.load(os.fspath(values), mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise FileError(f"{what}: {error}", kind="file_not_found", remedy="pass an array, or a .npy file") from None
    return np.asarray(values)


def _floats(rows: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(rows, dtype=np.float32).reshape(-1)


def _path(path: Path) -> str:
    from .context import _path as checked

    return checked(path)
