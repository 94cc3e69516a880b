"""Tasks in the lines that NumPy's users write, measured: python tasks.py [TASK ..] [--small] [--peers NAME ..] [--csv FILE]

For each, in the processor's seconds, to which other work on the machine adds little: planning, keys, encryption, evaluation;
the same of a layout by hand where there is one; memory that the process grew by, from the plan on (beside the plan's
forecast) and in all, and what keys and ciphertexts take of it; and the error against NumPy. Each task has a process of its
own, on one thread unless SYNCHROMESH_THREADS says otherwise. With --peers tenseal openfhe these packages compute what they
can, where they are installed.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import synchromesh as sm

sys.path.insert(0, os.path.dirname(__file__))
from peers import PEERS, seconds  # noqa: E402

COLUMNS = ("task", "log_n", "depth", "rotations", "plan_s", "keys_s", "encrypt_s", "evaluate_s", "by_hand_s", "tenseal_s",
           "openfhe_s")
MEMORY = ("keys_mb", "ciphertexts_mb", "forecast_mb", "running_mb", "peak_mb", "error", "error_bound")


class Task(NamedTuple):
    """A function of tensors and of arrays alike, what it is called with, and the same by hand."""

    function: Callable[..., Any]
    inputs: list[np.ndarray]
    # Makes what is encrypted and a function of its tensors, the results of which ``found`` gives the shape.
    by_hand: Callable[[], tuple[list[np.ndarray], Callable[..., Any], Callable[[Any], Any]]] | None = None
    # Public numbers that other packages are given beside the inputs.
    public: list[np.ndarray] = []  # noqa: RUF012
    precision: int = 12


def _random(*shape: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def search(small: bool) -> Task:
    """The products of a query with every row of a public table."""
    rows, width = (200, 16) if small else (10_000, 128)
    table, query = _random(rows, width) / width, _random(width, seed=2)

    def by_hand() -> Any:
        # The query all along the slots of one ciphertext, sixteen rotations of it, and sums of the rest.
        slots = 1024 if small else 4096
        giants, babies = max(1, width // 16), min(16, width)
        padded = np.zeros((-(-rows // slots) * slots, width))
        padded[:rows] = table
        r = np.arange(slots)

        def block(turned: list[Any], rows: np.ndarray) -> Any:
            total = None
            for g in range(giants):
                diagonals = (np.roll(rows[r, (r + g * babies + b) % width], g * babies) for b in range(babies))
                inner = sum(x * diagonal for x, diagonal in zip(turned, diagonals))
                moved = inner.rotate(g * babies) if g else inner
                total = moved if total is None else total + moved
            return total

        def product(x: Any) -> Any:
            turned = [x.rotate(b) if b else x for b in range(babies)]
            return [block(turned, padded[start : start + slots]) for start in range(0, rows, slots)]

        return [np.tile(query, slots // width)], product, lambda y: np.concatenate(y)[:rows]

    return Task(lambda q: table @ q, [query], by_hand, [table])


def correlations(small: bool) -> Task:
    """The covariances of standardised columns."""
    rows, columns = (300, 3) if small else (10_000, 5)
    data = _random(rows, columns)

    def matrix(x: Any) -> Any:
        centred = x - x.mean(0)
        return (centred.T @ centred) / rows

    def by_hand() -> Any:
        # A ciphertext for each column; each product and each sum for itself.
        def products(*x: Any) -> Any:
            centred = [c - c.mean() for c in x]
            return [(a * b).sum() / rows for i, a in enumerate(centred) for b in centred[i:]]

        def whole(y: Any) -> Any:
            found, k = np.empty((columns, columns)), 0
            for i in range(columns):
                for j in range(i, columns):
                    found[i, j] = found[j, i] = y[k]
                    k += 1
            return found

        return [np.ascontiguousarray(c) for c in data.T], products, whole

    return Task(matrix, [data], by_hand)


def logistic(small: bool, steps: int = 3) -> Task:
    """Steps of logistic regression."""
    rows, width = (32, 4) if small else (512, 8)
    steps = min(steps, 2) if small else steps
    x, w = _random(rows, width), np.zeros(width)
    y = (x @ _random(width, seed=3) > 0).astype(float)

    def fit(x: Any, y: Any, w: Any) -> Any:
        for _ in range(steps):
            score = x @ w
            if isinstance(score, sm.Tensor):
                score = score.declare_bound(2.0, everywhere=True)
                p = score.polynomial([0.5, 0.197, 0.0, -0.004])
            else:
                p = 0.5 + 0.197 * score - 0.004 * score**3
            w = w - x.T @ ((p - y) / rows)
            if isinstance(w, sm.Tensor):
                w = w.declare_bound(1.0, everywhere=True)
        return w

    return Task(fit, [x, y, w])


def lookup(small: bool) -> Task:
    """A row of a public table by a vector that is 1 in one place."""
    rows, width = (256, 4) if small else (4096, 16)
    table = _random(rows, width)
    chosen = np.zeros(rows)
    chosen[rows // 3] = 1.0

    def by_hand() -> Any:
        return [chosen], lambda s: [(s * table[:, j]).sum() for j in range(width)], np.array

    return Task(lambda s: s @ table, [chosen], by_hand, [table])


def perceptron(small: bool) -> Task:
    """A network of two layers on many images, squares between them."""
    images, sizes = (6, (16, 8, 4)) if small else (128, (784, 64, 10))
    x = _random(images, sizes[0])
    first, second = _random(sizes[0], sizes[1], seed=4) / sizes[0], _random(sizes[1], sizes[2], seed=5) / sizes[1]
    return Task(lambda x: ((x @ first) ** 2) @ second, [x], public=[first, second])


def convolutions(small: bool) -> Task:
    """A network of two convolutions with stride 2 and a dense layer, squares between them."""
    images, size, channels = (2, 9, 2) if small else (8, 28, 4)
    x = _random(images, 1, size, size)
    k1, k2 = _random(channels, 1, 3, 3, seed=6) / 9, _random(channels, channels, 3, 3, seed=7) / (9 * channels)

    def convolved(x: Any, k: np.ndarray) -> Any:
        n = x.shape[2] - 2
        terms = lambda o: (  # noqa: E731
            k[o, c, i, j] * x[:, c, i : i + n : 2, j : j + n : 2]
            for c in range(k.shape[1])
            for i in range(3)
            for j in range(3)
        )
        return np.stack([sum(terms(o)) for o in range(k.shape[0])], axis=1)

    left = ((size - 3) // 2 + 1 - 3) // 2 + 1
    dense = _random(channels * left * left, 10, seed=8) / (channels * left * left)

    def network(x: Any) -> Any:
        x = convolved(convolved(x, k1) ** 2, k2) ** 2
        return x.reshape(images, -1) @ dense

    return Task(network, [x])


TASKS: dict[str, Callable[[bool], Task]] = {
    "table @ query": search,
    "correlations": correlations,
    "logistic step": lambda small: logistic(small, 1),
    "logistic regression": logistic,
    "lookup": lookup,
    "perceptron": perceptron,
    "convolutions": convolutions,
}


def _decrypted(keys: sm.Keys, result: Any) -> Any:
    if isinstance(result, (list, tuple)):
        return [_decrypted(keys, each) for each in result]
    return keys.secret.decrypt(result)


def _memory() -> tuple[int, int]:
    """Bytes of the process now, and the most since it began or :func:`_forget_peak`."""
    with open("/proc/self/status") as file:
        lines = dict(line.split(":", 1) for line in file)
    now, most = (int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def _forget_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    made = work()
    return time.process_time() - start, made


def _by_hand(task: Task, small: bool, expected: np.ndarray) -> float:
    assert task.by_hand is not None
    inputs, function, shaped = task.by_hand()
    options: dict[str, Any] = {"security": "insecure"} if small else {}
    plan = sm.plan(function, [x.shape for x in inputs], precision=task.precision, bounds=_bounds(inputs), **options)
    context = sm.Context(plan, insecure=small)
    keys = context.keygen()
    encrypted = [context.encrypt(x, bound=bound) for x, bound in zip(inputs, _bounds(inputs))]
    function(*encrypted)
    seconds, result = _timed(lambda: function(*encrypted))
    assert np.abs(shaped(_decrypted(keys, result)) - expected).max() < 2.0 ** -(task.precision - 1)
    return seconds


def _bounds(inputs: list[np.ndarray]) -> list[float]:
    return [max(1.0, float(np.abs(x).max())) for x in inputs]


def measured(name: str, small: bool, peers: Sequence[str] = (), alone: bool = False) -> dict[str, Any]:
    """What one task takes, ``alone`` without other layouts and packages."""
    task = TASKS[name](small)
    expected = task.function(*task.inputs)
    options: dict[str, Any] = {"security": "insecure"} if small else {}
    # The library's code comes into memory with the first plan, whatever the task.
    sm.plan(lambda x: x * x, [(2,)], security="insecure")
    before, bounds = _memory()[0], _bounds(task.inputs)
    planned, plan = _timed(
        lambda: sm.plan(task.function, [x.shape for x in task.inputs], precision=task.precision, bounds=bounds, **options)
    )
    # What the plan's forecast is of begins here.
    planned_memory = _memory()
    _forget_peak()
    context = sm.Context(plan, insecure=small)
    keyed, keys = _timed(context.keygen)
    encrypting, inputs = _timed(lambda: [context.encrypt(x, bound=b) for x, b in zip(task.inputs, bounds)])
    evaluating, result = _timed(lambda: task.function(*inputs))
    running = _memory()[1]
    peak = max(running, planned_memory[1]) - before
    again, _ = _timed(lambda: task.function(*inputs))
    error = float(np.abs(keys.secret.decrypt(result) - expected).max())
    assert error <= result.error_bound
    forecast = plan.memory(sum(x.ciphertexts for x in inputs))
    row: dict[str, Any] = {
        "task": name,
        "log_n": plan.log_n,
        "depth": plan.depth,
        "rotations": len(plan.rotations),
        "plan_s": round(planned, 2),
        "keys_s": round(keyed, 2),
        "encrypt_s": round(encrypting, 2),
        "evaluate_s": round(min(evaluating, again), 3),
        "by_hand_s": "" if alone or task.by_hand is None else round(_by_hand(task, small, expected), 3),
        **{f"{peer}_s": "" for peer in PEERS},
        "keys_mb": round((forecast["keys"] + forecast["prepared_keys"]) / 1e6, 1),
        "ciphertexts_mb": round(forecast["ciphertexts"] / 1e6, 1),
        "forecast_mb": round(forecast["total"] / 1e6, 1),
        "running_mb": round((running - planned_memory[0]) / 1e6, 1),
        "peak_mb": round(peak / 1e6, 1),
        "error": f"{error:.1e}",
        "error_bound": f"{result.error_bound:.1e}",
    }
    row |= {f"{peer}_s": seconds(peer, name, [*task.inputs, *task.public], expected) for peer in peers}
    return row


def apart(name: str, peers: Sequence[str] = (), **flags: bool) -> dict[str, Any]:
    """The same in a process of its own, so that its peak of memory is the task's."""
    given = [f"--{flag}" for flag, wanted in flags.items() if wanted] + ["--peers", *peers]
    environment = {"SYNCHROMESH_THREADS": "1", "OMP_NUM_THREADS": "1", **os.environ}
    command = [sys.executable, __file__, name, "--one", *given]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        return {"task": name, "plan_s": f"failed: {done.returncode}"}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: Sequence[str]) -> None:
    """Prints the table, and writes it to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help=f"of {', '.join(TASKS)}; all unless given")
    parser.add_argument("--small", action="store_true", help="sizes for tests, with parameters that are not secure")
    parser.add_argument("--peers", nargs="*", default=[], choices=list(PEERS), help="other packages beside it")
    parser.add_argument("--alone", action="store_true", help="no layouts by hand")
    parser.add_argument("--one", action="store_true", help="one task in this process, as JSON")
    parser.add_argument("--csv", help="a file for the table")
    chosen = parser.parse_args(arguments)
    if chosen.one:
        print(json.dumps(measured(chosen.tasks[0], chosen.small, chosen.peers, chosen.alone)))
        return
    rows = [apart(name, chosen.peers, small=chosen.small, alone=chosen.alone) for name in chosen.tasks or TASKS]
    for row in rows:
        print("  ".join(f"{key} {value}" for key, value in row.items()))
    if chosen.csv:
        with open(chosen.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, [*COLUMNS, *MEMORY], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main(sys.argv[1:])
