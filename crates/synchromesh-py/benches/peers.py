"""The tasks by other packages: TenSEAL's own products, and layouts written by hand for openfhe-python; one thread each.

Each function takes what the task is called with and returns seconds of evaluation and the result, decrypted; encoding of
public numbers is part of it, as it is of ours. Parameters are the smallest that each package has for 128 bits of security
and scales that leave about ten bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Found = tuple[float, np.ndarray]


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    made = work()
    return time.process_time() - start, made


class _TenSeal:
    """A context of TenSEAL's."""

    def __init__(self, bits: Sequence[int], degree: int = 8192) -> None:
        import tenseal

        self.package = tenseal
        self.context = tenseal.context(
            tenseal.SCHEME_TYPE.CKKS, degree, coeff_mod_bit_sizes=list(bits), n_threads=1
        )
        self.context.global_scale = 2.0 ** bits[1]
        self.context.generate_galois_keys()

    def encrypt(self, values: np.ndarray) -> Any:
        return self.package.ckks_vector(self.context, values.tolist())


def _tenseal_product(vector: np.ndarray, matrix: np.ndarray) -> Found:
    """In as many products as the columns take ciphertexts: one with more columns than slots comes out wrong."""
    own, slots = _TenSeal([40, 30, 40]), 4096
    encrypted = own.encrypt(vector)
    blocks = [matrix[:, start : start + slots].tolist() for start in range(0, matrix.shape[1], slots)]
    seconds, made = _timed(lambda: [encrypted.mm(block) for block in blocks])
    return seconds, np.concatenate([part.decrypt() for part in made])


def _tenseal_perceptron(x: np.ndarray, first: np.ndarray, second: np.ndarray) -> Found:
    """Image by image: a vector of TenSEAL's is one row."""
    own = _TenSeal([40, 30, 30, 30, 40])
    images, weights = [own.encrypt(row) for row in x], (first.tolist(), second.tolist())
    seconds, made = _timed(lambda: [image.mm(weights[0]).square().mm(weights[1]) for image in images])
    return seconds, np.array([scores.decrypt() for scores in made])


def _tenseal_covariances(data: np.ndarray) -> Found:
    """A vector for each column: mean products less products of means."""
    own, (rows, columns) = _TenSeal([40, 30, 30, 40], 32768), data.shape
    encrypted = [own.encrypt(np.ascontiguousarray(column)) for column in data.T]

    def products() -> list[Any]:
        means = [x.sum() * (1.0 / rows) for x in encrypted]
        pairs = [(i, j) for i in range(columns) for j in range(i, columns)]
        return [encrypted[i].dot(encrypted[j]) * (1.0 / rows) - means[i] * means[j] for i, j in pairs]

    seconds, made = _timed(products)
    return seconds, _symmetric(columns, [part.decrypt()[0] for part in made])


def _tenseal_regression(x: np.ndarray, y: np.ndarray, w: np.ndarray, steps: int) -> Found:
    """Sample by sample, as TenSEAL's own tutorial does: each is a vector, and so are its label and the weights."""
    own = _TenSeal([40, *[30] * (5 * steps + 1), 40], 16384 if steps == 1 else 32768)
    samples = [(own.encrypt(row), own.encrypt(np.array([label]))) for row, label in zip(x, y)]
    start = own.encrypt(w)

    def fit() -> Any:
        weights = start
        for _ in range(steps):
            total = None
            for sample, label in samples:
                off = sample.dot(weights).polyval([0.5, 0.197, 0.0, -0.004]) - label
                term = sample * off
                total = term if total is None else total + term
            weights = weights - total * (1.0 / len(samples))
        return weights

    seconds, made = _timed(fit)
    return seconds, np.array(made.decrypt())


def _symmetric(size: int, values: Sequence[float]) -> np.ndarray:
    """The symmetric matrix of the values on and above its diagonal."""
    found = np.empty((size, size))
    found[np.triu_indices(size)] = values
    return np.triu(found) + np.triu(found, 1).T


class _OpenFhe:
    """A context of OpenFHE's with its keys."""

    def __init__(self, depth: int, slots: int, rotations: Sequence[int] = (), sums: bool = False) -> None:
        import openfhe

        self.package, self.slots = openfhe, slots
        params = openfhe.CCParamsCKKSRNS()
        params.SetMultiplicativeDepth(depth)
        params.SetScalingModSize(40)
        params.SetFirstModSize(60)
        params.SetBatchSize(slots)
        if slots > 4096:
            params.SetRingDim(2 * slots)
        params.SetSecurityLevel(openfhe.HEStd_128_classic)
        self.context = openfhe.GenCryptoContext(params)
        for feature in (openfhe.PKE, openfhe.KEYSWITCH, openfhe.LEVELEDSHE, openfhe.ADVANCEDSHE):
            self.context.Enable(feature)
        self.keys = self.context.KeyGen()
        self.context.EvalMultKeyGen(self.keys.secretKey)
        if rotations:
            self.context.EvalRotateKeyGen(self.keys.secretKey, list(rotations))
        if sums:
            self.context.EvalSumKeyGen(self.keys.secretKey)

    def encode(self, values: np.ndarray) -> Any:
        return self.context.MakeCKKSPackedPlaintext(values.tolist())

    def encrypt(self, values: np.ndarray) -> Any:
        return self.context.Encrypt(self.keys.publicKey, self.encode(values))

    def decrypt(self, ciphertext: Any, count: int) -> np.ndarray:
        plain = self.context.Decrypt(ciphertext, self.keys.secretKey)
        plain.SetLength(count)
        return np.array(plain.GetRealPackedValue()[:count])


def _openfhe_search(query: np.ndarray, table: np.ndarray) -> Found:
    """The layout that is written by hand for this package: sixteen rotations of the repeated query, and sums of the rest."""
    (rows, width), slots = table.shape, 4096
    babies = min(16, width)
    own = _OpenFhe(1, slots, [*range(1, babies), *range(babies, width, babies)])
    context, encrypted = own.context, own.encrypt(np.tile(query, slots // width))
    padded = np.zeros((-(-rows // slots) * slots, width))
    padded[:rows] = table
    r = np.arange(slots)

    def block(turned: list[Any], part: np.ndarray) -> Any:
        total = None
        for g in range(0, width, babies):
            inner = None
            for b in range(babies):
                diagonal = own.encode(np.roll(part[r, (r + g + b) % width], g))
                term = context.EvalMult(turned[b], diagonal)
                inner = term if inner is None else context.EvalAdd(inner, term)
            moved = context.EvalRotate(inner, g) if g else inner
            total = moved if total is None else context.EvalAdd(total, moved)
        return total

    def product() -> list[Any]:
        turned = [context.EvalRotate(encrypted, b) if b else encrypted for b in range(babies)]
        return [block(turned, padded[start : start + slots]) for start in range(0, len(padded), slots)]

    seconds, made = _timed(product)
    return seconds, np.concatenate([own.decrypt(part, slots) for part in made])[:rows]


def _openfhe_lookup(chosen: np.ndarray, table: np.ndarray) -> Found:
    own = _OpenFhe(1, len(chosen), sums=True)
    context, encrypted = own.context, own.encrypt(chosen)

    def columns() -> list[Any]:
        terms = (context.EvalMult(encrypted, own.encode(np.ascontiguousarray(column))) for column in table.T)
        return [context.EvalSum(term, len(chosen)) for term in terms]

    seconds, made = _timed(columns)
    return seconds, np.array([own.decrypt(part, 1)[0] for part in made])


def _openfhe_covariances(data: np.ndarray) -> Found:
    """A ciphertext for each column, each product and each sum for itself."""
    rows, columns = data.shape
    slots = 1 << (rows - 1).bit_length()
    own = _OpenFhe(3, slots, sums=True)
    context = own.context
    encrypted = [own.encrypt(np.ascontiguousarray(column)) for column in data.T]
    mask = np.zeros(slots)
    mask[:rows] = 1.0 / rows

    def products() -> list[Any]:
        means = [context.EvalMult(context.EvalSum(x, slots), own.encode(mask)) for x in encrypted]
        centred = [context.EvalSub(x, mean) for x, mean in zip(encrypted, means)]
        pairs = [(a, b) for i, a in enumerate(centred) for b in centred[i:]]
        return [context.EvalMult(context.EvalSum(context.EvalMult(a, b), slots), 1.0 / rows) for a, b in pairs]

    seconds, made = _timed(products)
    return seconds, _symmetric(columns, [own.decrypt(part, 1)[0] for part in made])


# For each package the tasks that it has a way for, with what they are called with and their public numbers.
PEERS: dict[str, dict[str, Callable[..., Found]]] = {
    "tenseal": {
        "table @ query": lambda q, table: _tenseal_product(q, table.T),
        "correlations": _tenseal_covariances,
        "logistic step": lambda x, y, w: _tenseal_regression(x, y, w, 1),
        "logistic regression": lambda x, y, w: _tenseal_regression(x, y, w, 3),
        "lookup": _tenseal_product,
        "perceptron": _tenseal_perceptron,
    },
    "openfhe": {
        "table @ query": _openfhe_search,
        "lookup": _openfhe_lookup,
        "correlations": _openfhe_covariances,
    },
}


def seconds(peer: str, task: str, given: Sequence[np.ndarray], expected: np.ndarray) -> float | str:
    """What a package takes for a task, its result checked; a word where it has none or is not installed."""
    run = PEERS[peer].get(task)
    if run is None:
        return ""
    try:
        taken, found = run(*given)
    except ImportError:
        return "not installed"
    assert np.abs(found - expected).max() < 2.0**-7, (peer, task, np.abs(found - expected).max())
    return round(taken, 3)
