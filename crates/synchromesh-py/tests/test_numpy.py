"""NumPy's functions on tensors give what they give on arrays."""

from __future__ import annotations

import numpy as np
import pytest

import synchromesh as sm
from synchromesh import errors
from test_tensor import keys_for

ARRANGED = {
    "roll": lambda x: np.roll(x, 2, axis=1),
    "roll of all": lambda x: np.roll(x, -3),
    "stack": lambda x: np.stack([x, x[::-1]], axis=1),
    "vstack": lambda x: np.vstack([x, x[:2]]),
    "hstack": lambda x: np.hstack((x, x[:, 1:3])),
    "column_stack": lambda x: np.column_stack([x[:, 0], x[:, 3]]),
    "concatenate": lambda x: np.concatenate([x[:1], x[2:]], axis=0),
    "transpose": lambda x: np.transpose(x, (1, 0)),
    "reshape": lambda x: np.reshape(x, (2, -1)),
    "ravel": lambda x: np.ravel(x),
    "flip": lambda x: np.flip(x, axis=0),
    "moveaxis": lambda x: np.moveaxis(x.reshape(2, 2, 6), 0, 2),
    "squeeze": lambda x: np.squeeze(np.expand_dims(x, 1)),
    "diagonal": lambda x: np.diagonal(x),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "delete": lambda x: np.delete(x, 1, axis=0),
    "take": lambda x: np.take(x, [3, 0], axis=1),
    "split": lambda x: np.split(x, 2, axis=1)[1],
    "rot90": lambda x: np.rot90(x),
    "method": lambda x: x.ravel(),
}


@pytest.mark.parametrize("name", ARRANGED)
def test_functions_that_arrange_move_nothing(name, each):
    x = each.numbers(4, 6)
    a = each.encrypt(x)
    found = ARRANGED[name](a)
    each.check(found, ARRANGED[name](x))
    assert found.level == a.level
    # What is arranged goes on as any other.
    each.check(found * 2 + 1, ARRANGED[name](x) * 2 + 1)


def test_repeated_elements_are_copied(each):
    x = each.numbers(2, 3)
    for function in (lambda t: np.tile(t, 2), lambda t: np.repeat(t, 2, axis=0), lambda t: np.broadcast_to(t, (2, 2, 3))):
        keyed = keys_for(each, function, (2, 3))
        keyed.check(function(keyed.encrypt(x)), function(x))


COMPUTED = {
    "sum": lambda x: np.sum(x),
    "sum of an axis": lambda x: np.sum(x, axis=0),
    "sum with its keywords": lambda x: np.sum(x, axis=1, keepdims=True),
    "sum of what is chosen": lambda x: np.sum(x, axis=1, where=np.arange(8) % 3 > 0, initial=2),
    "sum of axes": lambda x: np.sum(x.reshape(4, 2, 4), axis=(0, 2)),
    "sum of all axes": lambda x: x.sum(axis=(0, 1)),
    "add.reduce": lambda x: np.add.reduce(x, axis=0),
    "dot": lambda x: np.dot(x[0], x[1]),
    "dot with public numbers": lambda x: np.dot(x, np.arange(8)),
    "inner": lambda x: np.inner(x[1], x[2]),
    "vdot": lambda x: np.vdot(x[0], x[3]),
    "multiply": lambda x: np.multiply(x, 3) + np.subtract(7, x) - np.negative(x) + np.add(x, x),
    "square": lambda x: np.square(x) + np.power(x, 2),
    "zeroth power": lambda x: x**0 + x,
    "prod": lambda x: np.prod(x[:3, :4], axis=1),
    "prod with kept axes": lambda x: x[:2, :4].prod(axis=0, keepdims=True),
    "trace": lambda x: np.trace(x[:, :4]),
    "sizes": lambda x: x * (np.size(x) + np.ndim(x) + np.shape(x)[0]),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_functions_that_compute(name, each):
    function = COMPUTED[name]
    keyed = keys_for(each, function, (4, 8))
    x = each.rng.integers(-3, 4, (4, 8)) if each.exact else each.numbers(4, 8)
    keyed.check(function(keyed.encrypt(x)), function(x))


REAL = {
    "mean": lambda x: np.mean(x, axis=1, keepdims=True),
    "mean of what is chosen": lambda x: np.mean(x, axis=1, keepdims=True, where=np.arange(8) > 1),
    "mean of axes": lambda x: np.mean(x, axis=(0, 1)),
    "var": lambda x: np.var(x),
    "var of an axis": lambda x: np.var(x, axis=1, ddof=1),
    "average": lambda x: np.average(x, axis=0, weights=np.arange(1, 5)),
    "cov": lambda x: np.cov(x),
    "cov of columns": lambda x: np.cov(x[:, :3], rowvar=False, bias=True),
    "cov of one": lambda x: np.cov(x[0]),
}


@pytest.mark.parametrize("name", REAL)
def test_functions_that_compute_with_fractions(name, ckks):
    function = REAL[name]
    keyed = keys_for(ckks, function, (4, 8))
    x = ckks.numbers(4, 8)
    keyed.check(function(keyed.encrypt(x)), function(x))


def test_what_is_chosen_is_public(ckks):
    x = ckks.encrypt(ckks.numbers(4, 8))
    for wrong in (lambda: np.sum(x, where=x), lambda: np.sum(x, where=np.arange(8))):
        with pytest.raises(errors.DTypeError, match="public condition"):
            wrong()
    for wrong in (
        lambda: np.sum(x, where=np.arange(4) > 1),
        lambda: np.mean(x, axis=1, where=np.arange(8) < 0),
        lambda: np.mean(x, where=True, initial=3),
    ):
        with pytest.raises((errors.ShapeError, TypeError)):
            wrong()
    keyed = keys_for(ckks, lambda t: np.sum(t, initial=2), (8,))
    a = keyed.encrypt(ckks.numbers(8))
    assert np.sum(a, initial=2).level == np.sum(a).level == a.level


def test_variances_lie_in_their_range(ckks):
    x = ckks.numbers(64)
    keyed = keys_for(ckks, lambda t: t.var().chebyshev(np.exp, (0, 1), 9), (64,))
    found = keyed.encrypt(x).var().chebyshev(np.exp, (0, 1), 9)
    keyed.check(found, np.exp(x.var()))


def test_deviations(ckks):
    def function(x):
        return x.std(axis=1, ddof=1, interval=(0.1, 1))

    x = ckks.rng.choice([-1.0, -0.5, 0.5, 1.0], (4, 32))
    keyed = keys_for(ckks, lambda t: function(t), (4, 32))
    found = function(keyed.encrypt(x))
    off = np.abs(keyed.keys.secret.decrypt(found) - x.std(axis=1, ddof=1)).max()
    assert off <= found.error_bound < 0.01


def test_correlations():
    def function(x):
        return x.corrcoef(False, interval=(0.1, 0.5))

    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (60, 3)) @ np.array([[1, 0.6, 0], [0, 0.7, -0.4], [0, 0, 0.9]])
    x /= np.abs(x).max()
    plan = sm.plan(function, [x], precision=8, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    found = function(context.encrypt(x))
    off = np.abs(keys.secret.decrypt(found) - np.corrcoef(x, rowvar=False)).max()
    assert off <= found.error_bound <= 2**-8
    with pytest.raises(errors.DTypeError, match="x.corrcoef"):
        np.corrcoef(found)
    with pytest.raises(errors.ShapeError):
        sm.plan(lambda x: x.corrcoef(interval=(0.1, 1)), [(8,)], security="insecure")


def test_what_arrays_have_and_tensors_have_not_says_what_to_write(ckks):
    x = ckks.encrypt(ckks.numbers(4))
    for name, way in {"max": "order", "flatten": "ravel", "copy": "as it is", "tolist": "decrypt", "cumsum": "tril"}.items():
        with pytest.raises(AttributeError, match=f"have no {name}. Remedy: .*{way}"):
            getattr(x, name)
    with pytest.raises(AttributeError, match="has no attribute 'mx'"):
        x.mx  # noqa: B018
    assert not hasattr(x, "max") and hasattr(x, "mean")


def test_stacks_of_matrices(each):
    small = (lambda *s: each.rng.integers(-3, 4, s)) if each.exact else each.numbers
    x, m, n = small(2, 3, 4), small(4, 2), small(5, 3)
    for function in (lambda t: t @ m, lambda t: n @ t, lambda t: t @ m[:, 0], lambda t: t @ np.stack([m, m + 1])):
        keyed = keys_for(each, function, (2, 3, 4))
        keyed.check(function(keyed.encrypt(x)), function(x))
    y = small(2, 4, 2)
    keyed = keys_for(each, lambda s, t: s @ t, (2, 3, 4), (2, 4, 2))
    keyed.check(keyed.encrypt(x) @ keyed.encrypt(y), x @ y)


def test_public_matrices_on_the_right(each):
    m, x = each.numbers(8, 3), each.numbers(2, 8)
    matrix = sm.PublicMatrix(m)
    keyed = keys_for(each, lambda t: (t * 2) @ matrix, (2, 8))
    matrix.clear()
    a = keyed.encrypt(x)
    for k in (1, 2):
        keyed.check((a * k) @ matrix, (x * k) @ m)
    assert matrix.encodings == 1
    with pytest.raises(errors.DTypeError):
        x @ matrix


def test_examples_and_names_give_shapes_and_bounds():
    class Table:
        """What a data frame has of an array."""

        shape = (3, 4)

        def __array__(self, dtype=None, copy=None):
            return np.full((3, 4), -5.0)

    plan = sm.plan(lambda x: x * x, [Table()], precision=8, security="insecure")
    context = sm.Context(plan, insecure=True)
    keys = context.keygen()
    x = context.encrypt(np.full((3, 4), -5.0), bound=5)
    assert np.abs(keys.secret.decrypt(x * x) - 25).max() < 2**-8
    named = sm.plan(lambda a, b: (a * b).sum(), {"b": (4,), "a": np.arange(4)}, scheme="bgv", bounds={"b": 10**6}, security="insecure")
    assert named.t > 2 * 4 * 3 * 10**6
    for wrong in ({"c": 1}, [1, 2, 3], {"a": -1}, {"a": "x"}):
        with pytest.raises(errors.InputError):
            sm.plan(lambda a, b: a * b, {"a": (4,), "b": (4,)}, bounds=wrong, security="insecure")


def test_plaintext_moduli():
    for bound, log_n in [(1, 15), (100, 10), (32768, 15), (40000, 15), (10**6, 17), (10**30, 15)]:
        t = sm.plain_modulus(bound, log_n)
        assert t > 2 * bound and t % (2 << log_n) == 1
    for wrong in (0, -1, 1 << 255, 1.5):
        with pytest.raises(errors.InputError):
            sm.plain_modulus(wrong)
