"""Beyond one machine: encrypted evaluation and blocks of matrix triples as Ray tasks.

Needs ``pip install synchromesh[ray]``.

:class:`Pool` is also where :meth:`synchromesh.search.Database.find` searches. Evaluation keys go to Ray's object store
once; each worker process reads them from there once. A task whose worker is lost is run again, which is safe for
evaluation: it is deterministic and sees no secret key.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _native, _numbers
from ._progress import Progress, tracked
from ._text import size
from .context import Context, EnvelopeKey, EvaluationKeys, _path
from .errors import DTypeError, MismatchError, ParamsError, ShapeError
from .tensor import Tensor, concatenate

Reference = Any
__all__ = ["Pool", "TripleWorkers", "matmul"]

RETRIES = 4
# By the keys and the path of the envelope key.
_ready: dict[tuple[str, str | None], tuple[Context, EvaluationKeys]] = {}
_setups: dict[str, _native.TripleSetup] = {}


def _ray() -> Any:
    try:
        import ray
    except ImportError:
        raise ImportError("this needs Ray. Remedy: pip install synchromesh[ray]") from None
    return ray


def _connected() -> Any:
    """Ray, with a cluster: the one that runs, or one on this machine."""
    ray = _ray()
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False)
    return ray


# A plan, whether it is insecure, and the path of an envelope key.
_Setup = tuple[str, bool, Union[str, None]]


def _context(data: Any, key_id: str, setup: _Setup) -> Context:
    """The context and keys of this worker process, read when its first task needs them."""
    plan, insecure, envelope = setup
    found = _ready.get((key_id, envelope))
    if found is None:
        keys = EvaluationKeys.from_bytes(data, Context._restore(plan, insecure))
        context = keys.context.add_keys(keys)
        if envelope is not None:
            context.add_keys(EnvelopeKey.load(envelope, context))
        found = context, keys
        _ready[key_id, envelope] = found
    return found[0]


def _task(data: Any, key_id: str, setup: _Setup, function: Callable[..., Tensor], arguments: list[Any]) -> bytes:
    context = _context(data, key_id, setup)
    given = [
        Tensor.from_bytes(bytes(a.data), context, trust_certificate=True) if isinstance(a, _Sent) else a
        for a in arguments
    ]
    result = function(*given)
    if not isinstance(result, Tensor):
        raise DTypeError(
            f"the function returned {type(result).__name__}", kind="dtype", remedy="return one tensor from each call"
        )
    return result.to_bytes()


def _fetched(reference: Reference) -> Any:
    """What a task returned; the exception that it raised instead."""
    ray = _ray()
    try:
        return ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause if isinstance(getattr(error, "cause", None), Exception) else error
        raise cause from None


def _processors() -> int:
    return max(1, int(_ray().cluster_resources().get("CPU", 1)))


class _Sent:
    """A tensor on its way to a worker."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class Pool:
    """Workers of a Ray cluster that hold one set of evaluation keys.

    Connects to a running cluster, or starts one on this machine. ``keys`` must be those of the tensors. ``envelope`` is the
    path of the envelope key, if workers are to read what it authenticates, as an encrypted database; they read it there.
    """

    def __init__(
        self, keys: EvaluationKeys, *, envelope: str | os.PathLike[str] | None = None, retries: int = RETRIES
    ) -> None:
        if not isinstance(keys, EvaluationKeys):
            raise DTypeError(f"{type(keys).__name__} are no EvaluationKeys", kind="dtype", remedy="pass keys.evaluation")
        ray = _connected()
        self.keys = keys
        self._data = ray.put(np.frombuffer(keys.to_bytes(), dtype=np.uint8))
        plan, path = keys.context.plan, None if envelope is None else os.path.abspath(_path(envelope))
        self._setup = ray.put((plan.to_json(), plan.security_bits < 128, path))
        limit = _numbers.whole(retries, "retries", 0, 1000)
        self._run = ray.remote(max_retries=limit)(_task)

    def __repr__(self) -> str:
        return f"Pool({self.keys!r})"

    @property
    def count(self) -> int:
        """Tasks at one time: one for each processor of the cluster."""
        return _processors()

    def submit(self, function: Callable[..., Tensor], *arguments: Any) -> Reference:
        """Starts ``function`` of tensors and public values on a worker; :meth:`result` waits for it."""
        return self._started(self._run, function, arguments)

    def _started(self, run: Any, function: Callable[..., Tensor], arguments: Iterable[Any]) -> Reference:
        sent = [self._sent(a) for a in arguments]
        return run.remote(self._data, self.keys.key_id, self._setup, function, sent)

    def _sent(self, argument: Any) -> Any:
        if not isinstance(argument, Tensor):
            return argument
        if argument.key_id != self.keys.key_id:
            raise MismatchError(
                f"a tensor under key {argument.key_id[:8]}, the pool's is {self.keys.key_id[:8]}",
                kind="keys_differ",
                remedy="make a pool with the keys of the tensor",
            )
        return _Sent(argument.to_bytes())

    def result(self, reference: Reference) -> Tensor:
        """The tensor that a submitted function made; its certificate is believed, as that of one's own workers."""
        data = _fetched(reference)
        return Tensor.from_bytes(data, self.keys.context, trust_certificate=True)

    def map(self, function: Callable[..., Tensor], *batches: Iterable[Any], progress: Progress = None) -> list[Tensor]:
        """``function`` of each tuple of arguments, on the workers; results in order."""
        return self._mapped(self._run, function, list(zip(*batches)), progress)

    def _mapped(
        self, run: Any, function: Callable[..., Tensor], calls: Sequence[Iterable[Any]], progress: Progress
    ) -> list[Tensor]:
        pending = [self._started(run, function, arguments) for arguments in calls]
        for _ in tracked(self._finished(pending), len(pending), progress, "blocks"):
            pass
        return [self.result(reference) for reference in pending]

    def _map_within(
        self, memory: int, function: Callable[..., Tensor], calls: Sequence[Iterable[Any]], progress: Progress
    ) -> list[Tensor]:
        """:meth:`map` of calls that take so many bytes each: as many at a time on a machine as it has memory for."""
        largest = max((int(node["Resources"].get("memory", 0)) for node in _ray().nodes() if node["Alive"]), default=0)
        if memory > largest:
            raise ParamsError(
                f"a task takes {size(memory)} of memory, and the largest machine of the cluster has {size(largest)} for tasks",
                kind="memory",
                remedy="add a larger machine to the cluster",
            )
        return self._mapped(self._run.options(memory=memory), function, calls, progress)

    def _finished(self, pending: list[Reference]) -> Iterable[Reference]:
        ray, left = _ray(), list(pending)
        while left:
            done, left = ray.wait(left, num_returns=1)
            yield from done


def _product(rows: Any, vector: Tensor) -> Tensor:
    return vector.__rmatmul__(rows)


def matmul(
    matrix: ArrayLike, vector: Tensor, keys: EvaluationKeys | Pool, *, blocks: int = 0, progress: Progress = None
) -> Tensor:
    """A public matrix times an encrypted vector or matrix, its rows in ``blocks`` tasks (0: one for each worker CPU)."""
    pool = keys if isinstance(keys, Pool) else Pool(keys)
    array = _numbers.as_array(matrix)
    if not isinstance(vector, Tensor) or array.ndim != 2 or array.shape[1] != vector.shape[:1][-1]:
        shape = getattr(vector, "shape", None)
        raise ShapeError(f"a product of {array.shape} and {shape}", kind="shape", remedy="make inner sizes equal")
    count = _numbers.whole(blocks, "blocks", 0, 1 << 20) or pool.count
    parts: Sequence[Any] = [rows for rows in np.array_split(array, min(count, len(array))) if len(rows)]
    return concatenate(pool.map(_product, parts, [vector] * len(parts), progress=progress))


def _block(plan: str, files: list[Reference], digest: str, threads: int, block: bytes) -> bytes:
    setup = _setups.get(digest)
    if setup is None:
        setup = _native.TripleSetup(plan, *_ray().get(files))
        _setups[digest] = setup
    return setup.multiply_block(block, threads)


class TripleWorkers:
    """Computes the products of a party's triples on a Ray cluster: give it to :func:`synchromesh.triples.party`.

    ``setup`` is the directory of the plan and the public keys, which go to the object store once. Blocks are made of
    public ciphertexts; one whose worker is lost is computed again. Shares of decryptions stay with the party. The cluster must
    be the party's own: what its workers send back is decrypted.
    """

    def __init__(self, setup: str | os.PathLike[str], *, threads: int = 1, retries: int = RETRIES) -> None:
        limit = _numbers.whole(retries, "retries", 0, 1000)
        self._threads = _numbers.whole(threads, "threads", 1, 256)
        plan, files = _setup_files(setup)
        digest = _native.TripleSetup(plan, *files).digest
        ray = _connected()
        self._setup = [plan, [ray.put(file) for file in files], digest, self._threads]
        self._run = ray.remote(max_retries=limit, num_cpus=self._threads)(_block)
        self._pending: dict[int, Reference] = {}

    def __repr__(self) -> str:
        return f"TripleWorkers({self.count} at a time, {self._threads} threads each)"

    @property
    def count(self) -> int:
        """Blocks computed at one time."""
        return max(1, _processors() // self._threads)

    def begin(self, number: int, block: bytes) -> None:
        """Sends a block to a worker."""
        self._pending[number] = self._run.remote(*self._setup, block)

    def finish(self, number: int) -> bytes:
        """Waits for a block."""
        return bytes(_fetched(self._pending.pop(number)))


def _setup_files(setup: str | os.PathLike[str]) -> tuple[str, list[Any]]:
    """The plan of a setup, and its other public files."""
    directory = os.fspath(setup)
    plan = _native.read_file(os.path.join(directory, "plan.json")).decode("utf-8", "replace")
    names = ["public.key", "eval.keys"]
    # From a dealer, the MAC key under encryption.
    names += ["mac.ct"] if os.path.exists(os.path.join(directory, "mac.ct")) else []
    read = [_native.read_file(os.path.join(directory, name)) for name in names]
    return plan, [np.frombuffer(data, dtype=np.uint8) for data in read]
