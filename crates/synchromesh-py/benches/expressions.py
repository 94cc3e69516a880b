"""Rotations, keys and seconds of planning of thirty NumPy expressions.

python expressions.py [--limit S] [--csv FILE] [--before FILE] [NAME ..]

Each is planned in a process of its own, which is ended after --limit seconds; seconds are the processor's, which other work
on the machine does not add to. Nothing is encrypted. With --before an earlier
table stands beside this one.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import synchromesh as sm

COLUMNS = ("rotations", "keys_mb", "plan_s", "log_n", "depth")


class Expression(NamedTuple):
    """A NumPy expression of tensors, and their shapes."""

    function: Callable[..., Any]
    shapes: list[Any]


def _public(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-1, 1, shape) / shape[-1]


def _covariances(x: Any) -> Any:
    c = x - x.mean(0)
    return (c.T @ c) / len(x)


def _convolved(x: Any) -> Any:
    k = _public(3, 3)
    return sum(k[i, j] * x[:, i : i + 26, j : j + 26] for i in range(3) for j in range(3))


def _step(x: Any, y: Any, w: Any) -> Any:
    score = (x @ w).declare_bound(1.0)
    p = 0.5 + 0.197 * score - 0.004 * score**3
    return w - (x.T @ (p - y)) / len(x)


def _distances(x: Any, c: Any) -> Any:
    return ((x[:, None, :] - c[None, :, :]) ** 2).sum(-1)


EXPRESSIONS: dict[str, Expression] = {
    "x.sum() of 1000 x 5": Expression(lambda x: x.sum(), [(1000, 5)]),
    "x.sum(0) of 1000 x 5": Expression(lambda x: x.sum(0), [(1000, 5)]),
    "x.sum(1) of 1000 x 5": Expression(lambda x: x.sum(1), [(1000, 5)]),
    "x.sum((0, 2)) of 8 x 28 x 28": Expression(lambda x: x.sum((0, 2)), [(8, 28, 28)]),
    "x - x.mean(0) of 1000 x 5": Expression(lambda x: x - x.mean(0), [(1000, 5)]),
    "x - x.mean(0) of 10 000 x 5": Expression(lambda x: x - x.mean(0), [(10_000, 5)]),
    "x - x.mean(1) of 1000 x 5": Expression(lambda x: x - x.mean(1, keepdims=True), [(1000, 5)]),
    "x.var(0) of 1000 x 5": Expression(lambda x: x.var(0), [(1000, 5)]),
    "x * row of 1000 x 5": Expression(lambda x, y: x * y, [(1000, 5), (5,)]),
    "x * column of 1000 x 5": Expression(lambda x, y: x * y, [(1000, 5), (1000, 1)]),
    "x.T @ x of 100 x 5": Expression(lambda x: x.T @ x, [(100, 5)]),
    "x.T @ x of 512 x 8": Expression(lambda x: x.T @ x, [(512, 8)]),
    "np.cov(x) of 100 x 5": Expression(lambda x: np.cov(x, rowvar=False), [(100, 5)]),
    "covariances of 10 000 x 5": Expression(_covariances, [(10_000, 5)]),
    "x @ w of 512 x 8": Expression(lambda x, w: x @ w, [(512, 8), (8,)]),
    "x.T @ v of 512 x 8": Expression(lambda x, v: x.T @ v, [(512, 8), (512,)]),
    "logistic step of 512 x 8": Expression(_step, [(512, 8), (512,), (8,)]),
    "x @ y of 16 x 16": Expression(lambda x, y: x @ y, [(16, 16), (16, 16)]),
    "np.outer(x, y) of 64": Expression(lambda x, y: np.outer(x, y), [(64,), (64,)]),
    "distances of 64 x 4 to 8 x 4": Expression(_distances, [(64, 4), (8, 4)]),
    "A @ x, public 10 000 x 128": Expression(lambda x: _public(10_000, 128) @ x, [(128,)]),
    "A @ x, public 1000 x 64": Expression(lambda x: _public(1000, 64) @ x, [(64,)]),
    "A @ x, public 256 x 256": Expression(lambda x: _public(256, 256) @ x, [(256,)]),
    "x @ A, public 4096 x 16": Expression(lambda x: x @ _public(4096, 16), [(4096,)]),
    "x @ A of 128 x 64, public 64 x 10": Expression(lambda x: x @ _public(64, 10), [(128, 64)]),
    "x @ A of 32 x 16, public 16 x 64": Expression(lambda x: x @ _public(16, 64), [(32, 16)]),
    "np.repeat(x, 4) of 256": Expression(lambda x: np.repeat(x, 4), [(256,)]),
    "np.tile(x, 4) of 256": Expression(lambda x: np.tile(x, 4), [(256,)]),
    "x.T + y of 64 x 64": Expression(lambda x, y: x.T + y, [(64, 64), (64, 64)]),
    "convolution of 8 x 28 x 28 by 3 x 3": Expression(_convolved, [(8, 28, 28)]),
}


def _planned(name: str, out: Any) -> None:
    expression = EXPRESSIONS[name]
    start = time.process_time()
    try:
        plan = sm.plan(expression.function, expression.shapes)
        seconds = time.process_time() - start
        out.put([len(plan.rotations), f"{plan.key_bytes / 1e6:.1f}", f"{seconds:.2f}", plan.log_n, plan.depth])
    except sm.SynchromeshError as error:
        out.put([type(error).__name__, str(error), f"{time.process_time() - start:.2f}", "", ""])


def measured(name: str, limit: float) -> list[Any]:
    """Rotations, megabytes of keys in files, seconds of planning, log2 N and depth; words where there are no numbers."""
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    process = context.Process(target=_planned, args=(name, out))
    process.start()
    process.join(limit)
    if process.is_alive():
        process.kill()
        process.join()
        return [f"none in {limit:.0f} s", "", f"> {limit:.0f}", "", ""]
    return list(out.get(timeout=5)) if process.exitcode == 0 else [f"died: {process.exitcode}", "", "", "", ""]


def main(arguments: Sequence[str]) -> None:
    """Prints the table, and writes it to a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="expressions; all unless given")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each, on the clock")
    parser.add_argument("--csv", help="a file for the table")
    parser.add_argument("--before", help="the file of an earlier table")
    chosen = parser.parse_args(arguments)
    rows = []
    for name in chosen.names or EXPRESSIONS:
        rows.append([name, *measured(name, chosen.limit)])
        print("  ".join([f"{name:36}", *(f"{str(x):>10}" for x in rows[-1][1:])]), flush=True)
    head = ["expression", *COLUMNS]
    if chosen.before:
        with open(chosen.before, newline="") as file:
            before = {row[0]: row[1:] for row in csv.reader(file)}
        head = ["expression", *(f"{name}_before" for name in COLUMNS), *COLUMNS]
        rows = [[row[0], *before.get(row[0], [""] * len(COLUMNS)), *row[1:]] for row in rows]
    if chosen.csv:
        with open(chosen.csv, "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head, *rows])


if __name__ == "__main__":
    main(sys.argv[1:])
