"""Levels that a line does not take: numbers that come along with what follows, zeros that polynomials leave, planned depth."""

from __future__ import annotations

import time

import numpy as np
import pytest

import synchromesh as sm
from test_layouts import load


def small(function, shapes, **options):
    return sm.plan(function, shapes, security="insecure", precision=12, **options)


def found(function, *arrays, **options):
    """What a planned function makes of arrays, and its certified error."""
    context = sm.Context(small(function, [a.shape for a in arrays], **options), insecure=True)
    keys = context.keygen()
    result = function(*(context.encrypt(a) for a in arrays))
    return keys.secret.decrypt(result), result.error_bound


RNG = np.random.default_rng(11)
X, V = RNG.uniform(-1, 1, (64, 8)), RNG.uniform(-1, 1, 64)

# Functions, their arguments, and the levels they take.
LINES = {
    "a number and a sum": (lambda x: x.sum(0) / 64, [X], 1),
    "numbers in a row": (lambda x: x / 3 * 0.7 / 2, [X], 1),
    "a number before a vector": (lambda x: (x / 64) * np.linspace(0, 1, 8), [X], 1),
    "a number before a matrix": (lambda x: (x / 64) @ np.ones((8, 3)), [X], 1),
    "a number before a product": (lambda x, v: x.T @ ((v * v) / 64), [X, V], 3),
    "a number on the factor with levels to spare": (lambda x, v: (v * v / 64) * v, [X, V], 2),
    "the mean of products": (lambda x, v: (v * v).mean(), [X, V], 2),
    "a polynomial of a sum, and its copies": (lambda x, v: x.sum(1).polynomial([0.5, 0.1])[:, None] * x, [X, V], 2),
    "a series of a sum, and its copies": (
        lambda x, v: x.sum(1).declare_bound(8, everywhere=True).chebyshev(np.tanh, (-8, 8), 7, error=0)[:, None] * x,
        [X, V], 5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_numbers_and_masks_come_along(name):
    function, arrays, levels = LINES[name]
    plan = small(function, [a.shape for a in arrays])
    assert plan.depth == levels, plan.explain()


def test_what_comes_along_is_right():
    for function, arrays in (
        (lambda x: x.sum(0) / 64 - 3 * (x.sum(0) / 48), [X]),
        (lambda x, v: ((v * v / 64) * v)[:3] * (x[:3, 0] / 7), [X, V]),
        (lambda x, v: -(v / 3) ** 2, [X, V]),
        (lambda x, v: x.T @ ((v * v) / 64), [X, V]),
        (lambda x, v: sm.concatenate([v / 2, v / 2]) if isinstance(v, sm.Tensor) else np.concatenate([v, v]) / 2, [X, V]),
        (lambda x, v: (x / 4)[2:5] @ (x.T / 2), [X, V]),
    ):
        value, bound = found(function, *arrays)
        assert np.abs(value - function(*arrays)).max() <= bound < 2**-10


def test_polynomials_leave_zeros_beside():
    """Sums of slots after it are those of the elements, and certified as that."""
    poly = np.polynomial.polynomial.polyval

    def function(x):
        y = x.sum(1)
        y = y.polynomial([0.5, 0.2, 0.0, -0.01]) if isinstance(y, sm.Tensor) else poly(y, [0.5, 0.2, 0.0, -0.01])
        return y.sum()

    value, bound = found(function, X / 8)
    assert abs(value - function(X / 8)) <= bound < 2**-10


def test_a_loop_moves_what_stays_once():
    moves = []

    def function(x, y):
        for _ in range(3):
            z = x[::2] * y
        return z

    plan = small(function, [(64,), (32,)])
    moves = [step for step in plan.trace if step[0] in ("move", "index")]
    assert len(moves) == 1, plan.explain()


def test_three_logistic_steps_of_512_by_8():
    """Four levels a step: two products, and two of the polynomial that masks and spreads its values."""
    task = load("tasks").logistic(False)
    start = time.perf_counter()
    plan = sm.plan(task.function, [x.shape for x in task.inputs], precision=12, bounds=[1, 1, 1])
    assert (plan.log_n, plan.depth) == (15, 12), plan.explain()
    assert len(plan.rotations) <= 40 and plan.memory()["total"] < 2.2e9, plan
    # Five on an idle machine.
    assert time.perf_counter() - start < 30
